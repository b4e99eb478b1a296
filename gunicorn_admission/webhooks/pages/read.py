"""What stands in the book, for people and for the pager."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Row, select

from gunicorn_admission.webhooks.pages.page import Condition, Page
from gunicorn_admission.webhooks.pages.wording import Notice
from gunicorn_admission.webhooks.store.schema import pages

__all__ = ["notice_of", "read_pages"]


def read_pages(connection: Connection, consumers: Iterable[str]) -> list[Notice]:
    """Return the pages about some consumers, those that are over too, oldest first."""
    rows = connection.execute(
        select(pages)
        .where(pages.c.consumer.in_(list(consumers)))
        .order_by(pages.c.first_at, pages.c.key)
    )
    return [notice_of(row) for row in rows]


def notice_of(row: Row[Any], lags: Mapping[str, float] | None = None) -> Notice:
    """
    Return a page of the book as it is told now.

    Args:
        lags: Age of the oldest unfinished event of each consumer, in seconds. That of the page's
            own is told only where the lag is what the page is about.
    """
    return Notice(
        page=Page.stored(row),
        episode=row.episode,
        count=row._mapping["count"],  # a row is a tuple, which has a count() of its own
        first_at=row.first_at,
        last_at=row.last_at,
        resolved_at=row.resolved_at,
        lags={
            name: lag
            for name, lag in (lags or {}).items()
            if name != row.consumer or row.condition == Condition.LAGGING.value
        },
    )
