"""
The yardstick: one database that suffers from being asked for too much at once.

32 threads in front of 10 connections of 20 ms, every request in line makes calls slower by
3 %. The oracle is a fixed limit of 10. A rule that finds capacity under sustained overload
(A, B) tends to take a database that just became slower for congestion (D), and the other
way round; a limit has to do all four with one set of defaults.
"""

from __future__ import annotations

from gunicorn_admission.sim.scenario import Class, Dependency, Fault, Phase, Scenario, Sender

__all__ = ["SCENARIOS"]

_DB = Dependency(connections=10, seconds=0.020, contention=0.03)
_KIND = Class(name="/", sender=Sender(patience=1.0))
_CALM, _OVER, _SOME = 250.0, 1000.0, 300.0
_SLOW = {"db": Fault(slower=5.0)}


def _yardstick(
    letter: str, title: str, phases: tuple[Phase, ...], measured: str, after: str | None = None
) -> Scenario:
    return Scenario(
        name=f"yardstick-{letter}",
        title=title,
        phases=phases,
        measured=(measured,),
        after=after,
        classes=(_KIND,),
        dependencies=(_DB,),
        threads=32,
        oracle=10,
    )


_SLOWER = (
    Phase(name="usual", seconds=60, rate=_SOME),
    Phase(name="slow", seconds=120, rate=_SOME, faults=_SLOW),
    Phase(name="after", seconds=20, rate=_SOME),
)

SCENARIOS = (
    _yardstick(
        "A",
        "twice the capacity from the first moment on",
        (
            Phase(name="start", seconds=30, rate=_OVER),
            Phase(name="over", seconds=150, rate=_OVER),
        ),
        "over",
    ),
    _yardstick(
        "B",
        "a calm minute, then twice the capacity",
        (
            Phase(name="calm", seconds=60, rate=_CALM),
            Phase(name="over", seconds=120, rate=_OVER),
            Phase(name="after", seconds=20, rate=_CALM),
        ),
        "over",
        "after",
    ),
    _yardstick(
        "D", "a database that is five times slower for two minutes", _SLOWER, "slow", "after"
    ),
    _yardstick("D2", "the twenty seconds after D", _SLOWER, "after"),
)
