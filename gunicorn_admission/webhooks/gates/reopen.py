"""Letting a completed event run again, because a person says so."""

from __future__ import annotations

from sqlalchemy import Connection

from gunicorn_admission.webhooks.gates.record import Key, State, change, find

__all__ = ["reopen"]


def reopen(connection: Connection, consumer: str, source: str, event_id: str, now: int) -> bool:
    """
    Take back that an event is completed: its effect will happen again, and is charged again.

    Returns:
        ``False``: it was not completed.
    """
    key = Key(consumer, source, event_id)
    row = find(connection, key)
    if row is None or row.state != State.COMPLETED.value:
        return False
    change(connection, key, now, state=State.FAILED.value)
    return True
