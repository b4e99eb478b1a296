"""
Every metric there is, once.

Exporters, dashboards, alert rules and the reference page take names from here and from nowhere
else. A spelling is an interface: people have it in their dashboards, so it does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from gunicorn_admission.core.statistics import PartitionStatistics, Statistics
from gunicorn_admission.core.types import Mode
from gunicorn_admission.observe.metric import Combine, Kind, Metric, Values

__all__ = ["BY_KEY", "METRICS"]

_Read = Callable[[Statistics], Values]


def _one(read: Callable[[Statistics], float]) -> _Read:
    return lambda statistics: {(): read(statistics)}


def _each(read: Callable[[PartitionStatistics], float]) -> _Read:
    return lambda statistics: {
        (name,): read(partition) for name, partition in statistics.partitions.items()
    }


METRICS: tuple[Metric, ...] = (
    Metric(
        key="limit",
        stem="concurrency_limit",
        kind=Kind.GAUGE,
        unit="{request}",
        help="Requests that may run at once now; the number that admission uses.",
        read=_one(lambda s: s.limit),
    ),
    Metric(
        key="limit_estimate",
        stem="concurrency_limit_estimate",
        kind=Kind.GAUGE,
        unit="{request}",
        help="What the limit's algorithm computed, before rounding and caps.",
        read=_one(lambda s: s.estimate),
    ),
    Metric(
        key="limit_max",
        stem="concurrency_limit_max",
        kind=Kind.GAUGE,
        unit="{request}",
        help="Hard bound of the limit: the threads that may run requests.",
        read=_one(lambda s: s.max_limit),
    ),
    Metric(
        key="inflight",
        stem="inflight_requests",
        kind=Kind.GAUGE,
        unit="{request}",
        help="Requests running now.",
        read=_one(lambda s: s.inflight),
    ),
    Metric(
        key="queue",
        stem="waiting_requests",
        kind=Kind.GAUGE,
        unit="{request}",
        help="Requests waiting for a slot now.",
        read=_one(lambda s: s.waiting),
    ),
    Metric(
        key="overloaded",
        kind=Kind.GAUGE,
        combine=Combine.MAX,
        help="1 while a queue stands that does not drain, else 0.",
        read=_one(lambda s: s.overloaded),
    ),
    Metric(
        key="paused",
        kind=Kind.GAUGE,
        combine=Combine.MAX,
        help="1 while all requests are refused on an operator's order, else 0.",
        read=_one(lambda s: s.paused),
    ),
    Metric(
        key="mode",
        kind=Kind.GAUGE,
        labels=("mode",),
        help="1 for the mode in force (enforce, monitor, off), 0 for the others.",
        read=lambda s: {(mode.value,): s.mode == mode.value for mode in Mode},
    ),
    Metric(
        key="stuck",
        stem="stuck_requests",
        kind=Kind.GAUGE,
        unit="{request}",
        help="Running requests that are past the stall age.",
        read=_one(lambda s: s.stuck),
    ),
    Metric(
        key="threads_left",
        kind=Kind.GAUGE,
        unit="{thread}",
        help="Threads that may run requests and do not hang.",
        read=_one(lambda s: s.threads_left),
    ),
    Metric(
        key="starved",
        kind=Kind.GAUGE,
        combine=Combine.MAX,
        help="1 while so many requests hang that too few threads are left, else 0.",
        read=_one(lambda s: s.starved),
    ),
    Metric(
        key="node_limit",
        kind=Kind.GAUGE,
        unit="{request}",
        combine=Combine.MAX,
        help="Bound on requests in all workers of the node together; 0 for none.",
        read=_one(lambda s: s.node_limit),
    ),
    Metric(
        key="node_inflight",
        stem="node_inflight_requests",
        kind=Kind.GAUGE,
        unit="{request}",
        combine=Combine.MAX,
        help="Requests that run now under that bound, in all workers together.",
        read=_one(lambda s: s.node_inflight),
    ),
    Metric(
        key="reading",
        stem="reading_connections",
        kind=Kind.GAUGE,
        unit="{connection}",
        help="Connections still sending their request; they hold no thread.",
        read=_one(lambda s: s.reading),
    ),
    Metric(
        key="rtt",
        kind=Kind.GAUGE,
        unit="seconds",
        combine=Combine.MAX,
        help="Usual service time, a moving mean; 0 before the first request.",
        read=_one(lambda s: s.rtt_seconds),
    ),
    Metric(
        key="release_rate",
        kind=Kind.GAUGE,
        unit="{request}/s",
        help="Requests that can be finished per second: the limit over the service time.",
        read=_one(lambda s: s.release_rate),
    ),
    Metric(
        key="queue_delay",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        help="Time from arrival to a slot, of the requests that got one.",
        read=_one(lambda s: sum(s.delay_buckets)),
    ),
    Metric(
        key="arrivals",
        kind=Kind.COUNTER,
        unit="{request}",
        help="Requests that asked for a slot.",
        read=_one(lambda s: s.arrivals),
    ),
    Metric(
        key="admitted",
        kind=Kind.COUNTER,
        unit="{request}",
        labels=("priority",),
        help="Requests that got a slot.",
        read=lambda s: {(priority,): n for priority, n in s.granted_by_priority.items()},
    ),
    Metric(
        key="shed",
        kind=Kind.COUNTER,
        unit="{request}",
        labels=("priority", "reason"),
        help="Requests refused.",
        read=lambda s: {(priority, reason): n for (priority, reason), n in s.shed.items()},
    ),
    Metric(
        key="would_shed",
        kind=Kind.COUNTER,
        unit="{request}",
        labels=("priority", "reason"),
        help="Requests that were served in monitor mode and would be refused in enforce mode.",
        read=lambda s: {(priority, reason): n for (priority, reason), n in s.would_shed.items()},
    ),
    Metric(
        key="abandoned",
        kind=Kind.COUNTER,
        unit="{request}",
        help="Requests dropped because their client had gone.",
        read=_one(lambda s: s.abandoned),
    ),
    Metric(
        key="bypassed",
        kind=Kind.COUNTER,
        unit="{request}",
        help="Exempt requests, such as health probes; they take no slot.",
        read=_one(lambda s: s.bypassed),
    ),
    Metric(
        key="released_twice",
        kind=Kind.COUNTER,
        help="Releases of a permit that had already ended; a bug in the caller.",
        read=_one(lambda s: s.released_twice),
    ),
    Metric(
        key="leaked",
        kind=Kind.COUNTER,
        help="Permits ended by the garbage collector instead of a release; a bug in the caller.",
        read=_one(lambda s: s.leaked),
    ),
    Metric(
        key="partition_inflight",
        stem="partition_inflight_requests",
        kind=Kind.GAUGE,
        unit="{request}",
        labels=("partition",),
        help="Requests of a class running now.",
        read=_each(lambda p: p.inflight),
    ),
    Metric(
        key="partition_queue",
        stem="partition_waiting_requests",
        kind=Kind.GAUGE,
        unit="{request}",
        labels=("partition",),
        help="Requests of a class waiting for a slot now.",
        read=_each(lambda p: p.waiting),
    ),
    Metric(
        key="partition_cap",
        kind=Kind.GAUGE,
        unit="{slot}",
        labels=("partition",),
        help="Most slots that a class may hold now.",
        read=_each(lambda p: p.cap),
    ),
    Metric(
        key="partition_held",
        kind=Kind.GAUGE,
        unit="{slot}",
        labels=("partition",),
        help="Slots held back for a class that it does not use now.",
        read=_each(lambda p: p.held),
    ),
    Metric(
        key="partition_stalled",
        kind=Kind.GAUGE,
        labels=("partition",),
        combine=Combine.MAX,
        help="1 while a class is refused because it hangs, else 0.",
        read=_each(lambda p: p.stalled),
    ),
    Metric(
        key="partition_oldest",
        kind=Kind.GAUGE,
        unit="seconds",
        labels=("partition",),
        combine=Combine.MAX,
        help="Age of the oldest running request of a class; 0 with none.",
        read=_each(lambda p: p.oldest_seconds),
    ),
    Metric(
        key="partition_admitted",
        kind=Kind.COUNTER,
        unit="{request}",
        labels=("partition",),
        help="Requests of a class that got a slot.",
        read=_each(lambda p: p.granted),
    ),
    Metric(
        key="partition_shed",
        kind=Kind.COUNTER,
        unit="{request}",
        labels=("partition",),
        help="Requests of a class that were refused.",
        read=_each(lambda p: p.shed),
    ),
)

#: The same by key.
BY_KEY: Mapping[str, Metric] = MappingProxyType({metric.key: metric for metric in METRICS})
