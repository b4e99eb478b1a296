"""The busiest stretch of a log as a scenario, as it was and as it would be with more load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import evolve, field, frozen

from gunicorn_admission.classify import RequestClass
from gunicorn_admission.settings import RouteRule, Settings
from gunicorn_admission.settings.patterns import parse_pattern
from gunicorn_admission.sim.scenario import Class, Dependency, Phase, Scenario, Sender
from gunicorn_admission.sim.tune.fit import Fit
from gunicorn_admission.sim.tune.windows import Traffic, Window

__all__ = ["OVERLOAD", "Deployment", "Stretch", "busiest", "scenarios"]

#: The second load, in parts of what the service can do at best.
OVERLOAD: Final = 1.5
_LONGEST, _LONG_ENOUGH = 120.0, 20.0
_ARRIVALS, _MOST_ARRIVALS = 4000.0, 20_000.0
_PHASES = 12
_WARM = 10.0
#: Variance over mean of the arrivals in a second from which on they come in bursts.
_BURSTY = 1.5


@frozen(kw_only=True)
class Deployment:
    """
    What the log does not say.

    Attributes:
        threads, workers: Of gunicorn.
        patience: Seconds after which clients give up.
        settings: What is configured, for the rules of classes.
    """

    threads: int
    workers: int
    patience: float
    settings: Settings = field(factory=Settings)


@frozen(kw_only=True)
class Stretch:
    """
    Windows that follow each other.

    Attributes:
        windows: Those in which something came; the stretch may have quiet ones between.
        start, seconds: Where it lies.
    """

    windows: tuple[Window, ...]
    start: float
    seconds: float

    @property
    def arrivals(self) -> int:
        """How many came."""
        return sum(window.arrivals.total() for window in self.windows)


def busiest(traffic: Traffic, means: Sequence[float]) -> Stretch:
    """Return the stretch in which most work came; two minutes, or less where much came."""
    work = [
        sum(count * means[kind] for kind, count in window.arrivals.items())
        for window in traffic.windows
    ]
    peak = max(range(len(work)), key=work.__getitem__)
    rate = traffic.windows[peak].arrivals.total() / traffic.width
    seconds = min(max(_ARRIVALS / rate, _LONG_ENOUGH), _LONGEST, _MOST_ARRIVALS / rate)
    count = max(1, round(seconds / traffic.width))
    best, best_work, low, total = (0, 0), -1.0, 0, 0.0
    for high, window in enumerate(traffic.windows):
        total += work[high]
        while window.start - traffic.windows[low].start >= count * traffic.width - 1e-6:
            total -= work[low]
            low += 1
        if total > best_work:
            best, best_work = (low, high + 1), total
    chosen = traffic.windows[best[0] : best[1]]
    last = chosen[-1].start + traffic.width
    # The stretch is as long as the log where that is shorter than what was asked for.
    span = traffic.windows[-1].start + traffic.width - traffic.windows[0].start
    length = max(last - chosen[0].start, min(count * traffic.width, span))
    return Stretch(windows=chosen, start=last - length, seconds=length)


def scenarios(
    traffic: Traffic, fit: Fit, stretch: Stretch, deployment: Deployment
) -> Mapping[str, Scenario]:
    """
    Return the loads that candidates are tried with, by name.

    ``logged`` is the busiest stretch as it was. ``overload`` is the same times a factor: to
    one and a half times what the service can do, or twice as much where it did that already.
    """
    work = _work(stretch, fit.means)
    capacity = fit.capacity.connections
    factor = max(OVERLOAD * capacity / max(work, 1e-9), OVERLOAD)
    classes = tuple(_classes(traffic, fit, stretch, deployment))
    first = Scenario(
        name="logged",
        title="the busiest stretch of the log",
        phases=_phases(traffic, stretch, [one.name for one in classes]),
        measured=("stretch",),
        classes=classes,
        dependencies=(
            Dependency(
                name="service",
                connections=capacity,
                seconds=fit.mean,
                spread=fit.sigma,
                contention=fit.capacity.contention,
                shared=True,
            ),
        ),
        threads=deployment.threads,
        workers=deployment.workers,
        oracle=max(1, round(capacity / deployment.workers)),
    )
    return {"logged": first, "overload": _times(first, factor)}


def _work(stretch: Stretch, means: Sequence[float]) -> float:
    arrived: Counter[int] = Counter()
    for window in stretch.windows:
        arrived.update(window.arrivals)
    return sum(count * means[kind] for kind, count in arrived.items()) / stretch.seconds


def _classes(traffic: Traffic, fit: Fit, stretch: Stretch, deployment: Deployment) -> list[Class]:
    arrived: Counter[int] = Counter()
    for window in stretch.windows:
        arrived.update(window.arrivals)
    given = {rule.class_name: rule for rule in deployment.settings.rules if not rule.exempt}
    sender = Sender(patience=deployment.patience)
    names = Counter(one.partition for one in traffic.classes)
    found = []
    for kind, one in enumerate(traffic.classes):
        name = one.partition
        if names[name] > 1:  # one class of requests with several priorities
            name = f"{name} {one.priority.name.lower()}"
        found.append(
            Class(
                name=name,
                weight=arrived[kind],
                rule=_rule(name, kind, one, given.get(one.partition)),
                dependency="service",
                scale=fit.means[kind] / fit.mean,
                sender=sender,
            )
        )
    return found


def _rule(name: str, kind: int, one: RequestClass, given: RouteRule | None) -> RouteRule:
    if given is not None:
        return evolve(given, name=name, priority=one.priority)
    # The path is never looked at in a simulation, but no two rules may have the same.
    return RouteRule(pattern=parse_pattern(f"/{kind}"), name=name, priority=one.priority)


def _phases(traffic: Traffic, stretch: Stretch, names: Sequence[str]) -> tuple[Phase, ...]:
    """A quiet start, from which limits learn what is usual, and then the stretch."""
    slots = min(_PHASES, max(1, round(stretch.seconds / traffic.width)))
    length = stretch.seconds / slots
    arrived: list[Counter[int]] = [Counter() for _ in range(slots)]
    for window in stretch.windows:
        place = int((window.start - stretch.start + 1e-6) / length)
        arrived[min(slots - 1, place)].update(window.arrivals)
    burst = max(1, round(traffic.dispersion)) if traffic.dispersion >= _BURSTY else 1
    usual = min(0.5 * stretch.arrivals / stretch.seconds, traffic.requests / max(traffic.span, 1))
    return (
        Phase(name="warm", seconds=_WARM, rate=max(usual, 0.1)),
        *(
            Phase(
                name="stretch",
                seconds=length,
                rate=max(counts.total() / length, 0.1),
                burst=burst,
                mix={name: counts[kind] for kind, name in enumerate(names)} if counts else {},
            )
            for counts in arrived
        ),
    )


def _times(scenario: Scenario, factor: float) -> Scenario:
    """The same with more load, shorter where it would become too much to simulate."""
    warm, *rest = scenario.phases
    arrivals = sum(phase.seconds * phase.rate for phase in rest) * factor
    seconds = sum(phase.seconds for phase in rest)
    wanted = max(_ARRIVALS / arrivals, _LONG_ENOUGH / seconds)
    shorter = min(1.0, wanted, _MOST_ARRIVALS / arrivals)
    return evolve(
        scenario,
        name="overload",
        title=f"{factor:.3g} times as much" if factor < 1000 else f"{factor:,.0f} times as much",
        phases=(
            warm,
            *(
                evolve(phase, seconds=phase.seconds * shorter, rate=phase.rate * factor)
                for phase in rest
            ),
        ),
    )
