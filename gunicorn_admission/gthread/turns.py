"""Shorter turns of the interpreter while refusing."""

from __future__ import annotations

import sys

from gunicorn_admission.core.events import Event, EventKind

__all__ = ["ShortTurns"]

_SHORT = 0.0005


class ShortTurns:
    """
    Lowers the interpreter's switch interval during overload.

    Refusals are written on the main loop, which has to win the interpreter back from the
    pool's threads after each system call; with the usual 5 ms a refusal may wait for
    several of them. At rest the short interval would only cost, so it is put back.
    """

    def __init__(self) -> None:
        self._usual: float | None = None

    def on_event(self, event: Event) -> None:
        """Follow the overload flag."""
        if event.kind is EventKind.OVERLOADED and self._usual is None:
            self._usual = sys.getswitchinterval()
            sys.setswitchinterval(min(_SHORT, self._usual))
        elif event.kind is EventKind.RECOVERED and self._usual is not None:
            sys.setswitchinterval(self._usual)
            self._usual = None
