"""
Faults that hit some nodes or some endpoints of several.

Modelled after the cases of Palantir's dialogue simulator (black hole, all nodes 500,
drastic slowdown, fast 400s and 503s then revert, one big spike, one endpoint dies on each server),
seen from the server's side: there the client picks nodes, here each node admits.
"""

from __future__ import annotations

from gunicorn_admission.sim.scenario import Class, Dependency, Fault, Phase, Scenario, Sender

__all__ = ["SCENARIOS"]

_SENDER = Sender(patience=5.0)
_KIND = (Class(name="/", sender=_SENDER),)
#: A node does about 330 requests a second.
_NODE = Dependency(connections=20, seconds=0.060, contention=0.01)


def _hit(
    rate: float, faults: dict[str, Fault], *, before: float = 5, during: float = 20
) -> tuple[Phase, ...]:
    return (
        Phase(name="before", seconds=before, rate=rate),
        Phase(name="during", seconds=during, rate=rate, faults=faults),
        Phase(name="after", seconds=15, rate=rate),
    )


SCENARIOS = (
    Scenario(
        name="black-hole",
        title="one node of three accepts and never answers",
        phases=_hit(400, {"db": Fault(hangs=True, workers=(0,))}),
        classes=_KIND,
        dependencies=(_NODE,),
        workers=3,
        balancing="round_robin",
        elsewhere=1,
        oracle=22,
    ),
    Scenario(
        name="all-nodes-500",
        title="every request on both nodes fails for ten seconds, as slowly as usual",
        phases=_hit(
            60,
            {"db": Fault(fails=1.0, fails_after=0.6, overload=False)},
            during=10,
        ),
        measured=("before", "after"),
        classes=_KIND,
        dependencies=(Dependency(connections=28, seconds=0.6, contention=0.01),),
        workers=2,
        balancing="round_robin",
        oracle=32,
    ),
    Scenario(
        name="drastic-slowdown",
        title="one node of two takes ten seconds instead of 60 ms for a while",
        phases=_hit(250, {"db": Fault(slower=160.0, workers=(0,))}, during=8),
        classes=_KIND,
        dependencies=(_NODE,),
        workers=2,
        balancing="round_robin",
        elsewhere=1,
        oracle=22,
    ),
    Scenario(
        name="fast-503s-then-revert",
        title="a node of two fails at once for some seconds, and is well again",
        phases=_hit(450, {"db": Fault(fails=1.0, fails_after=0.01, workers=(0,))}, during=7),
        classes=_KIND,
        dependencies=(_NODE,),
        workers=2,
        balancing="round_robin",
        elsewhere=1,
        oracle=22,
    ),
    Scenario(
        name="fast-400s-then-revert",
        title="a node of two refuses what it gets as wrong, at once, and is well again",
        phases=_hit(
            450,
            {"db": Fault(fails=1.0, fails_after=0.01, overload=False, workers=(0,))},
            during=7,
        ),
        classes=_KIND,
        dependencies=(_NODE,),
        workers=2,
        balancing="round_robin",
        oracle=22,
    ),
    Scenario(
        name="one-big-spike",
        title="a thousand requests at once",
        phases=(
            Phase(name="quiet", seconds=5, rate=50),
            Phase(name="spike", seconds=0.033, rate=30_000),
            Phase(name="quiet again", seconds=10, rate=50),
        ),
        classes=_KIND,
        dependencies=(Dependency(connections=50, seconds=0.15, contention=0.003),),
        threads=64,
        workers=2,
        balancing="round_robin",
        elsewhere=1,
        oracle=64,
    ),
    Scenario(
        name="one-endpoint-dies",
        title="on each of two nodes another endpoint hangs",
        phases=_hit(
            200,
            {"one": Fault(hangs=True, workers=(0,)), "two": Fault(hangs=True, workers=(1,))},
        ),
        classes=(
            Class(name="/one", dependency="one", sender=_SENDER),
            Class(name="/two", dependency="two", sender=_SENDER),
        ),
        dependencies=(
            Dependency(name="one", connections=20, seconds=0.060, contention=0.01),
            Dependency(name="two", connections=20, seconds=0.060, contention=0.01),
        ),
        workers=2,
        balancing="round_robin",
        elsewhere=1,
        oracle=28,
    ),
)
