"""Twice as much as the database can do, and clients that give up after a second."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.overload.plan import Phase
from benchmarks.overload.records import Outcome
from benchmarks.overload.scenarios import HEALTH, Scenario, kinds
from benchmarks.overload.summary import Run
from tests.acceptance.figures import share, started_for_nobody
from tests.acceptance.side_by_side import side_by_side

CONNECTIONS, SECONDS = 4, 0.05
CAPACITY = CONNECTIONS / SECONDS
TWICE = Scenario(
    title="twice the capacity, clients give up at 1 s",
    main="over",
    timeout=1.0,
    phases=(
        Phase(name="warm", seconds=3, rate=CAPACITY / 2),
        Phase(name="over", seconds=12, rate=CAPACITY * 2),
    ),
    connections=CONNECTIONS,
    seconds=SECONDS,
)


def served(run: Run) -> int:
    """Answers that clients had in the overload and still waited for."""
    begin, end = run.span("over")
    return sum(
        one.outcome is Outcome.SERVED and begin <= one.ended < end
        for one in run.records
        if run.plan.kinds[one.kind].name != HEALTH
    )


def worked(run: Run) -> int:
    """Runs of the handler in the overload, whether anybody waited for them or not."""
    begin, end = run.span("over")
    return sum(begin <= one.ended < end for one in run.handled)


def describe(name: str, run: Run, capacity: int) -> str:
    begin, end = run.span("over")
    asked = run.asked("over")
    return (
        f"{name:5} served {served(run)}, {served(run) / capacity:.3f} of capacity "
        f"({served(run) / (CAPACITY * (end - begin)):.3f} of its nominal value), "
        f"refused {share(asked, Outcome.SHED):.3f}, gave up {share(asked, Outcome.GAVE_UP):.3f}, "
        f"{len(started_for_nobody(run))} of {len(run.handled)} started for nobody"
    )


@pytest.mark.timeout(90)
def test_work_is_done_for_those_who_still_wait(tmp_path: Path) -> None:
    """
    About 18 s.

    Plain gunicorn keeps the database busy all the time, for nobody: the calls that it makes
    are what the database could do on this machine in these seconds.
    """
    ours, plain = side_by_side("benchmarks.overload.app:app", TWICE, kinds(1.0), tmp_path)
    capacity = worked(plain)
    print(describe("ours", ours, capacity), describe("plain", plain, capacity), sep="\n")

    assert served(ours) >= 0.95 * capacity
    assert served(plain) < 0.5 * capacity
    assert not started_for_nobody(ours)
    assert started_for_nobody(plain)
    assert share(ours.records, Outcome.BROKEN) == 0
