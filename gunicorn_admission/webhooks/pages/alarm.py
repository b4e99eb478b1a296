"""
Pages for when the store is what fails: kept in memory, told by the process that sees it.

Lock: each channel has a thread and a condition of its own, which guards what is open there. No
channel is called with it held, so neither a request nor another channel waits for one that hangs.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from attrs import define

from gunicorn_admission.webhooks.pages.channels.channel import Channel, deliver
from gunicorn_admission.webhooks.pages.page import Page, Severity
from gunicorn_admission.webhooks.pages.wording import Notice

__all__ = ["Alarm"]

_MOST: Final = 256  # keys; they come from sources and conditions, never from a request
_AGAIN: Final = 10.0  # seconds after which a channel that failed is tried again
_URGENCY: Final = (Severity.INFO, Severity.WARNING, Severity.CRITICAL)


class Alarm:
    """
    Tells the channels, once for each key and then from time to time, without any store.

    Each worker has one of its own, so that a store that is away is told once a worker. What
    could not be told is tried again until it is over.

    Args:
        channels: Whom to tell.
        clock: Returns seconds since the epoch.
        calm: Seconds without a recurrence after which a page is over. What comes and goes is one
            page until then.

    Thread safety: all methods may be called from any thread. They never raise, and none but
    ``tick`` ever waits for a channel: a thread for each, started on first use and again after a
    fork, does that.
    """

    def __init__(
        self,
        channels: Sequence[Channel],
        *,
        clock: Callable[[], float] = time.time,
        calm: float = 60.0,
    ) -> None:
        self.channels = tuple(channels)
        self._tellers = tuple(_Teller(channel, clock, calm) for channel in self.channels)

    def raise_page(self, page: Page) -> None:
        """Count a page, and have it told if it is new, or more urgent than it was."""
        for teller in self._tellers:
            teller.raise_page(page)
            self._start(teller)

    def resolve_page(self, key: str) -> None:
        """Say that a page's cause is gone; cheap where there is none."""
        for teller in self._tellers:
            teller.resolve_page(key)

    def tick(self) -> int:
        """Tell what is due, in this thread. Returns how many notices were delivered."""
        return sum(teller.tick() for teller in self._tellers)

    def _start(self, teller: _Teller) -> None:
        teller.start()


@define
class _Open:
    page: Page
    count: int
    first_at: int
    last_at: int
    told: int = 0  # the count that the channel knows of; 0: it knows nothing
    repeat_at: float = 0.0  # what only counts on is not told before
    retry_at: float = 0.0  # nothing is told before: the channel has just failed
    resolved_at: int | None = None

    def notice(self) -> Notice:
        return Notice(
            page=self.page,
            episode=1,
            count=self.count,
            first_at=self.first_at,
            last_at=self.last_at,
            resolved_at=self.resolved_at,
        )


class _Teller:
    """One channel, and what it is to be told."""

    def __init__(self, channel: Channel, clock: Callable[[], float], calm: float) -> None:
        self._channel = channel
        self._clock = clock
        self._calm = calm
        self._open: dict[str, _Open] = {}
        self._changed = threading.Condition()
        self._pid: int | None = None  # of the process whose thread tells

    def raise_page(self, page: Page) -> None:
        at = round(self._clock() * 1e6)
        with self._changed:
            entry = self._open.get(page.key)
            if entry is None:
                if len(self._open) < _MOST:
                    self._open[page.key] = _Open(page=page, count=1, first_at=at, last_at=at)
                    self._changed.notify()
                return
            entry.count += 1
            entry.last_at = at
            entry.resolved_at = None
            if _URGENCY.index(page.severity) > _URGENCY.index(entry.page.severity):
                entry.page, entry.told, entry.repeat_at = page, 0, 0.0
                self._changed.notify()

    def resolve_page(self, key: str) -> None:
        if key not in self._open:  # the usual case, without the lock
            return
        with self._changed:
            entry = self._open.get(key)
            if entry is not None and entry.resolved_at is None:
                entry.resolved_at = round(self._clock() * 1e6)

    def tick(self) -> int:
        now = self._clock()
        with self._changed:
            for key, entry in list(self._open.items()):
                if not entry.told and self._is_over(entry, now):
                    del self._open[key]  # who was told of no beginning needs no end
            due = [(e, e.notice()) for e in self._open.values() if self._is_due(e, now)]
        return sum(self._tell(entry, notice, now) for entry, notice in due)

    def _is_over(self, entry: _Open, now: float) -> bool:
        return entry.resolved_at is not None and entry.resolved_at / 1e6 + self._calm <= now

    def _is_due(self, entry: _Open, now: float) -> bool:
        if entry.retry_at > now:
            return False
        if entry.resolved_at is not None:
            return self._is_over(entry, now)
        is_more = entry.told < entry.count or self._channel.refreshes
        return is_more and entry.repeat_at <= now

    def _tell(self, entry: _Open, notice: Notice, now: float) -> bool:
        error = deliver(self._channel, notice)
        with self._changed:
            if error is not None:
                entry.retry_at = now + _AGAIN
            elif notice.resolved_at is None:
                if entry.page is notice.page:  # else it has grown more urgent meanwhile
                    entry.told, entry.repeat_at = notice.count, now + self._channel.repeat
            elif entry.count == notice.count:
                self._open.pop(entry.page.key, None)
            else:
                entry.told, entry.repeat_at = 0, 0.0  # it came back while its end was told
        return error is None

    def start(self) -> None:
        """Start the thread of this process; it ends when nothing is open any more."""
        with self._changed:
            if self._open and self._pid != os.getpid():
                self._pid = os.getpid()
                threading.Thread(target=self._run, name="admission-alarm", daemon=True).start()

    def _run(self) -> None:
        while True:
            self.tick()
            with self._changed:
                if not self._open:
                    self._pid = None
                    return
                self._changed.wait(1.0)
