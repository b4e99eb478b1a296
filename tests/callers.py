"""Threads that call a limiter, and a limiter that says when one of them waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from gunicorn_admission.core.limits import FixedLimit
from gunicorn_admission.core.policy import Policy
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.testing import FakeClock

__all__ = ["PATIENCE", "Caller", "Room", "room"]

#: Seconds after which what should have happened counts as failed.
PATIENCE = 20.0


Result = TypeVar("Result")


class Caller(Generic[Result]):
    """A function in a thread of its own, and what became of it."""

    def __init__(self, function: Callable[[], Result]) -> None:
        self._function = function
        self._outcome: Result | BaseException
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._outcome = self._function()
        except BaseException as error:
            self._outcome = error

    def result(self) -> Result:
        """Wait for the end; return or raise what the function did."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "still blocked"
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome


class Room(Limiter):
    """A limiter whose waiters announce themselves once their place in the queue is taken."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.entered: SimpleQueue[Ticket] = SimpleQueue()

    def wait(self, ticket: Ticket) -> None:
        self.entered.put(ticket)
        super().wait(ticket)

    def waiter(self, **arguments: Any) -> Caller[Any]:
        """Let a thread call ``acquire``, and return once it stands in the queue."""
        caller = Caller(lambda: self.acquire(**arguments))
        self.entered.get(timeout=PATIENCE)
        return caller


def room(limit: int = 1, **policy: Any) -> tuple[Room, FakeClock]:
    """A limiter with a fixed limit on a clock that is moved by hand; it waits for seconds."""
    clock = FakeClock()
    policy.setdefault("max_wait_ns", 10**9)
    bounds = Policy(max_limit=policy.pop("max_limit", limit), **policy)
    return Room(policy=bounds, limit=lambda: FixedLimit(limit), clock=clock), clock
