"""
Pages about how a consumer stands: it lags past its objective, it fails, it has dead letters.

They are read from the rows of its deliveries, so nothing has to remember to raise them, and they
are over when the rows say so. A page about a ceiling is over when that is raised.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import Connection, Row, and_, exists, func, select

from gunicorn_admission.settings.durations import format_duration
from gunicorn_admission.webhooks.pages.book import raise_page, resolve_page
from gunicorn_admission.webhooks.pages.page import Condition, Page, Severity
from gunicorn_admission.webhooks.store.schema import (
    ceilings,
    deliveries,
    events,
    pages,
    subscriptions,
)

__all__ = ["watch"]

#: So many attempts in vain make a page: one or two are what retries are for.
_REPEATEDLY: Final = 3

_IS_OPEN = deliveries.c.finished_at.is_(None)


def watch(connection: Connection, now: int) -> None:
    """
    Raise and resolve the pages of every subscription that is not disabled and is worth one.

    Args:
        connection: A write transaction.
        now: Microseconds since the epoch.
    """
    found = {
        page.key: (page, total)
        for row in connection.execute(select(subscriptions)).all()
        if row.mode != "disabled" and row.severity != "none"
        for page, total in _pages_of(connection, row, now)
    }
    # In one order everywhere, so that two that watch at once do not wait for each other.
    for _, (page, total) in sorted(found.items()):
        raise_page(connection, page, now, total=total)
    watched = [condition.value for condition in (_LAGS, _FAILS, _DEAD)]
    open_keys = connection.scalars(
        select(pages.c.key).where(pages.c.condition.in_(watched), pages.c.resolved_at.is_(None))
    ).all()
    for key in open_keys:
        if key not in found:
            resolve_page(connection, key, now)
    for key in list(_moved_ceilings(connection)):
        resolve_page(connection, key, now)


_AT_CEILING: Final = [
    condition.value
    for condition in (
        Condition.REFUSED,
        Condition.DEFERRED,
        Condition.REVIEW,
        Condition.OVER_SOFT,
    )
]
_LAGS, _FAILS, _DEAD = Condition.LAGGING, Condition.FAILING, Condition.DEAD


def _moved_ceilings(connection: Connection) -> Iterator[str]:
    """
    Yield the open pages that name a ceiling which is not the one any more, raised or ended, and
    whose work does not wait for it all the same.
    """
    still_waits = exists().where(
        deliveries.c.subscription == pages.c.consumer,
        deliveries.c.state == pages.c.condition,  # deferred, review
        _IS_OPEN,
    )
    rows = connection.execute(
        select(pages.c.key, pages.c.consumer, pages.c.detail)
        .where(
            pages.c.condition.in_(_AT_CEILING),
            pages.c.resolved_at.is_(None),
            ~still_waits.correlate(pages),
        )
        .order_by(pages.c.key)
    ).all()
    if not rows:
        return
    known = {
        (row.consumer, row.unit, row.span): row for row in connection.execute(select(ceilings))
    }
    for row in rows:
        named = row.detail["ceiling"]
        bound = known.get((row.consumer, named["unit"], named["window"]))
        if bound is None:
            continue
        is_same = bound.hard == named["hard"] and named["soft"] in (None, bound.soft)
        if bound.ended_at is not None or not is_same:
            yield row.key


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
            yield _page(subscription, _LAGS, oldest, reason), total
    failing = and_(_IS_OPEN, deliveries.c.attempts >= _REPEATEDLY, deliveries.c.state == "pending")
    oldest, total = _oldest(connection, name, failing)
    if oldest is not None:
        reason = f"{oldest.attempts} attempts, last {_kind(oldest.last_error)}"
        yield _page(subscription, _FAILS, oldest, reason), total
    oldest, total = _oldest(connection, name, deliveries.c.state == "dead")
    if oldest is not None:
        reason = f"{oldest.attempts} attempts, last {_kind(oldest.last_error)}"
        yield _page(subscription, _DEAD, oldest, reason), total


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


def _page(subscription: Row[Any], condition: Condition, oldest: Row[Any], reason: str) -> Page:
    return Page(
        key=f"{subscription.name}/{condition.value}",
        condition=condition,
        severity=Severity(subscription.severity),
        consumer=subscription.name,
        source=oldest.source,
        event_id=oldest.event_id,
        reason=reason,
        runbook=subscription.runbook,
    )


def _kind(error: str | None) -> str:
    """Return the class of an error; its text may hold what a page must not."""
    return (error or "error").partition(":")[0].split()[0][:60]
