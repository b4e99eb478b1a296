"""Telling observers what has changed, outside the lock, whatever they do."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from gunicorn_admission.core.events import Event

__all__ = ["Observer", "Observers"]

_log = logging.getLogger("gunicorn_admission")


@runtime_checkable
class Observer(Protocol):
    """
    Hears of transitions: overloaded, recovered, stalled and the like; never of requests.

    Thread safety: called from any thread, several at once, without the limiter's lock.
    """

    def on_event(self, event: Event) -> None:
        """Take one transition; must return soon, since a request may be waiting for it."""


class Observers:
    """
    The observers of a limiter; one that raises is reported once and the rest still hear.

    Args:
        observers: Whom to tell, in that order.
    """

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._observers = tuple(observers)
        self._reported: set[int] = set()

    def add(self, observer: Observer) -> None:
        """Tell one more from now on."""
        self._observers = (*self._observers, observer)

    def tell(self, events: Iterable[Event]) -> None:
        """Pass events on; never raises an ``Exception``."""
        for event in events:
            for observer in self._observers:
                try:
                    observer.on_event(event)
                except Exception:
                    if id(observer) not in self._reported:
                        self._reported.add(id(observer))
                        _log.exception("observer %r failed; reported once", observer)
