"""
Who waits, and who is next.

Priority first. Inside a priority first come, first served, until the one in front has
waited longer than it may: then newest first (adaptive LIFO, Facebook's "Fail at Scale"),
since the old ones are likely to be given up on while a new one can still be helped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator

from gunicorn_admission.core.partition import Partition
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Priority

__all__ = ["Waitlist"]


class Waitlist:
    """Waiting tickets by priority; every operation but the scans costs O(1)."""

    __slots__ = ("_queues",)

    def __init__(self) -> None:
        # OrderedDict: removal from the middle and at the front are both O(1); a plain
        # dict leaves tombstones at the front that each look-up walks over.
        self._queues: tuple[OrderedDict[Ticket, None], ...] = tuple(OrderedDict() for _ in Priority)

    def __len__(self) -> int:
        return sum(map(len, self._queues))

    def __iter__(self) -> Iterator[Ticket]:
        for queue in self._queues:
            yield from queue

    def add(self, ticket: Ticket) -> None:
        """Append a ticket to the end of its priority."""
        self._queues[ticket.priority][ticket] = None

    def remove(self, ticket: Ticket) -> None:
        """Take a ticket out, wherever it stands."""
        del self._queues[ticket.priority][ticket]

    def ahead(self, priority: Priority) -> int:
        """Number of tickets that would be served before a new one of that priority."""
        return sum(len(queue) for queue in self._queues[: priority + 1])

    def count(self, priority: Priority) -> int:
        """Number of tickets of exactly that priority."""
        return len(self._queues[priority])

    def oldest_ns(self) -> int | None:
        """When the one that has been waiting longest arrived; ``None`` with nobody."""
        fronts = [next(iter(queue)).arrived_ns for queue in self._queues if queue]
        return min(fronts, default=None)

    def beyond(self, priority: Priority, places: int) -> list[Ticket]:
        """All tickets of a priority but the newest ``places``, oldest first."""
        queue = list(self._queues[priority])
        return queue[: max(0, len(queue) - places)]

    def next(
        self, usable: Callable[[Partition], bool], newest_first: Callable[[Ticket], bool]
    ) -> Ticket | None:
        """
        Return the ticket to serve next, which stays in the list.

        Args:
            usable: Whether a free slot may go to that class now; asked once a class.
            newest_first: Whether the order turns round, given the oldest of a priority.
        """
        blocked: set[Partition] = set()
        for queue in self._queues:
            if not queue:
                continue
            order: Iterable[Ticket] = queue
            if newest_first(next(iter(queue))):
                order = reversed(queue)
            for ticket in order:
                partition = ticket.partition
                if partition in blocked:
                    continue
                if usable(partition):
                    return ticket
                blocked.add(partition)
        return None

    def victim(self, priority: Priority) -> Ticket | None:
        """
        Return who must leave a full queue for a newcomer of that priority.

        That is the oldest ticket of the lowest priority below the newcomer's, one whose
        sender retries if there is such; ``None`` when nobody ranks lower.
        """
        for queue in reversed(self._queues[priority + 1 :]):
            for ticket in queue:
                if ticket.partition.policy.retries:
                    return ticket
            for ticket in queue:
                return ticket
        return None
