"""What an operator decides about single events: release, approve, reject."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, insert

from gunicorn_admission.webhooks.gates.answers import APPROVED, BEYOND
from gunicorn_admission.webhooks.gates.errors import LedgerConflict
from gunicorn_admission.webhooks.gates.gate import lock_gate
from gunicorn_admission.webhooks.gates.record import Key, State, change, find
from gunicorn_admission.webhooks.gates.wake import wake_event
from gunicorn_admission.webhooks.store.schema import audit

__all__ = ["approve", "reject", "release"]


def release(
    connection: Connection,
    *,
    consumer: str,
    source: str,
    event_id: str,
    now: int,
    actor: str,
    beyond: bool = False,
) -> None:
    """
    Let an event run that was refused, rejected or deferred.

    It is admitted as soon as it fits, and deferred until then.

    Args:
        beyond: Let it pass a ceiling that has no room; the entry says so.
        actor: Who does it, for the audit trail.

    Raises:
        LedgerConflict: It was not refused, rejected or deferred.
    """
    key = Key(consumer, source, event_id)
    states = (State.REFUSED, State.REJECTED, State.DEFERRED)
    _decide(connection, key, "release", states, now, actor, beyond=beyond)


def approve(
    connection: Connection,
    *,
    consumer: str,
    source: str,
    event_id: str,
    now: int,
    actor: str,
    beyond: bool = False,
) -> None:
    """
    Let an event run that waits in review; see :func:`release`.

    Raises:
        LedgerConflict: It is not in review.
    """
    key = Key(consumer, source, event_id)
    _decide(connection, key, "approve", (State.REVIEW,), now, actor, beyond=beyond)


def reject(
    connection: Connection, *, consumer: str, source: str, event_id: str, now: int, actor: str
) -> None:
    """
    Refuse an event that waits in review, for good.

    Raises:
        LedgerConflict: It is not in review.
    """
    key = Key(consumer, source, event_id)
    _decide(connection, key, "reject", (State.REVIEW,), now, actor)


_HINTS = {
    State.REVIEW: "approve or reject it",
    State.REFUSED: "release it",
    State.REJECTED: "release it",
    State.DEFERRED: "it runs when its window resets; release it to have it looked at now",
    State.APPROVED: "it runs as soon as it fits",
    State.COMPLETED: "its effect is done",
    State.RESERVED: "it is being worked on",
    State.FAILED: "it is tried again by itself",
    State.DEAD: "redrive it from the dead letters",
    State.SKIPPED: "replay it",
}


def _decide(
    connection: Connection,
    key: Key,
    verb: str,
    states: tuple[State, ...],
    now: int,
    actor: str,
    *,
    beyond: bool = False,
) -> None:
    lock_gate(connection, key.consumer)
    row = find(connection, key)
    state = None if row is None else State(row.state)
    if state not in states:
        hint = "write it as source/event_id, as in stripe/evt_1" if state is None else _HINTS[state]
        event = f"{key.source}/{key.event_id}"
        raise LedgerConflict(key.consumer, event, state and state.value, hint)
    values: dict[str, Any] = {"state": State.REJECTED.value}
    if verb != "reject":
        # The answer goes: what is decided next is new.
        values = {
            "state": State.APPROVED.value,
            "permit": BEYOND if beyond else APPROVED,
            "defer_until": None,
            "answer": None,
        }
    change(connection, key, now, **values)
    if verb != "reject":
        wake_event(connection, key, now)
    detail = {"event": f"{key.source}/{key.event_id}", "was": state.value, "beyond": beyond}
    connection.execute(
        insert(audit).values(
            at=now, actor=actor, action=f"gate.{verb}", subject=key.consumer, detail=detail
        )
    )
