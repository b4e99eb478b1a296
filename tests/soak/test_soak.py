"""A short soak: what a long one looks for, for as long as a test may take."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.run import Soak
from tests.soak.watch import Holding, grown

pytestmark = [pytest.mark.stress, pytest.mark.timeout(240)]


def test_a_short_soak(tmp_path: Path) -> None:
    soak = Soak(tmp_path, 20, clients=8, pause=3.0, seed=2)
    soak.run()
    print(soak.answers, soak.disturbed)
    assert not soak.problems
    assert sum(soak.disturbed.values()) >= 3
    for answers in soak.answers.values():
        assert answers["200"] and answers["503"] and answers["408"] and answers["400"]


@pytest.mark.parametrize(
    ("last", "problems"),
    [
        (Holding(20, 10, 50.0), 0),
        (Holding(22, 10, 52.0), 0),
        (Holding(23, 10, 50.0), 1),
        (Holding(20, 11, 50.0), 1),
        (Holding(30, 12, 90.0), 3),
    ],
)
def test_growth_is_noticed(last: Holding, problems: int) -> None:
    flat = [Holding(20, 10, 50.0)] * 10
    assert len(grown([*flat, *flat, *[last] * 10])) == problems
