"""
What can be simulated, as data: phases of load, traffic classes, dependencies, senders.

Times are in seconds and rates in requests per second, as people write them; the run
converts them to nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import field, fields, frozen
from attrs.validators import ge, gt, in_

from gunicorn_admission.core.types import Priority
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings import RuleLike, Settings

__all__ = ["Balancing", "Class", "Dependency", "Fault", "Phase", "Scenario", "Sender"]

Balancing = Literal["random", "round_robin", "least"]


@frozen(kw_only=True)
class Sender:
    """
    How a client behaves.

    Attributes:
        patience: Seconds after which it gives an attempt up and closes the connection.
        retries: Seconds from a failed attempt to the next one, one entry for each retry;
            ``()`` never retries.
        jitter: Each of these is spread by this fraction to both sides.
        obeys_retry_after: It waits at least as long as a refusal asks for.
    """

    patience: float = field(default=3.0, validator=gt(0))
    retries: tuple[float, ...] = ()
    jitter: float = field(default=0.2, validator=ge(0))
    obeys_retry_after: bool = True


@frozen(kw_only=True)
class Class:
    """
    One kind of request.

    Attributes:
        name: Path; also the name of its traffic class.
        weight: Share of the arrivals, relative to the other classes.
        rule: As in the setting ``routes``: ``"high"``, ``"low"``, a table.
        dependency: Name of what it calls once; ``None`` calls nothing.
        scale: Its calls take so many times the usual time of the dependency.
        cpu: Seconds of CPU under the GIL, half before the call and half after it.
        sender: Who sends it.
    """

    name: str
    weight: float = field(default=1.0, validator=ge(0))
    rule: RuleLike = "default"
    dependency: str | None = "db"
    scale: float = field(default=1.0, validator=gt(0))
    cpu: float = field(default=0.0, validator=ge(0))
    sender: Sender = Sender()


@frozen(kw_only=True)
class Dependency:
    """
    What requests wait for: a pool of connections in front of something that takes time.

    Attributes:
        name: For ``Class.dependency`` and ``Phase.faults``.
        connections: Calls served at once; the others wait in line.
        seconds: Mean time of a call, log-normal.
        spread: Sigma of its logarithm.
        contention: Every call in excess of ``connections`` makes calls that begin then
            slower by this fraction.
        overhead: Added to every call: sleep overshoot, wake-up, driver.
        timeout: A call that takes longer is given up with an error that means overload.
        lucky: Share of calls answered in ``lucky_seconds``, as from a cache.
        shared: One for all workers instead of one for each.
    """

    name: str = "db"
    connections: int = field(default=10, validator=ge(1))
    seconds: float = field(default=0.020, validator=gt(0))
    spread: float = field(default=0.25, validator=ge(0))
    contention: float = field(default=0.0, validator=ge(0))
    overhead: float = field(default=0.0, validator=ge(0))
    timeout: float | None = None
    lucky: float = 0.0
    lucky_seconds: float = 0.001
    shared: bool = False

    @property
    def capacity(self) -> float:
        """Calls per second at best."""
        return self.connections / self.seconds


@frozen(kw_only=True)
class Fault:
    """
    What is wrong with a dependency during a phase.

    Attributes:
        slower: Calls take so many times longer.
        hangs: Calls do not end before the fault does.
        fails: Share of the calls that fail, ``fails_after`` seconds after their start.
        overload: Whether such a failure means overload (503, timeout) or not (400, 500).
        workers: Only these workers are hit, by number from 0; ``None`` for all.
    """

    slower: float = field(default=1.0, validator=gt(0))
    hangs: bool = False
    fails: float = 0.0
    fails_after: float = 0.002
    overload: bool = True
    workers: tuple[int, ...] | None = None


@frozen(kw_only=True)
class Phase:
    """
    A stretch of time in which nothing changes.

    Attributes:
        name: For ``Scenario.measured`` and the plots.
        seconds: Its length.
        rate: Arrivals per second over all workers; Poisson.
        burst: So many arrive at once, at the same mean rate.
        ordered: A burst comes in the order of the classes, not mixed.
        mix: Weights that differ from ``Class.weight`` here, by class name.
        faults: By name of the dependency.
        pause_every, pause: The whole process stands still for ``pause`` seconds, once every
            ``pause_every`` (garbage collection, a noisy neighbour).
    """

    name: str
    seconds: float = field(validator=gt(0))
    rate: float = field(validator=gt(0))
    burst: int = field(default=1, validator=ge(1))
    ordered: bool = False
    mix: Mapping[str, float] = field(factory=dict)
    faults: Mapping[str, Fault] = field(factory=dict)
    pause_every: float = 0.0
    pause: float = 0.0


@frozen(kw_only=True)
class Scenario:
    """
    One experiment.

    Attributes:
        name, title: What to call it, and what happens in it.
        phases: In order.
        classes: The mix.
        dependencies: What the classes call.
        threads: Of each worker.
        settings: Of admission, beside ``routes``, which come from the classes.
        oracle: The fixed limit that somebody who knows everything would have set.
        measured: Phases whose figures count; ``()`` for all.
        after: Phase that shows whether the worker has recovered, or ``None``.
        workers: Processes behind the balancer, each with a limiter of its own.
        balancing: How a worker is chosen.
        uneven: Share of arrivals of the first worker in excess of an even one: 1.0 doubles
            it at the expense of the others. Only with ``balancing="random"``.
        elsewhere: A refusal or failure is tried again at so many other workers at once.
        admission_cpu: Seconds under the GIL for the decision on each arrival.
    """

    name: str
    title: str
    phases: tuple[Phase, ...]
    classes: tuple[Class, ...] = (Class(name="/"),)
    dependencies: tuple[Dependency, ...] = (Dependency(),)
    threads: int = field(default=32, validator=ge(1))
    settings: Mapping[str, object] = field(factory=dict)
    oracle: int = 10
    measured: tuple[str, ...] = ()
    after: str | None = None
    workers: int = field(default=1, validator=ge(1))
    balancing: Balancing = field(
        default="random", validator=in_(("random", "round_robin", "least"))
    )
    uneven: float = field(default=0.0, validator=ge(0))
    elsewhere: int = field(default=0, validator=ge(0))
    admission_cpu: float = field(default=0.0, validator=ge(0))

    def __attrs_post_init__(self) -> None:
        known = {dependency.name for dependency in self.dependencies}
        for kind in self.classes:
            if kind.dependency is not None:
                _known("dependency", kind.dependency, known)
        phases = {phase.name for phase in self.phases}
        for name in (*self.measured, *filter(None, [self.after])):
            _known("phase", name, phases)
        classes = {kind.name for kind in self.classes}
        for name in self.settings:
            _known("setting", name, {one.name for one in fields(Settings)})
        for phase in self.phases:
            for name in phase.faults:
                _known("dependency", name, known)
            for name in phase.mix:
                _known("class", name, classes)

    @property
    def seconds(self) -> float:
        """Length of all phases."""
        return sum(phase.seconds for phase in self.phases)

    @property
    def arrivals(self) -> float:
        """Expected number of first attempts."""
        return sum(phase.seconds * phase.rate for phase in self.phases)

    @property
    def counts(self) -> frozenset[str]:
        """Names of the phases whose figures count."""
        return frozenset(self.measured or (phase.name for phase in self.phases))

    def admission(self) -> Settings:
        """
        Return the settings of admission as a user would have them.

        Raises:
            ConfigError: ``settings`` or the rule of a class cannot work.
        """
        routes = {kind.name: kind.rule for kind in self.classes} if len(self.classes) > 1 else {}
        given = {"routes": routes, "partition_by": "route", **self.settings}
        return Settings(**given)  # type: ignore[arg-type]

    def priorities(self) -> tuple[Priority, ...]:
        """Priority of each class, in their order."""
        given = {rule.class_name: rule.priority for rule in self.admission().rules}
        found = (given.get(kind.name) for kind in self.classes)
        return tuple(Priority.DEFAULT if one is None else one for one in found)


def _known(what: str, name: str, names: set[str]) -> None:
    if name not in names:
        raise ConfigError(
            what, name, f"one of {', '.join(sorted(names))}", "the scenario names no other"
        )
