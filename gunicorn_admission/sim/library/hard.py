"""Cases that are known to mislead limits which learn from latency."""

from __future__ import annotations

from gunicorn_admission.sim.scenario import Class, Dependency, Fault, Phase, Scenario, Sender

__all__ = ["SCENARIOS"]

#: The yardstick's database: 500 requests a second, and it suffers from more.
_DB = Dependency(connections=10, seconds=0.020, contention=0.03)
_CAPACITY = _DB.capacity
_SENDER = Sender(patience=1.0)
_KIND = (Class(name="/", sender=_SENDER),)
_CPU_KIND = Class(name="/", dependency=None, cpu=0.020, sender=_SENDER)

SCENARIOS = (
    Scenario(
        name="sustained-1.25x",
        title="a quarter more than the capacity for half an hour",
        phases=(
            Phase(name="calm", seconds=60, rate=25),
            Phase(name="over", seconds=1800, rate=62.5),
        ),
        measured=("over",),
        classes=(Class(name="/", sender=Sender(patience=3.0)),),
        dependencies=(Dependency(connections=4, seconds=0.080, contention=0.03),),
        oracle=4,
    ),
    Scenario(
        name="night-then-day",
        title="little and fast traffic all night, then half as much again as can be done",
        phases=(
            Phase(name="night", seconds=900, rate=3, faults={"db": Fault(slower=0.4)}),
            Phase(name="day", seconds=120, rate=1.5 * _CAPACITY),
        ),
        measured=("day",),
        classes=_KIND,
        dependencies=(_DB,),
        oracle=11,
    ),
    Scenario(
        name="lucky-samples",
        title="one call of twenty is answered from a cache, under overload",
        phases=(
            Phase(name="calm", seconds=20, rate=0.5 * _CAPACITY),
            Phase(name="over", seconds=60, rate=1.5 * _CAPACITY),
        ),
        measured=("over",),
        classes=_KIND,
        dependencies=(
            Dependency(
                connections=10, seconds=0.020, contention=0.03, lucky=0.05, lucky_seconds=0.001
            ),
        ),
        oracle=11,
    ),
    Scenario(
        name="constant-timeouts",
        title="for half a minute every call ends in a timeout after exactly a second",
        phases=(
            Phase(name="calm", seconds=20, rate=0.5 * _CAPACITY),
            Phase(
                name="timeouts",
                seconds=30,
                rate=0.5 * _CAPACITY,
                faults={"db": Fault(hangs=True)},
            ),
            Phase(name="after", seconds=30, rate=0.9 * _CAPACITY),
        ),
        measured=("after",),
        classes=(Class(name="/", sender=Sender(patience=3.0)),),
        dependencies=(Dependency(connections=10, seconds=0.020, contention=0.03, timeout=1.0),),
        oracle=11,
    ),
    Scenario(
        name="gc-pause",
        title="0.8 of the capacity, and every five seconds the process stands still for 0.3 s",
        phases=(
            Phase(name="pauses", seconds=60, rate=0.8 * _CAPACITY, pause_every=5.0, pause=0.3),
        ),
        classes=(Class(name="/", cpu=0.0005, sender=_SENDER),),
        dependencies=(_DB,),
        oracle=12,
    ),
    Scenario(
        name="cpu-bound",
        title="20 ms of CPU a request under the GIL, half as much again as it can do",
        phases=(
            Phase(name="calm", seconds=20, rate=25),
            Phase(name="over", seconds=60, rate=75),
        ),
        measured=("over",),
        classes=(_CPU_KIND,),
        dependencies=(),
        threads=64,
        oracle=6,
    ),
    Scenario(
        name="mixed",
        title="fast and slow endpoints; the fast ones come to half as much again as can be done",
        phases=(
            Phase(name="calm", seconds=20, rate=514),
            Phase(name="over", seconds=60, rate=1514, mix={"/fast": 1500, "/slow": 14}),
        ),
        classes=(
            Class(name="/fast", weight=500, dependency="db", sender=_SENDER),
            Class(name="/slow", weight=14, dependency="reports", sender=Sender(patience=5.0)),
        ),
        dependencies=(
            Dependency(connections=10, seconds=0.010, contention=0.03),
            Dependency(name="reports", connections=10, seconds=0.5),
        ),
        oracle=16,
    ),
    Scenario(
        name="retry-storm",
        title="a database that is slow for a while, clients that retry at once three times",
        phases=(
            Phase(name="usual", seconds=10, rate=0.7 * _CAPACITY),
            Phase(
                name="slow",
                seconds=10,
                rate=0.7 * _CAPACITY,
                faults={"db": Fault(slower=5.0)},
            ),
            Phase(name="after", seconds=30, rate=0.7 * _CAPACITY),
        ),
        after="after",
        classes=(
            Class(
                name="/",
                sender=Sender(patience=1.0, retries=(0.1, 0.2, 0.4), obeys_retry_after=False),
            ),
        ),
        dependencies=(_DB,),
        oracle=11,
    ),
    Scenario(
        name="priority-inversion",
        title="a flood of long, unimportant reports beside short, important requests",
        phases=(
            Phase(name="usual", seconds=10, rate=200, mix={"/orders": 190, "/reports": 10}),
            Phase(name="flood", seconds=40, rate=300, mix={"/orders": 200, "/reports": 100}),
            Phase(name="after", seconds=10, rate=200, mix={"/orders": 190, "/reports": 10}),
        ),
        measured=("flood",),
        after="after",
        classes=(
            Class(name="/orders", rule="high", sender=_SENDER),
            Class(name="/reports", rule="low", scale=10.0, sender=Sender(patience=5.0)),
        ),
        dependencies=(_DB,),
        oracle=10,
    ),
    Scenario(
        name="recovery",
        title="a database that hangs for a quarter of a minute, and what comes after",
        phases=(
            Phase(name="usual", seconds=10, rate=0.7 * _CAPACITY),
            Phase(name="hang", seconds=15, rate=0.7 * _CAPACITY, faults={"db": Fault(hangs=True)}),
            Phase(name="after", seconds=20, rate=0.7 * _CAPACITY),
        ),
        measured=("after",),
        classes=_KIND,
        dependencies=(_DB,),
        oracle=12,
    ),
)
