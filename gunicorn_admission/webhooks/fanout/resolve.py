"""Telling the store what a person has found out about an uncertain effect."""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.fanout.redrive import note
from gunicorn_admission.webhooks.fanout.states import State
from gunicorn_admission.webhooks.gates import Ledger
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import deliveries, events

__all__ = ["resolve"]


def resolve(store: Store, name: str, source: str, event_id: str, *, actor: str = "python") -> None:
    """
    Record that the effect of an uncertain delivery did happen: it is completed, and charged.

    Where it did not happen, redrive it.

    Raises:
        ConfigError: The event is not uncertain at that subscription.
    """

    def work(connection: Connection) -> None:
        row = connection.execute(
            select(deliveries.c.seq, deliveries.c.lease, deliveries.c.state)
            .join(events, events.c.seq == deliveries.c.seq)
            .where(
                deliveries.c.subscription == name,
                events.c.source == source,
                events.c.event_id == event_id,
            )
            .with_for_update(of=deliveries)
        ).one_or_none()
        if row is None or row.state != State.UNCERTAIN.value:
            state = "not there" if row is None else row.state
            raise ConfigError(
                "event", f"{source}/{event_id}", f"an event that is uncertain at {name}",
                f"it is {state}",
            )  # fmt: skip
        now = store.now()
        connection.execute(
            update(deliveries)
            .where(deliveries.c.subscription == name, deliveries.c.seq == row.seq)
            .values(
                state=State.COMPLETED.value,
                finished_at=now,
                updated_at=now,
                last_error=None,
            )
        )
        Ledger().complete(
            connection, consumer=name, source=source, event_id=event_id, lease=row.lease, now=now
        )
        note(connection, store, actor, "resolve", name, {"event": f"{source}/{event_id}"})

    store.write(work)
