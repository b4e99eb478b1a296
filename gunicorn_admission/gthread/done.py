"""The result of a submitted connection, as gunicorn's main loop wants to have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["NOTHING_MORE", "Done"]


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
