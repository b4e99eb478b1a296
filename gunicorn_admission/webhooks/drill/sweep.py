"""Removes what a drill left in a store that others use."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, select

from gunicorn_admission.webhooks.fanout.revision import advance
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import (
    attempts,
    ceilings,
    deliveries,
    entries,
    events,
    gates,
    ledger,
    notices,
    pages,
    subscriptions,
    windows,
)

__all__ = ["sweep"]


def sweep(store: Store, source: str, names: Sequence[str]) -> None:
    """
    Delete the events of a source and all about some consumers, in one transaction.

    The ledger is append-only for work; what is deleted here was play.
    """

    def work(connection: Connection) -> None:
        advance(connection, store.now())
        mine = select(ceilings.c.id).where(ceilings.c.consumer.in_(names))
        keys = select(pages.c.key).where(pages.c.consumer.in_(names))
        for table, condition in (
            (notices, notices.c.page.in_(keys)),
            (pages, pages.c.consumer.in_(names)),
            (entries, entries.c.ceiling.in_(mine)),
            (windows, windows.c.ceiling.in_(mine)),
            (ceilings, ceilings.c.consumer.in_(names)),
            (gates, gates.c.consumer.in_(names)),
            (ledger, ledger.c.consumer.in_(names)),
            (attempts, attempts.c.subscription.in_(names)),
            (deliveries, deliveries.c.subscription.in_(names)),
            (subscriptions, subscriptions.c.name.in_(names)),
            (events, events.c.source == source),
        ):
            connection.execute(delete(table).where(condition))

    store.write(work)
