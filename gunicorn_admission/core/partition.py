"""The running state of one traffic class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gunicorn_admission.core.policy import SECOND, PartitionPolicy

if TYPE_CHECKING:
    from gunicorn_admission.core.ticket import Ticket

__all__ = ["PROBE_INTERVAL_NS", "Partition"]

PROBE_INTERVAL_NS = SECOND


class Partition:
    """
    Counts and clocks of one traffic class; guarded by the limiter's lock.

    Attributes:
        cap: Most slots it may hold by policy.
        room: Most slots it may hold now: ``cap``, or less while it is suspected to hang.
        guarantee: Slots held back for it at the present limit.
        inflight, waiting: Slots held, requests queued.
        running: Tickets in flight, oldest first.
        stuck: Those of them that were past the stall age at the last look.
        rtt_ns: Moving mean of its service time; 0 before the first sample.
        slow_ns: The longest of its lately finished requests that were far from usual; it
            fades. Where some take a hundred times as long as others, silence means little.
        quiet_since_ns: Its last completion.
        frozen_at_ns: When it was found quiet for too long; 0 while it is not.
        hung_at_ns: From when on, frozen and still silent, it counts as hung.
        stalled: It hangs: only probes are let through.
        revived_ns: When a probe last ended a stall.
        next_probe_ns: Earliest time of the next probe.
        probe_wait_ns: Time from that one to the one after it.
        refused_in_a_row: Refusals since the last grant.
    """

    __slots__ = (
        "cap",
        "frozen_at_ns",
        "granted",
        "guarantee",
        "hung_at_ns",
        "inflight",
        "name",
        "next_probe_ns",
        "policy",
        "probe_wait_ns",
        "quiet_since_ns",
        "refused_in_a_row",
        "revived_ns",
        "room",
        "rtt_ns",
        "running",
        "shed",
        "slow_ns",
        "stalled",
        "stuck",
        "waiting",
    )

    def __init__(self, policy: PartitionPolicy, cap: int) -> None:
        self.policy = policy
        self.name = policy.name
        self.cap = self.room = cap
        self.guarantee = 0
        self.inflight = self.waiting = 0
        self.granted = self.shed = 0
        self.running: dict[Ticket, None] = {}
        self.stuck: set[Ticket] = set()
        self.rtt_ns = 0
        self.slow_ns = 0
        self.quiet_since_ns = 0
        self.frozen_at_ns = 0
        self.hung_at_ns = 0
        self.stalled = False
        self.revived_ns = 0
        self.next_probe_ns = 0
        self.probe_wait_ns = PROBE_INTERVAL_NS
        self.refused_in_a_row = 0

    def oldest_age_ns(self, now_ns: int) -> int:
        """Age of the request that has been running longest; 0 with none."""
        for ticket in self.running:
            return now_ns - ticket.granted_ns
        return 0

    def sample(self, rtt_ns: int) -> None:
        """Move the mean service time towards one more; an outlier counts four times at most."""
        mean = self.rtt_ns
        if not mean:
            self.rtt_ns = rtt_ns
        elif rtt_ns <= 4 * mean:
            self.rtt_ns = mean + (rtt_ns - mean >> 4)
        else:
            self.outlier(rtt_ns)
            self.slow_ns = max(self.slow_ns, rtt_ns)

    def outlier(self, rtt_ns: int) -> None:
        """Move the mean for a request that is far from usual by no more than it may."""
        mean = self.rtt_ns
        self.rtt_ns = mean + (3 * mean >> 4) if mean else rtt_ns
