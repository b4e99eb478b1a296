"""How far each consumer is behind: the age of its oldest unfinished event."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from gunicorn_admission.webhooks.store.schema import deliveries, subscriptions

__all__ = ["oldest_ages"]


def oldest_ages(connection: Connection, now: int) -> dict[str, float]:
    """
    Return the age of the oldest unfinished delivery of each subscription that has one and is not
    disabled, in seconds. What waits for a ceiling or a review is in it: its consumer has not
    done it yet.
    """
    rows = connection.execute(
        select(deliveries.c.subscription, func.min(deliveries.c.created_at))
        .join(subscriptions, subscriptions.c.name == deliveries.c.subscription)
        .where(deliveries.c.finished_at.is_(None), subscriptions.c.mode != "disabled")
        .group_by(deliveries.c.subscription)
    )
    return {name: max(0.0, (now - at) / 1e6) for name, at in rows}
