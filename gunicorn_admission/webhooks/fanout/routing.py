"""Routing: the rows that say which subscription is to have which event."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

import attrs
from sqlalchemy import Connection, Insert, select

from gunicorn_admission.webhooks.fanout.fields import Fields
from gunicorn_admission.webhooks.fanout.revision import lock_shared
from gunicorn_admission.webhooks.fanout.route import Route
from gunicorn_admission.webhooks.fanout.states import State
from gunicorn_admission.webhooks.providers.headers import HeaderSource
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import deliveries, subscriptions
from gunicorn_admission.webhooks.store.statements import insert_into

__all__ = ["RoutedEvent", "Routing", "delivery_row"]


@attrs.frozen(kw_only=True)
class RoutedEvent:
    """
    An event that was just stored, as routing needs it.

    Attributes:
        seq: Its number in the store.
        source, event_id: Its key.
        type: What happened, if that is known.
        body: The bytes that came.
        headers: Those that were kept.
        received_at, source_time: When it came and when it was sent, in microseconds since the
            epoch; the second only where the sender says.
    """

    seq: int
    source: str
    event_id: str
    type: str | None
    body: bytes = attrs.field(repr=False)
    headers: HeaderSource = attrs.field(repr=False)
    received_at: int
    source_time: int | None = None


def delivery_row(route: Route, seq: int, fields: Fields, now: int) -> dict[str, object]:
    """Return the columns of a delivery that a worker may take at once."""
    return {
        "subscription": route.name,
        "seq": seq,
        "state": State.PENDING.value,
        "visible_at": now,
        "order_key": route.order_key(fields),
        "created_at": now,
        "updated_at": now,
    }


class Routing:
    """
    Writes a delivery for each event and each subscription whose filter matches.

    Subscriptions are kept in memory and read again when their revision has moved. They cannot
    change between that check and the caller's commit, so a subscription that is made meanwhile
    neither misses an event nor has it twice.

    Args:
        store: Only its clock is used; all SQL goes over the connection of the caller.
        only: Names of the subscriptions that may have an event; ``None`` leaves it to filters.

    Thread safety: may be used from any thread, each with a connection of its own.
    """

    def __init__(self, store: Store, *, only: Collection[str] | None = None) -> None:
        self._store = store
        self._only = only
        self._known: tuple[int, tuple[Route, ...]] = (-1, ())

    def route(self, connection: Connection, events: Sequence[RoutedEvent]) -> None:
        """
        Insert the deliveries of new events, in the transaction that inserted the events.

        Args:
            connection: That transaction. On PostgreSQL its isolation must be READ COMMITTED, the
                default: a snapshot from before a change of subscriptions would hide the change.
            events: Rows that are in the store already.
        """
        routes = self._routes(connection)
        now = self._store.now()
        rows = []
        for event in events:
            fields = Fields(
                source=event.source, type=event.type, headers=event.headers, body=event.body
            )
            rows += [
                delivery_row(route, event.seq, fields, now)
                for route in routes
                if route.wants(fields)
            ]
        if rows:
            connection.execute(_insert_new(connection.dialect.name), rows)

    def _routes(self, connection: Connection) -> tuple[Route, ...]:
        number = lock_shared(connection)
        known, routes = self._known
        if number != known:
            rows = connection.execute(
                select(subscriptions.c.name, subscriptions.c.filter, subscriptions.c.order_by)
            )
            routes = tuple(
                Route.of(row.name, row.filter, row.order_by)
                for row in rows
                if self._only is None or row.name in self._only
            )
            self._known = number, routes  # one assignment: threads see both or neither
        return routes


@cache
def _insert_new(dialect: str) -> Insert:
    return insert_into(dialect, deliveries).on_conflict_do_nothing()
