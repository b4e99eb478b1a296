"""Bringing events back before their consumer: after a change of ceilings, or a permit."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, select, update

from gunicorn_admission.webhooks.gates.record import Key, State, change
from gunicorn_admission.webhooks.store.schema import deliveries, events, ledger

__all__ = ["wake_deferred", "wake_event", "wake_next"]


_DEFERRED = and_(
    ledger.c.state == State.DEFERRED.value,
    ledger.c.state != State.COMPLETED.value,  # as the index says it
)


def wake_deferred(connection: Connection, consumer: str, now: int) -> None:
    """Let every deferred event of a consumer be looked at again now."""
    due = and_(
        ledger.c.consumer == consumer,
        _DEFERRED,
        ledger.c.defer_until > now,
    )
    _wake(connection, consumer, due, now)
    connection.execute(update(ledger).where(due).values(defer_until=now))


def wake_next(connection: Connection, consumer: str, now: int) -> None:
    """Let the event that has been deferred longest be looked at: something was given back."""
    row = connection.execute(
        select(ledger.c.source, ledger.c.event_id)
        .where(ledger.c.consumer == consumer, _DEFERRED, ledger.c.defer_until > now)
        .order_by(ledger.c.updated_at)
        .limit(1)
    ).first()
    if row is not None:
        key = Key(consumer, row.source, row.event_id)
        change(connection, key, now, defer_until=now)
        wake_event(connection, key, now)


def wake_event(connection: Connection, key: Key, now: int) -> None:
    """Let one event be looked at again now, also where its delivery waited for a person."""
    mine = and_(
        ledger.c.consumer == key.consumer,
        ledger.c.source == key.source,
        ledger.c.event_id == key.event_id,
    )
    _wake(connection, key.consumer, mine, now)


def _wake(connection: Connection, consumer: str, which: ColumnElement[bool], now: int) -> None:
    """
    Make the deliveries visible that a ceiling has stopped.

    One that is locked is being claimed, so it is looked at anyway; to wait for it here, with
    the gate held, could be a deadlock.
    """
    stopped = (
        select(deliveries.c.seq)
        .join(events, events.c.seq == deliveries.c.seq)
        .join(
            ledger,
            and_(ledger.c.source == events.c.source, ledger.c.event_id == events.c.event_id),
        )
        .where(
            deliveries.c.subscription == consumer,
            deliveries.c.state.in_(("deferred", "review", "refused")),
            which,
        )
        .with_for_update(of=deliveries, skip_locked=True)
    )
    connection.execute(
        update(deliveries)
        .where(deliveries.c.subscription == consumer, deliveries.c.seq.in_(stopped))
        .values(state="pending", visible_at=now, finished_at=None, updated_at=now)
    )
