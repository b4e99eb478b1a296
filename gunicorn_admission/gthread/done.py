"""The results of submitted connections, as gunicorn's main loop wants to have them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from gunicorn_admission.gthread.capabilities import Capabilities

if TYPE_CHECKING:
    from gunicorn_admission.gthread.job import Job

__all__ = ["NOTHING_MORE", "Done", "Results"]


class Done:
    """
    What gthread uses of a ``Future`` from 24.0 on, without the lock of one.

    ``add_done_callback`` may race with the thread that finishes. Both sides store first
    and look second, and ``list.pop`` lets exactly one of them win the right to call.

    Thread safety: one thread sets the result, one adds the callback, in any order.
    """

    __slots__ = ("_callback", "_once", "_ready", "_result")

    def __init__(self) -> None:
        self._callback: Callable[[Any], object] | None = None
        self._result: object = None
        self._ready = False
        self._once = [True]

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Call back with this object when the result is there, maybe at once."""
        self._callback = callback
        if self._ready:
            self._call()

    def set_result(self, result: object) -> None:
        """Finish with what ``handle`` returned."""
        self._result = result
        self._ready = True
        if self._callback is not None:
            self._call()

    def result(self) -> object:
        """Return what was set."""
        return self._result

    def cancelled(self) -> bool:
        """Never."""
        return False

    def _call(self) -> None:
        try:
            self._once.pop()
        except IndexError:
            return
        callback = self._callback
        if callback is not None:
            callback(self)


class _NothingMore:
    """For a connection that was dealt with inside ``submit``: nobody need be told."""

    __slots__ = ()

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Ignore the callback."""


NOTHING_MORE = _NothingMore()


class Results:
    """
    Futures and results in the shape that this gunicorn wants.

    Args:
        can: Its capabilities.
    """

    def __init__(self, can: Capabilities) -> None:
        self._light = can.light_future
        self._pair = can.pair_result

    def future(self) -> Any:
        """Return the future of a connection that is going to be served or refused."""
        if self._light:
            return Done()
        future: Future[object] = Future()
        future.set_running_or_notify_cancel()
        return future

    def ended(self, conn: Any, keep: bool) -> Any:
        """Return a future that has ended already; the connection is kept alive or closed."""
        future: Any = Done() if self._light else Future()
        future.set_result(self._shape(conn, keep))
        return future

    def close(self, job: Job) -> None:
        """Let the main loop close the connection of a job."""
        job.future.set_result(self._shape(job.conn, False))

    def keep(self, job: Job) -> None:
        """Let the main loop wait for a request on the connection of a job."""
        job.future.set_result(self._shape(job.conn, True))

    def _shape(self, conn: Any, keep: bool) -> object:
        return (keep, conn) if self._pair else keep
