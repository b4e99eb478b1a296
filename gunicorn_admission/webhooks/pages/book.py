"""The book of pages: one row for each, written in the transaction that took the decision."""

from __future__ import annotations

from sqlalchemy import Connection, case, or_, update

from gunicorn_admission.webhooks.pages.page import Page
from gunicorn_admission.webhooks.store.schema import pages
from gunicorn_admission.webhooks.store.statements import insert

__all__ = ["raise_page", "resolve_page", "resolve_passed"]


def raise_page(connection: Connection, page: Page, now: int, *, total: int | None = None) -> None:
    """
    Write a page, or count it where it is open already.

    Because it stands in the caller's transaction, there is a page exactly where there is a
    decision, whatever dies in between.

    Args:
        now: Microseconds since the epoch.
        total: How often it happened by now; ``None`` is once more.
    """
    row = {
        "episode": 1,
        "boundary": page.condition.boundary.value,
        "condition": page.condition.value,
        "severity": page.severity.value,
        "consumer": page.consumer,
        "source": page.source,
        "event_id": page.event_id,
        "detail": page.detail(),
        "count": 1 if total is None else total,
        "first_at": now,
        "last_at": now,
        "until": page.until,
        "resolved_at": None,
    }
    statement = insert(connection, pages).values(key=page.key, **row)
    # What is open keeps its first event; what was over begins anew with this one.
    is_over = or_(pages.c.resolved_at.is_not(None), pages.c.until <= now)
    renewed = {
        name: case((is_over, statement.excluded[name]), else_=pages.c[name])
        for name in row
        if name not in ("episode", "count", "last_at", "until")
    }
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[pages.c.key],
            set_={
                **renewed,
                "episode": pages.c.episode + case((is_over, 1), else_=0),
                "count": case(
                    (is_over, statement.excluded.count),
                    else_=pages.c.count + 1 if total is None else total,
                ),
                "last_at": now,
                "until": statement.excluded.until,
            },
        )
    )


def resolve_page(connection: Connection, key: str, now: int) -> bool:
    """Say that a page's cause is gone. Returns whether it was open."""
    done = connection.execute(
        update(pages)
        .where(pages.c.key == key, pages.c.resolved_at.is_(None))
        .values(resolved_at=now)
    )
    return done.rowcount > 0


def resolve_passed(connection: Connection, now: int) -> int:
    """Resolve the pages whose time has passed: their window has rolled. Returns how many."""
    done = connection.execute(
        update(pages)
        .where(pages.c.resolved_at.is_(None), pages.c.until <= now)
        .values(resolved_at=pages.c.until)
    )
    return done.rowcount
