"""One core for all threads of a process."""

from __future__ import annotations

import pytest

from gunicorn_admission.sim.clock import Clock
from gunicorn_admission.sim.gil import Gil

MS = 1_000_000


class Core:
    """Runs work and notes when it ended, in milliseconds since the start."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.gil = Gil(self.clock)
        self.ended: list[tuple[str, float]] = []

    def run(self, name: str, need: float, *, whole: bool = False) -> None:
        self.gil.run(int(need * MS), self.note, name, whole=whole)

    def note(self, name: str) -> None:
        self.ended.append((name, (self.clock.now_ns - self.clock.start_ns) / MS))


@pytest.fixture
def core() -> Core:
    return Core()


def test_short_work_is_served_in_order(core: Core) -> None:
    for name in "abc":
        core.run(name, 2)
    core.clock.run_for(1)
    assert core.ended == [("a", 2), ("b", 4), ("c", 6)]


def test_long_work_takes_turns(core: Core) -> None:
    core.run("long", 20)
    core.run("also long", 20)
    core.run("short", 1)
    core.clock.run_for(1)
    # "long" began before anybody else was there to take it from it.
    assert core.ended == [("long", 20), ("short", 26), ("also long", 41)]


def test_a_pause_takes_no_turns(core: Core) -> None:
    core.run("pause", 300, whole=True)
    core.run("short", 1)
    core.clock.run_for(1)
    assert core.ended == [("pause", 300), ("short", 301)]


def test_work_that_follows_work_queues_behind_others(core: Core) -> None:
    def again(name: str) -> None:
        core.note(name)
        core.run("again", 1)

    core.gil.run(2 * MS, again, "first")
    core.run("second", 2)
    core.clock.run_for(1)
    assert core.ended == [("first", 2), ("second", 4), ("again", 5)]


def test_it_rests_when_idle(core: Core) -> None:
    core.run("a", 2)
    core.clock.run_for(0.1)
    core.run("b", 2)
    core.clock.run_for(0.2)
    assert core.ended == [("a", 2), ("b", 102)]
