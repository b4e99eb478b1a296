"""
The overload benchmark's loads, so that the model can be held against a real server.

64 threads, a database of 8 connections and 20 ms (400 requests a second, called 1x), 20 %
payments (high), 50 % updates, 30 % analytics (low). ``benchmarks/overload`` runs the same
against gunicorn itself.
"""

from __future__ import annotations

from gunicorn_admission.sim.scenario import Class, Dependency, Fault, Phase, Scenario, Sender

__all__ = ["SCENARIOS"]

_CAPACITY = 400.0
# Measured on the real server: what a call takes beyond its sleep, CPU of a request, and
# CPU of a refusal on the main loop.
_OVERHEAD = 0.0006
_CPU = 0.0008
_REFUSAL = 0.000086


def _classes(patience: float) -> tuple[Class, ...]:
    sender = Sender(patience=patience)
    return (
        Class(name="/payments", weight=0.2, rule="high", cpu=_CPU, sender=sender),
        Class(name="/updates", weight=0.5, rule="default", cpu=_CPU, sender=sender),
        Class(name="/analytics", weight=0.3, rule="low", cpu=_CPU, sender=sender),
    )


def _overload(
    letter: str,
    title: str,
    phases: tuple[Phase, ...],
    *,
    patience: float = 5.0,
    connections: int = 8,
    seconds: float = 0.020,
) -> Scenario:
    return Scenario(
        name=f"overload-{letter}",
        title=title,
        phases=phases,
        measured=(phases[1].name,),
        after=phases[2].name if len(phases) > 2 else None,
        classes=_classes(patience),
        dependencies=(Dependency(connections=connections, seconds=seconds, overhead=_OVERHEAD),),
        threads=64,
        # One for each connection, and a few that fill the gap between two requests.
        oracle=connections + 4,
        admission_cpu=_REFUSAL,
    )


def _around(
    name: str,
    load: float,
    seconds: float,
    *,
    before: float = 0.5,
    after: float = 7.0,
    fault: Fault | None = None,
) -> tuple[Phase, ...]:
    return (
        Phase(name="warm", seconds=2, rate=_CAPACITY * before),
        Phase(
            name=name,
            seconds=seconds,
            rate=_CAPACITY * load,
            faults={} if fault is None else {"db": fault},
        ),
        Phase(name="after", seconds=after, rate=_CAPACITY * before),
    )


def _steady(burst: int = 1) -> tuple[Phase, ...]:
    rate = _CAPACITY * 0.5
    return (
        Phase(name="warm", seconds=1, rate=rate),
        # The load generator sends what is due at the same moment in the order of the classes.
        Phase(name="steady", seconds=6, rate=rate, burst=burst, ordered=True),
    )


_OVER = _around("over", 3, 7)

SCENARIOS = (
    _overload("A", "half the capacity", _steady()),
    _overload("AB", "half the capacity, in bursts of 32", _steady(32)),
    _overload("BFG", "three times the capacity", _OVER, patience=3.0),
    _overload("C", "ten times the capacity", _around("over", 10, 5)),
    _overload(
        "D",
        "0.8 of the capacity, a database ten times slower",
        _around("slow", 0.8, 10, before=0.8, after=5, fault=Fault(slower=10.0)),
    ),
    _overload(
        "E",
        "half the capacity, a database that hangs",
        _around("hang", 0.5, 10, fault=Fault(hangs=True)),
    ),
    _overload(
        "H",
        "as BFG, with a database of 32 connections and 80 ms",
        _OVER,
        patience=3.0,
        connections=32,
        seconds=0.080,
    ),
)
