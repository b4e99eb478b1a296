"""Several workers on one database, each of which knows only what it sees itself."""

from __future__ import annotations

from gunicorn_admission.sim.scenario import Class, Dependency, Phase, Scenario, Sender

__all__ = ["SCENARIOS"]

_KIND = (Class(name="/", sender=Sender(patience=1.0)),)

SCENARIOS = (
    Scenario(
        name="uneven-workers",
        title="four workers on one database, one of which gets much more than the others",
        phases=(
            Phase(name="calm", seconds=10, rate=500),
            Phase(name="over", seconds=40, rate=1500),
        ),
        measured=("over",),
        classes=_KIND,
        dependencies=(Dependency(connections=20, seconds=0.020, contention=0.015, shared=True),),
        workers=4,
        uneven=1.0,
        oracle=6,
    ),
    Scenario(
        name="fleet",
        title="two hundred workers on one database, half as much again as it can do",
        phases=(
            Phase(name="calm", seconds=3, rate=4000),
            Phase(name="over", seconds=10, rate=12_000),
        ),
        measured=("over",),
        classes=_KIND,
        dependencies=(Dependency(connections=400, seconds=0.050, contention=0.001, shared=True),),
        threads=16,
        workers=200,
        balancing="round_robin",
        oracle=3,
    ),
)
