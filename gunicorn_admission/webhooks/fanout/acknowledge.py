"""
The end of an attempt: done, failed, dead, or handed back. Each is fenced by the lease's token.

All lock the delivery first and the ledger after it, as a claim does.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from sqlalchemy import Connection, update

from gunicorn_admission.webhooks.fanout.claims import Lease
from gunicorn_admission.webhooks.fanout.outcome import GiveUp, LeaseLost, RetryIn
from gunicorn_admission.webhooks.fanout.states import State
from gunicorn_admission.webhooks.fanout.verdicts import in_words
from gunicorn_admission.webhooks.gates import Ledger
from gunicorn_admission.webhooks.store.schema import attempts, deliveries

__all__ = ["complete", "extend", "fail", "hand_back"]


def complete(
    connection: Connection,
    ledger: Ledger,
    lease: Lease,
    now: int,
    actual: Mapping[str, int] | None = None,
) -> None:
    """
    Record that the effect is durable.

    Raises:
        LeaseLost: Another worker has the delivery. The transaction must be rolled back, and with
            it an effect that is in it.
    """
    _finish(connection, lease, now, State.COMPLETED, {"last_error": None, "finished_at": now})
    if not ledger.complete(connection, **_key(lease), lease=lease.token, now=now, actual=actual):
        raise _lost(lease)
    _end_attempt(connection, lease, now, "completed")


def fail(
    connection: Connection,
    ledger: Ledger,
    lease: Lease,
    now: int,
    error: BaseException,
    *,
    no_retry: tuple[type[Exception], ...] = (),
    random: Random,
) -> State:
    """
    Record that the attempt failed: another one follows after a pause, or it is a dead letter.

    Returns:
        ``PENDING`` or ``DEAD``.

    Raises:
        LeaseLost: Another worker has the delivery.
    """
    number, words = lease.event.attempt, in_words(error)
    key = _key(lease)
    if isinstance(error, (GiveUp, *no_retry)) or number >= lease.retry.max_attempts:
        _finish(connection, lease, now, State.DEAD, {"last_error": words, "finished_at": now})
        if not ledger.bury(connection, **key, lease=lease.token, now=now):
            raise _lost(lease)
        _end_attempt(connection, lease, now, "dead", words)
        return State.DEAD
    pause = error.pause if isinstance(error, RetryIn) else lease.retry.pause(number, random)
    values = {"last_error": words, "visible_at": now + round(pause * 1e6)}
    _finish(connection, lease, now, State.PENDING, values)
    if not ledger.fail(connection, **key, lease=lease.token, now=now):
        raise _lost(lease)
    _end_attempt(connection, lease, now, "failed", words)
    return State.PENDING


def hand_back(connection: Connection, ledger: Ledger, lease: Lease, now: int) -> None:
    """
    Give back a delivery whose handler was not called; it counts as no attempt.

    Raises:
        LeaseLost: Another worker has the delivery.
    """
    values = {"visible_at": now, "attempts": lease.event.attempt - 1}
    _finish(connection, lease, now, State.PENDING, values)
    if not ledger.hand_back(connection, **_key(lease), lease=lease.token, now=now):
        raise _lost(lease)
    _end_attempt(connection, lease, now, "released")


def extend(
    connection: Connection, ledger: Ledger, lease: Lease, now: int, lease_until: int
) -> bool:
    """Keep a lease for longer. ``False``: it was lost."""
    done = connection.execute(_mine(lease).values(visible_at=lease_until, updated_at=now))
    return done.rowcount == 1 and ledger.extend(
        connection, **_key(lease), lease=lease.token, lease_until=lease_until
    )


def _key(lease: Lease) -> dict[str, Any]:
    event = lease.event
    return {"consumer": event.consumer, "source": event.source, "event_id": event.event_id}


def _mine(lease: Lease) -> Any:
    return update(deliveries).where(
        deliveries.c.subscription == lease.event.consumer,
        deliveries.c.seq == lease.seq,
        deliveries.c.state == State.LEASED.value,
        deliveries.c.lease == lease.token,
    )


def _finish(
    connection: Connection, lease: Lease, now: int, state: State, values: dict[str, Any]
) -> None:
    done = connection.execute(_mine(lease).values(state=state.value, updated_at=now, **values))
    if done.rowcount != 1:
        raise _lost(lease)


def _end_attempt(
    connection: Connection, lease: Lease, now: int, outcome: str, error: str | None = None
) -> None:
    connection.execute(
        update(attempts)
        .where(
            attempts.c.subscription == lease.event.consumer,
            attempts.c.seq == lease.seq,
            attempts.c.lease == lease.token,
        )
        .values(ended_at=now, outcome=outcome, error=error)
    )


def _lost(lease: Lease) -> LeaseLost:
    event = lease.event
    return LeaseLost(
        f"{event.consumer} lost its lease of {event.source}/{event.event_id} in attempt "
        f"{event.attempt}; another worker may have it. Hint: a longer lease, or a shorter handler"
    )
