"""Pages for when the store is what fails: kept in memory, told by the process that sees it."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from attrs import define

from gunicorn_admission.webhooks.pages.channels.channel import Channel, ChannelError
from gunicorn_admission.webhooks.pages.page import Page
from gunicorn_admission.webhooks.pages.wording import Notice

__all__ = ["Alarm"]

logger = logging.getLogger("gunicorn_admission.pages")

_MOST: Final = 256  # keys; they come from sources and conditions, never from a request


@define
class _Open:
    page: Page
    count: int
    first_at: int
    last_at: int
    told: set[str]
    repeat_at: dict[str, float]
    resolved_at: int | None = None


class Alarm:
    """
    Tells the channels, once for each key and then from time to time, without any store.

    Each worker has one of its own, so that a store that is away is told once a worker. What
    could not be told is tried again until it is over.

    Args:
        channels: Whom to tell.
        clock: Returns seconds since the epoch.

    Thread safety: all methods may be called from any thread. They never raise and never block
    on a channel: a thread, started on first use and again after a fork, does that.
    """

    def __init__(
        self, channels: Sequence[Channel], *, clock: Callable[[], float] = time.time
    ) -> None:
        self._channels = tuple(channels)
        self._clock = clock
        self._open: dict[str, _Open] = {}
        self._changed = threading.Condition()
        self._pid: int | None = None

    def raise_page(self, page: Page) -> None:
        """Count a page, and have it told if it is new."""
        if not self._channels:
            return
        now = self._clock()
        at = round(now * 1e6)
        with self._changed:
            entry = self._open.get(page.key)
            if entry is None or entry.resolved_at is not None:
                if len(self._open) >= _MOST:
                    return
                self._open[page.key] = _Open(
                    page=page, count=1, first_at=at, last_at=at, told=set(), repeat_at={}
                )
                self._changed.notify()
            else:
                entry.count += 1
                entry.last_at = at
            self._start()

    def resolve_page(self, key: str) -> None:
        """Say that a page's cause is gone; cheap where there is none."""
        if key not in self._open:  # the usual case, without the lock
            return
        with self._changed:
            entry = self._open.get(key)
            if entry is not None and entry.resolved_at is None:
                entry.resolved_at = round(self._clock() * 1e6)
                entry.repeat_at.clear()
                self._changed.notify()

    def tick(self) -> int:
        """Tell what is due. Returns how many notices were delivered."""
        now = self._clock()
        with self._changed:
            due = [
                (channel, entry, _notice(entry))
                for entry in self._open.values()
                for channel in self._channels
                if entry.repeat_at.get(channel.name, 0.0) <= now
                and (entry.resolved_at is None or channel.name in entry.told)
            ]
        delivered = 0
        for channel, entry, notice in due:
            pause = channel.repeat
            try:
                channel.send(notice)
                delivered += 1
                if notice.resolved_at is None:
                    entry.told.add(channel.name)
                else:
                    entry.told.discard(channel.name)
            except ChannelError as error:
                logger.warning("page %s not delivered: %s", notice.page.key, error)
                pause = min(pause, 10.0)
            with self._changed:
                if entry.resolved_at == notice.resolved_at:
                    entry.repeat_at[channel.name] = now + pause
        with self._changed:
            for key, entry in list(self._open.items()):
                if entry.resolved_at is not None and not entry.told:
                    del self._open[key]
        return delivered

    def _start(self) -> None:
        """Start the thread of this process; it ends when nothing is open any more."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            threading.Thread(target=self._run, name="admission-alarm", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                self.tick()
            except Exception:  # a channel's own bug must not silence the others for good
                logger.exception("a channel failed in a way that it should not")
            with self._changed:
                if not self._open:
                    self._pid = None
                    return
                self._changed.wait(1.0)


def _notice(entry: _Open) -> Notice:
    return Notice(
        page=entry.page,
        episode=1,
        count=entry.count,
        first_at=entry.first_at,
        last_at=entry.last_at,
        resolved_at=entry.resolved_at,
    )
