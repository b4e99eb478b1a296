"""Tells the channels what stands in the book; any number of processes may do it at once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection, and_, false, or_, select, true, update

from gunicorn_admission.webhooks.pages.book import resolve_passed
from gunicorn_admission.webhooks.pages.channels.channel import Channel, deliver
from gunicorn_admission.webhooks.pages.lag import oldest_ages
from gunicorn_admission.webhooks.pages.read import notice_of
from gunicorn_admission.webhooks.pages.watch import watch
from gunicorn_admission.webhooks.pages.wording import Notice
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import notices, pages
from gunicorn_admission.webhooks.store.statements import insert

__all__ = ["Pager"]

logger = logging.getLogger("gunicorn_admission.pages")

_SECOND: Final = 1_000_000
_LEASE: Final = 60 * _SECOND
_LONGEST_PAUSE: Final = 300 * _SECOND
_LONGEST_BLIND: Final = 30.0  # seconds between looks while the store is away
_AT_ONCE: Final = 5  # of ten seconds each at most, which is less than the lease
_FORGET: Final = 86_400 * _SECOND  # a channel that is new hears nothing of what was over then
_WATCH: Final = 10 * _SECOND  # it counts open deliveries, which may be many


class Pager:
    """
    Looks how the consumers stand, and tells each channel of each page: at once when it is new
    and when it is over, and from time to time how often it happened since.

    A notice that could not be delivered is tried again, with growing pauses, for as long as the
    page is in the book. A process that dies in the middle tells some page twice, never none. A
    channel that was told nothing of a page hears of it until a day after its end.

    Args:
        store: Where the book is.
        channels: Whom to tell. In ``run`` each has a thread of its own, so that one that hangs
            holds up no other.

    Thread safety: ``tick`` may run in several threads and processes.
    """

    def __init__(self, store: Store, channels: Sequence[Channel]) -> None:
        self._store = store
        self._channels = tuple(channels)
        self._watch_at = 0

    def run(self, stop: threading.Event, *, interval: float = 2.0) -> None:
        """
        Look and tell until told to stop, and once more then. An error of the store is logged.

        Returns when every channel has answered; who cannot wait for that runs it in a daemon
        thread.
        """
        tellers = [
            threading.Thread(
                target=_repeat, args=(partial(self._tell, channel), stop, interval), daemon=True,
                name=f"pager {channel.name}",
            )
            for channel in self._channels
        ]  # fmt: skip
        for teller in tellers:
            teller.start()
        _repeat(self._look, stop, interval)
        for teller in tellers:
            teller.join()

    def tick(self) -> int:
        """Look, and tell what is due in this thread. Returns how many notices were delivered."""
        self._look()
        return sum(self._tell(channel) for channel in self._channels)

    def _look(self) -> None:
        now = self._store.now()
        if now >= self._watch_at:
            self._watch_at = now + _WATCH
            self._store.write(lambda connection: watch(connection, now))
        self._store.write(lambda connection: resolve_passed(connection, now))

    def _tell(self, channel: Channel) -> int:
        due = self._store.write(lambda connection: _claim(connection, channel, self._store.now()))
        delivered = 0
        for notice in due:
            error = deliver(channel, notice)
            delivered += error is None
            self._settle(channel, notice, error)
        return delivered

    def _settle(self, channel: Channel, notice: Notice, error: str | None) -> None:
        now = self._store.now()

        def work(connection: Connection) -> None:
            mine = and_(notices.c.page == notice.page.key, notices.c.channel == channel.name)
            if error is None:
                values: dict[str, Any] = {
                    "episode": notice.episode,
                    "count": notice.count,
                    "resolved": notice.resolved_at is not None,
                    "repeat_at": now + round(channel.repeat * _SECOND),
                    "not_before": now,
                    "failures": 0,
                    "last_error": None,
                }
            else:
                failures = connection.execute(select(notices.c.failures).where(mine)).scalar() or 0
                pause = min(_LONGEST_PAUSE, 5 * _SECOND << min(failures, 10))
                values = {
                    "not_before": now + pause,
                    "failures": failures + 1,
                    "last_error": error,
                }
            connection.execute(update(notices).where(mine).values(**values))

        self._store.write(work)


def _repeat(work: Callable[[], object], stop: threading.Event, interval: float) -> None:
    pause = interval
    while True:
        is_last = stop.wait(pause)
        try:
            work()
            pause = interval
        except Exception as error:  # the store may be away; the book is not lost by it
            pause = min(2 * pause, _LONGEST_BLIND)
            logger.warning("pager: %s; tried again in %g s", type(error).__name__, pause)
        if is_last:
            return


def _claim(connection: Connection, channel: Channel, now: int) -> list[Notice]:
    goes_on = pages.c.resolved_at.is_(None)
    refreshes = true() if channel.refreshes else false()
    rows = connection.execute(
        select(pages)
        .outerjoin(notices, and_(notices.c.page == pages.c.key, notices.c.channel == channel.name))
        .where(
            or_(
                and_(notices.c.page.is_(None), or_(goes_on, pages.c.resolved_at > now - _FORGET)),
                and_(
                    notices.c.not_before <= now,
                    or_(
                        notices.c.episode != pages.c.episode,
                        notices.c.resolved != pages.c.resolved_at.is_not(None),
                        and_(
                            goes_on,
                            notices.c.repeat_at <= now,
                            or_(refreshes, notices.c.count < pages.c.count),
                        ),
                    ),
                ),
            )
        )
        .order_by(pages.c.first_at)
        .limit(_AT_ONCE)
        .with_for_update(of=pages, skip_locked=True)
    ).all()
    mine = [row for row in rows if _take(connection, channel, row.key, now)]
    if not mine:
        return []
    lags = oldest_ages(connection, now)
    return [notice_of(row, lags) for row in mine]


def _take(connection: Connection, channel: Channel, key: str, now: int) -> bool:
    """Lease one notice. What another process took since our snapshot is not ours."""
    statement = insert(connection, notices).values(
        page=key,
        channel=channel.name,
        episode=0,
        count=0,
        resolved=False,
        repeat_at=now,
        not_before=now + _LEASE,
        failures=0,
    )
    taken = connection.execute(
        statement.on_conflict_do_update(
            index_elements=[notices.c.page, notices.c.channel],
            set_={"not_before": now + _LEASE},
            where=notices.c.not_before <= now,
        ).returning(notices.c.page)
    )
    return taken.first() is not None
