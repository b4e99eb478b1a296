"""Giving classes their shares and caps while the limiter runs."""

from __future__ import annotations

from collections.abc import Iterable

from gunicorn_admission.core.policy import PartitionPolicy
from gunicorn_admission.limiter.tickets import TicketLimiter

__all__ = ["define"]


def define(limiter: TicketLimiter, policies: Iterable[PartitionPolicy]) -> None:
    """
    Give traffic classes a policy, new ones and known ones; what they hold, they keep.

    A class that has the same policy already is left alone, so that one which is held back
    because it hangs is not let go by a repetition.

    Args:
        limiter: Whose classes they are; a forked child of it gets them too.
        policies: One for each class.

    Thread safety: may be called from any thread.
    """
    with limiter._lock:
        shares = limiter._controller.shares
        known = {policy.name: policy for policy in limiter._partition_policies}
        for policy in policies:
            found = shares.find(policy.name)
            if found is None or found.policy != policy:
                shares.define(policy)
            known[policy.name] = policy
        limiter._partition_policies = tuple(known.values())
        limiter._controller.grant_waiting(limiter._clock())  # a larger cap makes room
        told = limiter._take()
    limiter._settle(told)
