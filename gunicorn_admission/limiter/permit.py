"""What a caller holds while it runs."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Outcome, Priority, State
from gunicorn_admission.limiter.outcome import outcome_of

if TYPE_CHECKING:
    from gunicorn_admission.limiter.threaded import Limiter

__all__ = ["Permit"]

_WAITING, _GRANTED, _ENDED = State.WAITING, State.GRANTED, State.ENDED


class Permit:
    """
    The right to run, ended exactly once.

    Use it as a context manager; the outcome then follows from the exception, if any. A
    permit that is dropped without a release is released by the garbage collector, counted
    as ``leaked`` and logged with its class.

    Thread safety: any thread may release it; a second release is counted and harmless.
    """

    __slots__ = ("_limiter", "_ticket")

    def __init__(self, limiter: Limiter, ticket: Ticket) -> None:
        self._limiter = limiter
        self._ticket = ticket

    @property
    def priority(self) -> Priority:
        """Priority it was granted under."""
        return self._ticket.priority

    @property
    def partition(self) -> str:
        """Traffic class it counts in."""
        return self._ticket.partition.name

    @property
    def queue_delay(self) -> float:
        """Seconds it waited for its slot."""
        return self._ticket.delay_ns / 1e9

    def release(self, outcome: Outcome = Outcome.SUCCESS) -> None:
        """
        Give the slot back.

        Args:
            outcome: What the call says about capacity. SUCCESS makes its duration a
                sample, IGNORE says nothing, DROP is a sign of overload further down.
        """
        self._limiter.finish(self._ticket, outcome)

    def __enter__(self) -> Permit:
        """Return the permit itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release with the outcome that the exception stands for."""
        if self._ticket.state is _GRANTED:
            self._limiter.finish(self._ticket, outcome_of(error))

    def __del__(self) -> None:
        """Release what was forgotten, or what an exception kept from being handed out."""
        ticket = self._ticket
        if ticket.state is not _ENDED and ticket.state in (_WAITING, _GRANTED):
            self._limiter.reclaim(ticket)
