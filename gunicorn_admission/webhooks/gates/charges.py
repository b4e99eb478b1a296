"""The end of a reservation: settled at what the work did cost, or released."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row

from gunicorn_admission.webhooks.gates import book
from gunicorn_admission.webhooks.gates.answers import cause
from gunicorn_admission.webhooks.gates.gate import Gate
from gunicorn_admission.webhooks.gates.policy import Charge
from gunicorn_admission.webhooks.gates.record import Key, held_of
from gunicorn_admission.webhooks.gates.units import check_cost
from gunicorn_admission.webhooks.gates.wake import wake_next

__all__ = ["is_charged", "release", "settle"]


def is_charged(gate: Gate | None, actual: Mapping[str, int] | None) -> bool:
    """Whether an attempt that ended without effect is charged."""
    if gate is None:
        return False
    return gate.charge is Charge.ATTEMPT or (gate.charge is Charge.ACTUAL and actual is not None)


def settle(
    connection: Connection,
    key: Key,
    gate: Gate | None,
    row: Row[Any],
    now: int,
    actual: Mapping[str, int] | None,
) -> None:
    """
    Turn what a row holds into spend.

    What is left of an estimate may be what a deferred event waits for.

    Raises:
        ConfigError: ``actual`` is not whole numbers.
    """
    told = check_cost(actual or {}, "actual")
    held = held_of(row)
    if gate is None or not held:
        return
    if gate.charge is Charge.EVENT:
        told = {}
    spent = [told.get(gate.units[ceiling], amount) for ceiling, _, amount in held]
    book.settle(connection, held, spent, cause(key, row.attempts, now))
    if any(real < amount for real, (*_, amount) in zip(spent, held, strict=True)):
        wake_next(connection, key.consumer, now)


def release(connection: Connection, key: Key, row: Row[Any], now: int) -> None:
    """Give back what a row holds."""
    held = held_of(row)
    book.release(connection, held, cause(key, row.attempts, now))
    if any(amount for *_, amount in held):
        wake_next(connection, key.consumer, now)
