"""
Work of ours in the turns of gunicorn's main loop (24 and later).

The loop calls ``murder_keepalived`` once a turn, and a last time with ``force`` when the
worker stops; whatever has a deadline there is looked at then. A turn takes a second at
most, so that is how exact these deadlines are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["MainLoop"]


class MainLoop:
    """
    Calls functions once a turn of a worker's main loop, on its thread.

    Args:
        worker: Its main loop is not running yet.
    """

    def __init__(self, worker: Any) -> None:
        self._each_turn: list[Callable[[bool], None]] = []
        murder_keepalived = worker.murder_keepalived

        def murder(force: bool = False) -> None:
            stopping = force or not worker.alive
            for function in self._each_turn:
                function(stopping)
            if force:
                murder_keepalived(force=True)
            else:
                murder_keepalived()

        worker.murder_keepalived = murder

    def each_turn(self, function: Callable[[bool], None]) -> None:
        """Call a function each turn; its argument says whether the worker stops."""
        self._each_turn.append(function)
