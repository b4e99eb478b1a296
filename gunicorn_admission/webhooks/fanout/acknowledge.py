"""
The end of an attempt: done, failed, dead, or handed back. Each is fenced by the lease's token.

All lock the delivery first and the ledger after it, as a claim does.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from sqlalchemy import Connection, bindparam, update

from gunicorn_admission.webhooks.fanout.claims import Lease
from gunicorn_admission.webhooks.fanout.outcome import GiveUp, LeaseLost, RetryIn
from gunicorn_admission.webhooks.fanout.states import FINISHED, State
from gunicorn_admission.webhooks.fanout.verdicts import in_words
from gunicorn_admission.webhooks.gates import Ledger
from gunicorn_admission.webhooks.store.schema import attempts, deliveries

__all__ = ["complete", "extend", "fail", "hand_back"]

# Built once: to build a statement costs more than to run it.
_HELD = update(deliveries).where(
    deliveries.c.subscription == bindparam("consumer"),
    deliveries.c.seq == bindparam("of_seq"),
    deliveries.c.state == State.LEASED.value,
    deliveries.c.lease == bindparam("token"),
)
_EXTEND = _HELD.values(visible_at=bindparam("until"), updated_at=bindparam("now"))
_FINISH = _HELD.values(
    state=bindparam("new_state"),
    visible_at=bindparam("new_visible_at"),
    attempts=bindparam("new_attempts"),
    last_error=bindparam("new_error"),
    finished_at=bindparam("new_finished_at"),
    updated_at=bindparam("now"),
)
_END_ATTEMPT = (
    update(attempts)
    .where(
        attempts.c.subscription == bindparam("consumer"),
        attempts.c.seq == bindparam("of_seq"),
        attempts.c.lease == bindparam("token"),
    )
    .values(
        ended_at=bindparam("now"), outcome=bindparam("new_outcome"), error=bindparam("new_error")
    )
)


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
    _finish(connection, lease, now, State.COMPLETED, visible_at=now)
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
        _finish(connection, lease, now, State.DEAD, visible_at=now, error=words)
        if not ledger.bury(connection, **key, lease=lease.token, now=now):
            raise _lost(lease)
        _end_attempt(connection, lease, now, "dead", words)
        return State.DEAD
    pause = error.pause if isinstance(error, RetryIn) else lease.retry.pause(number, random)
    visible_at = now + round(pause * 1e6)
    _finish(connection, lease, now, State.PENDING, visible_at=visible_at, error=words)
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
    before = lease.event.attempt - 1
    _finish(connection, lease, now, State.PENDING, visible_at=now, used=before)
    if not ledger.hand_back(connection, **_key(lease), lease=lease.token, now=now):
        raise _lost(lease)
    _end_attempt(connection, lease, now, "released")


def extend(
    connection: Connection, ledger: Ledger, lease: Lease, now: int, lease_until: int
) -> bool:
    """Keep a lease for longer. ``False``: it was lost."""
    done = connection.execute(_EXTEND, {**_mine(lease), "until": lease_until, "now": now})
    return done.rowcount == 1 and ledger.extend(
        connection, **_key(lease), lease=lease.token, lease_until=lease_until
    )


def _key(lease: Lease) -> dict[str, Any]:
    event = lease.event
    return {"consumer": event.consumer, "source": event.source, "event_id": event.event_id}


def _finish(
    connection: Connection,
    lease: Lease,
    now: int,
    state: State,
    *,
    visible_at: int,
    used: int | None = None,
    error: str | None = None,
) -> None:
    done = connection.execute(
        _FINISH,
        {
            **_mine(lease),
            "new_state": state.value,
            "new_visible_at": visible_at,
            "new_attempts": lease.event.attempt if used is None else used,
            "new_error": error,
            "new_finished_at": now if state in FINISHED else None,
            "now": now,
        },
    )
    if done.rowcount != 1:
        raise _lost(lease)


def _end_attempt(
    connection: Connection, lease: Lease, now: int, outcome: str, error: str | None = None
) -> None:
    told = {"new_outcome": outcome, "new_error": error, "now": now}
    connection.execute(_END_ATTEMPT, {**_mine(lease), **told})


def _mine(lease: Lease) -> dict[str, Any]:
    return {"consumer": lease.event.consumer, "of_seq": lease.seq, "token": lease.token}


def _lost(lease: Lease) -> LeaseLost:
    event = lease.event
    return LeaseLost(
        f"{event.consumer} lost its lease of {event.source}/{event.event_id} in attempt "
        f"{event.attempt}; another worker may have it. Hint: a longer lease, or a shorter handler"
    )
