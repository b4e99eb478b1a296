"""The built-in scenarios."""

from __future__ import annotations

import pytest

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.sim.library import every, find
from gunicorn_admission.sim.scenario import Scenario

EXPECTED = {
    *(f"yardstick-{letter}" for letter in ("A", "B", "D", "D2")),
    *(f"overload-{letter}" for letter in ("A", "AB", "BFG", "C", "D", "E", "H")),
    *("black-hole", "all-nodes-500", "drastic-slowdown"),
    *("fast-400s-then-revert", "fast-503s-then-revert"),
    *("one-big-spike", "one-endpoint-dies", "sustained-1.25x", "night-then-day"),
    *("lucky-samples", "constant-timeouts", "gc-pause", "cpu-bound", "mixed", "retry-storm"),
    *("priority-inversion", "uneven-workers", "recovery", "fleet"),
}


def test_all_are_there() -> None:
    listed = [one.name for one in every()]
    assert set(listed) == EXPECTED
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("chosen", every(), ids=lambda one: one.name)
def test_each_can_be_set_up(chosen: Scenario) -> None:
    assert chosen.title
    policy = chosen.admission().derive(chosen.threads, waiting_holds_thread=False).policy
    assert chosen.oracle <= policy.max_limit
    assert len({phase.name for phase in chosen.phases}) == len(chosen.phases)
    assert chosen.arrivals < 250_000


def test_names_are_found_in_any_case() -> None:
    assert find(" YARDSTICK-a ").name == "yardstick-A"
    assert find("Overload-bfg").name == "overload-BFG"


def test_a_typo_gets_a_hint() -> None:
    with pytest.raises(ConfigError, match="did you mean 'retry-storm'"):
        find("retry-strom")


def test_the_yardstick_is_the_one_that_was_published() -> None:
    chosen = find("yardstick-A")
    (database,) = chosen.dependencies
    assert (chosen.threads, chosen.oracle) == (32, 10)
    assert (database.connections, database.seconds, database.contention) == (10, 0.020, 0.03)
    assert database.capacity == 500
    assert all(phase.rate == 2 * database.capacity for phase in chosen.phases)
    slow = find("yardstick-D").phases[1]
    assert (slow.rate, slow.seconds) == (0.6 * database.capacity, 120)
    assert slow.faults["db"].slower == 5.0
    assert chosen.classes[0].sender.patience == 1.0
