"""
Held-back shares and caps: which class may take a slot.

A share reserves slots for a class inside the hard bound, whether it uses them or not.
That, and not the adaptive limit, is what keeps a hung class from starving the others:
a limit shared by all is soon held by the requests that never end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from gunicorn_admission.core.partition import Partition
from gunicorn_admission.core.policy import PartitionPolicy

__all__ = ["MAX_PARTITIONS", "OTHER", "Shares"]

#: Bound on classes, since their names may come from outside; later ones share ``OTHER``.
MAX_PARTITIONS = 1024
OTHER = "(other)"
#: 0.07 x 100 is 7.000000000000001 in floats, which is still seven slots.
_ROUNDING = 1e-9


class Shares:
    """
    The partitions of one limiter, and the slots held back among them.

    Args:
        class_cap: Cap of a partition without one of its own; ``None`` for ``max_limit``.
        max_limit: Hard bound of the limiter.

    Attributes:
        held: Slots reserved for classes that do not use them now.
    """

    def __init__(self, max_limit: int, class_cap: int | None) -> None:
        self._max_limit = max_limit
        self._class_cap = max_limit if class_cap is None else class_cap
        self._limit = max_limit
        self._partitions: dict[str, Partition] = {}
        self.held = 0

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions.values())

    def find(self, name: str) -> Partition | None:
        """Return the partition of that name if there is one; needs no lock."""
        return self._partitions.get(name)

    def get(self, name: str) -> Partition:
        """Return the partition of that name, made on first use."""
        partition = self._partitions.get(name)
        if partition is None:
            if len(self._partitions) >= MAX_PARTITIONS:
                name = OTHER
                if (partition := self._partitions.get(OTHER)) is not None:
                    return partition
            partition = self.define(PartitionPolicy(name=name))
        return partition

    def define(self, policy: PartitionPolicy) -> Partition:
        """Create a partition, or give an existing one a new policy; slots held survive."""
        cap = self._class_cap if policy.cap is None else min(policy.cap, self._max_limit)
        if policy.node_cap is not None:
            cap = min(cap, policy.node_cap)
        partition = self._partitions.get(policy.name)
        if partition is None:
            partition = self._partitions[policy.name] = Partition(policy, cap)
        else:
            partition.policy = policy
            partition.cap = cap
            partition.room = min(partition.room, cap) if partition.frozen_at_ns else cap
        self.rebalance(self._limit)
        return partition

    def rebalance(self, limit: int) -> None:
        """Recompute what is held back, after the limit or a policy changed."""
        self._limit = limit
        # Rounded up, so that a small share of a small limit is still a slot; but somebody
        # without a share must always be able to run.
        if self._promise(math.ceil, -_ROUNDING) >= limit:
            self._promise(math.floor, _ROUNDING)
        self.held = sum(
            max(0, p.guarantee - p.inflight) for p in self._partitions.values() if p.guarantee
        )

    def _promise(self, to_slots: Callable[[float], int], lean: float) -> int:
        total = 0
        for partition in self._partitions.values():
            share = partition.policy.share
            # What it may not hold because of its cap need not be held back either.
            slots = min(to_slots(share * self._limit + lean), partition.cap) if share else 0
            partition.guarantee = slots
            total += slots
        return total

    def admits(self, partition: Partition, inflight: int) -> bool:
        """Whether a slot may go to that class without touching what others are promised."""
        return partition.inflight < partition.guarantee or inflight < self._limit - self.held
