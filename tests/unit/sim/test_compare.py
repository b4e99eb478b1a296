"""Several limits under the same loads."""

from __future__ import annotations

import pytest

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.sim.compare import compare
from tests.simulating import scenario

SMALL = scenario(seconds=1)


def test_rows_in_the_order_asked_for() -> None:
    done: list[None] = []
    comparison = compare(SMALL, ("pool", "adaptive"), (5, 6), done=lambda: done.append(None))
    assert [row.limit for row in comparison.rows] == ["pool", "adaptive"]
    assert [row.seeds for row in comparison.rows] == [2, 2]
    assert [(one.limit, one.seed) for one in comparison.runs] == [("pool", 5), ("adaptive", 5)]
    assert len(done) == 4


def test_processes_change_nothing() -> None:
    alone = compare(SMALL, ("adaptive",), (1, 2))
    together = compare(SMALL, ("adaptive",), (1, 2), processes=2)
    assert alone.rows == together.rows


def test_a_mistake_is_found_before_the_work() -> None:
    with pytest.raises(ConfigError):
        compare(SMALL, ("adaptive", "best"), (1,), done=lambda: pytest.fail("it ran"))
    with pytest.raises(ConfigError):
        compare(scenario(settings={"min_limit": 99}), ("adaptive",), (1,))
