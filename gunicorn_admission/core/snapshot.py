"""A consistent copy of a controller's state, for ``Limiter.statistics()``."""

from __future__ import annotations

from gunicorn_admission.core.controller import Controller
from gunicorn_admission.core.partition import Partition
from gunicorn_admission.core.policy import SECOND
from gunicorn_admission.core.statistics import PartitionStatistics, Statistics
from gunicorn_admission.core.types import Priority, Reason

__all__ = ["snapshot"]


def snapshot(controller: Controller, now_ns: int) -> Statistics:
    """Copy what can be seen from outside; call it under the lock."""
    totals, rtt_ns = controller.totals, controller.congestion.rtt_ns
    return Statistics(
        limit=controller.allowed,
        estimate=controller.limit.estimate,
        max_limit=controller.policy.max_limit,
        inflight=controller.inflight,
        waiting=controller.waiting,
        overloaded=controller.congestion.overloaded,
        paused=controller.paused,
        closed=controller.closed,
        mode=controller.mode.value,
        arrivals=totals.arrivals,
        granted=sum(totals.granted),
        abandoned=totals.abandoned,
        bypassed=totals.bypassed,
        released_twice=totals.released_twice,
        leaked=totals.leaked,
        granted_by_priority={
            priority.name.lower(): totals.granted[priority] for priority in Priority
        },
        shed=_labelled(totals.shed),
        would_shed=_labelled(totals.would_shed),
        delay_buckets=tuple(totals.delay_buckets),
        delay_sum_seconds=totals.delay_sum_ns / SECOND,
        rtt_seconds=rtt_ns / SECOND,
        release_rate=controller.allowed * SECOND / rtt_ns if rtt_ns else 0.0,
        stuck=controller.stalls.stuck,
        starved=controller.starved,
        partitions={p.name: _partition(p, now_ns) for p in controller.shares},
    )


def _labelled(counts: dict[tuple[Priority, Reason], int]) -> dict[tuple[str, str], int]:
    return {(priority.name.lower(), reason.value): n for (priority, reason), n in counts.items()}


def _partition(partition: Partition, now_ns: int) -> PartitionStatistics:
    return PartitionStatistics(
        inflight=partition.inflight,
        waiting=partition.waiting,
        cap=partition.room,
        held=max(0, partition.guarantee - partition.inflight),
        stalled=partition.stalled,
        oldest_seconds=partition.oldest_age_ns(now_ns) / SECOND,
        granted=partition.granted,
        shed=partition.shed,
    )
