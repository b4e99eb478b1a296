"""
Pages about how a consumer stands: it lags past its objective, it fails, it has dead letters.

They are read from the rows of its deliveries, so nothing has to remember to raise them, and they
are over when the rows say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import Connection, Row, and_, func, select

from gunicorn_admission.settings.durations import format_duration
from gunicorn_admission.webhooks.pages.book import raise_page, resolve_page
from gunicorn_admission.webhooks.pages.page import Condition, Page, Severity
from gunicorn_admission.webhooks.store.schema import deliveries, events, pages, subscriptions

__all__ = ["watch"]

#: So many attempts in vain make a page: one or two are what retries are for.
_REPEATEDLY: Final = 3

_IS_OPEN = deliveries.c.finished_at.is_(None)


def watch(connection: Connection, now: int) -> None:
    """
    Raise and resolve the pages of every subscription that is not disabled.

    Args:
        connection: A write transaction.
        now: Microseconds since the epoch.
    """
    found = {
        page.key: (page, total)
        for row in connection.execute(select(subscriptions)).all()
        if row.mode != "disabled"
        for page, total in _pages_of(connection, row, now)
    }
    for page, total in found.values():
        raise_page(connection, page, now, total=total)
    watched = [condition.value for condition in (_LAGS, _FAILS, _DEAD)]
    open_keys = connection.scalars(
        select(pages.c.key).where(pages.c.condition.in_(watched), pages.c.resolved_at.is_(None))
    ).all()
    for key in open_keys:
        if key not in found:
            resolve_page(connection, key, now)


_LAGS, _FAILS, _DEAD = Condition.LAGGING, Condition.FAILING, Condition.DEAD


def _pages_of(
    connection: Connection, subscription: Row[Any], now: int
) -> Iterator[tuple[Page, int]]:
    name = subscription.name
    if subscription.objective_us is not None:
        late = and_(_IS_OPEN, deliveries.c.created_at < now - subscription.objective_us)
        oldest, total = _oldest(connection, name, late)
        if oldest is not None:
            age = format_duration(round((now - oldest.created_at) / 1e6))
            objective = format_duration(subscription.objective_us / 1e6)
            reason = f"unfinished for {age}, objective {objective}"
            yield _page(name, _LAGS, oldest, reason), total
    failing = and_(_IS_OPEN, deliveries.c.attempts >= _REPEATEDLY, deliveries.c.state == "pending")
    oldest, total = _oldest(connection, name, failing)
    if oldest is not None:
        reason = f"{oldest.attempts} attempts, last {_kind(oldest.last_error)}"
        yield _page(name, _FAILS, oldest, reason), total
    oldest, total = _oldest(connection, name, deliveries.c.state == "dead")
    if oldest is not None:
        reason = f"{oldest.attempts} attempts, last {_kind(oldest.last_error)}"
        yield _page(name, _DEAD, oldest, reason), total


def _oldest(connection: Connection, name: str, which: Any) -> tuple[Row[Any] | None, int]:
    """Return the oldest of these deliveries, and how many there are."""
    mine = and_(deliveries.c.subscription == name, which)
    total = connection.scalar(select(func.count()).select_from(deliveries).where(mine)) or 0
    if not total:
        return None, 0
    row = connection.execute(
        select(deliveries, events.c.source, events.c.event_id)
        .join(events, events.c.seq == deliveries.c.seq)
        .where(mine)
        .order_by(deliveries.c.seq)
        .limit(1)
    ).one_or_none()
    return row, total


def _page(name: str, condition: Condition, oldest: Row[Any], reason: str) -> Page:
    return Page(
        key=f"{name}/{condition.value}",
        condition=condition,
        severity=Severity.WARNING,
        consumer=name,
        source=oldest.source,
        event_id=oldest.event_id,
        reason=reason,
    )


def _kind(error: str | None) -> str:
    """Return the class of an error; its text may hold what a page must not."""
    return (error or "error").partition(":")[0].split()[0][:60]
