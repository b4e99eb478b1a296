"""The snapshot that ``Limiter.statistics()`` returns and every exporter reads."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

__all__ = ["DELAY_BUCKETS", "PartitionStatistics", "Statistics"]

#: Upper bounds of the queue delay histogram in seconds; a last bucket holds the rest.
DELAY_BUCKETS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)


@frozen(kw_only=True)
class PartitionStatistics:
    """
    One traffic class.

    Attributes:
        inflight: Slots held now.
        waiting: Requests queued now.
        cap: Most slots it may hold now (lower while it is suspected to hang).
        held: Slots held back for it now that it does not use.
        stalled: Whether it is refused because it hangs.
        oldest_seconds: Age of its oldest running request; 0.0 with none.
        granted, shed: Totals since start.
    """

    inflight: int
    waiting: int
    cap: int
    held: int
    stalled: bool
    oldest_seconds: float
    granted: int
    shed: int


@frozen(kw_only=True)
class Statistics:
    """
    State of one limiter at one instant, taken under its lock.

    Attributes:
        limit: Concurrency allowed now (an integer; what admission uses).
        estimate: The algorithm's float before rounding and caps.
        max_limit: Hard bound.
        inflight: Permits held now.
        waiting: Requests queued now.
        overloaded: A queue stands that does not drain.
        paused, closed: Refusing everything; shutting down.
        mode: ``"enforce"``, ``"monitor"`` or ``"off"``.
        arrivals, granted, abandoned: Totals; abandoned are those whose client had left.
        bypassed: Exempt requests seen.
        released_twice: Releases of a permit that had already ended (a bug in the caller).
        leaked: Permits ended by the garbage collector instead of a release.
        granted_by_priority: Totals by priority name.
        shed: Totals by (priority name, reason value).
        would_shed: The same, counted in monitor mode.
        delay_buckets: Counts per :data:`DELAY_BUCKETS` bound, and one for the rest.
        delay_sum_seconds: Sum of all queue delays.
        rtt_seconds: Moving mean of the service time; 0.0 before the first.
        release_rate: Requests that can be finished per second: ``limit / rtt_seconds``.
        stuck: Requests in flight that are past the stall age.
        partitions: By name.
        reading: Connections that are still sending their request, and hold no thread.
        starved: So many requests hang that too few threads are left.
        node_limit: Bound over all workers of the node; 0 for none.
        node_inflight: What they hold of it together.
    """

    limit: int
    estimate: float
    max_limit: int
    inflight: int
    waiting: int
    overloaded: bool
    paused: bool
    closed: bool
    mode: str
    arrivals: int
    granted: int
    abandoned: int
    bypassed: int
    released_twice: int
    leaked: int
    granted_by_priority: Mapping[str, int]
    shed: Mapping[tuple[str, str], int]
    would_shed: Mapping[tuple[str, str], int]
    delay_buckets: tuple[int, ...]
    delay_sum_seconds: float
    rtt_seconds: float
    release_rate: float
    stuck: int
    partitions: Mapping[str, PartitionStatistics] = field(factory=dict)
    reading: int = 0
    starved: bool = False
    node_limit: int = 0
    node_inflight: int = 0

    @property
    def threads_left(self) -> int:
        """Threads that may run requests and do not hang."""
        return max(0, self.max_limit - self.stuck)

    @property
    def ready(self) -> bool:
        """Whether it makes sense to send requests here."""
        return not (self.starved or self.paused or self.closed)

    @property
    def shed_total(self) -> int:
        """Requests refused since start, whatever the reason."""
        return sum(self.shed.values())
