"""What an accept loop asks of a limiter before there is a ticket."""

from __future__ import annotations

from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Priority, Reason
from gunicorn_admission.limiter.tickets import TicketLimiter

__all__ = ["FrontDoor"]


class FrontDoor(TicketLimiter):
    """
    How full it is inside, and a quick no.

    Thread safety: everything may be called from any thread.
    """

    @property
    def full(self) -> bool:
        """Whether an arrival would have to wait; read without the lock, so it may be stale."""
        controller = self._controller
        return controller.inflight >= controller.allowed or controller.waiting > 0

    @property
    def crowded(self) -> bool:
        """Whether arrivals, or those of some class, find no slot; read without the lock."""
        controller = self._controller
        inflight, allowed = controller.inflight, controller.allowed
        if inflight >= allowed:
            return True
        return 2 * inflight >= allowed and any(
            partition.inflight >= partition.room for partition in tuple(controller.shares)
        )

    def turn_away(self, name: str, priority: Priority, now_ns: int) -> tuple[Reason, int] | None:
        """
        Refuse an arrival without a ticket, if it is sure to be refused for overload.

        It costs a fraction of an offer, which counts when most of what arrives is refused.

        Args:
            name, priority: Its class.
            now_ns: Present time on the limiter's clock.

        Returns:
            The reason and, in nanoseconds, when to retry; ``None`` to offer it instead.
        """
        partition = self.partition(name)
        with self._lock:
            return self._controller.turn_away_unseen(partition, priority, now_ns)

    def refuse_late(self, ticket: Ticket) -> bool:
        """
        Refuse an arrival that has waited for too long before it came here.

        Returns:
            False where nothing is refused, because of the mode; it is to be offered then.
        """
        with self._lock:
            return self._controller.refuse_late(ticket)
