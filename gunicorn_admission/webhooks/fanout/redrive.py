"""Redrive: dead letters back to their subscription, with all their attempts before them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from sqlalchemy import Connection, select, update

from gunicorn_admission.webhooks.fanout.selection import Selection
from gunicorn_admission.webhooks.fanout.states import State
from gunicorn_admission.webhooks.fanout.subscriptions import find_subscription
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import audit, deliveries, events

__all__ = ["note", "redrive"]

#: Deliveries in one transaction.
_STEP: Final = 500


def redrive(
    store: Store,
    name: str,
    selection: Selection,
    *,
    states: Iterable[State] = (State.DEAD,),
    dry_run: bool = False,
    actor: str = "python",
    progress: Callable[[int], None] | None = None,
) -> int:
    """
    Let deliveries be tried again, at once and as if for the first time.

    It concerns this subscription only; what the event's other consumers did is left alone.

    Args:
        name: Of the subscription.
        selection: Which of them.
        states: Only those in these states: ``DEAD``; ``UNCERTAIN``, where a person has found
            that the effect did not happen; ``PENDING``, which skips the rest of a backoff.
        dry_run: Only count.
        progress: Told how many were done so far.

    Returns:
        How many.

    Raises:
        ConfigError: There is no such subscription.
    """
    wanted = [state.value for state in states]
    done, last = 0, 0

    def step(connection: Connection) -> list[int]:
        query = (
            select(deliveries.c.seq)
            .join(events, events.c.seq == deliveries.c.seq)
            .where(
                deliveries.c.subscription == name,
                deliveries.c.state.in_(wanted),
                deliveries.c.seq > last,
                *selection.of_deliveries(),
            )
            .order_by(deliveries.c.seq)
            .limit(_STEP)
        )
        if dry_run:
            return list(connection.scalars(query))
        numbers = list(connection.scalars(query.with_for_update(of=deliveries)))
        now = store.now()
        connection.execute(
            update(deliveries)
            .where(deliveries.c.subscription == name, deliveries.c.seq.in_(numbers))
            .values(
                state=State.PENDING.value,
                attempts=0,
                visible_at=now,
                finished_at=None,
                updated_at=now,
            )
        )
        return numbers

    with store.read() as connection:
        find_subscription(connection, name)
    while True:
        if dry_run:
            with store.read() as connection:
                numbers = step(connection)
        else:
            numbers = store.write(step)
        done += len(numbers)
        if progress is not None and numbers:
            progress(done)
        if len(numbers) < _STEP:
            break
        last = numbers[-1]
    if done and not dry_run:
        detail = {**selection.in_words(), "states": wanted, "count": done}
        store.write(lambda connection: note(connection, store, actor, "redrive", name, detail))
    return done


def note(
    connection: Connection, store: Store, actor: str, action: str, name: str, detail: Any
) -> None:
    """Leave a line in the audit."""
    connection.execute(
        audit.insert(),
        {
            "at": store.now(),
            "actor": actor,
            "action": f"deliveries.{action}",
            "subject": name,
            "detail": detail,
        },
    )
