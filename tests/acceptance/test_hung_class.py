"""The database of one class hangs for 10 s: nobody else notices, and it is over when it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.overload.plan import Kind, Phase
from benchmarks.overload.records import Outcome
from benchmarks.overload.scenarios import HEALTH, Scenario
from benchmarks.overload.summary import Run, recovery
from tests.acceptance.figures import latency, share, started_for_nobody
from tests.acceptance.side_by_side import side_by_side

RATE = 60.0
KINDS = (
    Kind(name="reports", path="/reports", share=0.4, timeout=1.0),
    Kind(name="catalog", path="/catalog", share=0.3, timeout=1.0),
    Kind(name="cart", path="/cart", share=0.3, timeout=1.0),
    Kind(name=HEALTH, path="/healthz", rate=20.0, timeout=1.0),
)
OTHERS = ("catalog", "cart")
# 24 reports a second are enough to take 16 threads within one.
HUNG = Scenario(
    title="the database of one class hangs",
    main="hang",
    timeout=1.0,
    phases=(
        Phase(name="warm", seconds=4, rate=RATE),
        Phase(name="hang", seconds=10, rate=RATE, database="hang"),
        Phase(name="after", seconds=5, rate=RATE),
    ),
    slower=None,
)


def kept(run: Run, kind: str) -> float:
    """Goodput in the hang, in parts of that in the calm before, both of what was offered."""
    return share(run.asked("hang", kind)) / share(run.asked("warm", kind))


def describe(name: str, run: Run) -> str:
    health = run.asked("hang", HEALTH)
    parts = [f"{kind} kept {kept(run, kind):.3f}" for kind in OTHERS]
    parts += [f"/healthz p{part:g} {latency(health, part / 100):.1f} ms" for part in (50, 95, 99)]
    back = recovery(run)
    parts.append("not back" if back is None else f"back after {back:g} s")
    parts.append(f"{len(started_for_nobody(run))} of {len(run.handled)} started for nobody")
    return f"{name:5} " + ", ".join(parts)


@pytest.mark.timeout(90)
def test_hung_class_stops_nobody_else(tmp_path: Path) -> None:
    """About 22 s: the whole hang, since the age of the calls matters only after half of it."""
    ours, plain = side_by_side("tests.acceptance.app:app", HUNG, KINDS, tmp_path)
    print(describe("ours", ours), describe("plain", plain), sep="\n")

    for kind in OTHERS:
        assert kept(ours, kind) >= 0.95
        assert kept(plain, kind) < 0.5  # else it was no hang that anybody had to survive

    checks = [one for one in ours.records if ours.plan.kinds[one.kind].name == HEALTH]
    assert share(checks) == 1.0
    assert latency(ours.asked("hang", HEALTH), 0.95) <= 50
    assert latency(plain.asked("hang", HEALTH), 0.5) > 50

    back = recovery(ours)
    assert back is not None
    assert back <= 3

    assert not started_for_nobody(ours)
    assert started_for_nobody(plain)
    assert share(ours.records, Outcome.BROKEN) == 0
