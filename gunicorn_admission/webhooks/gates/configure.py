"""Setting up a consumer's gate: a change applies at once, and what was spent stays."""

from __future__ import annotations

import secrets
from typing import Any

from sqlalchemy import Connection, insert, select, update

from gunicorn_admission.webhooks.gates.gate import Gate, load_gate, lock_gate
from gunicorn_admission.webhooks.gates.policy import GatePolicy, check_retention
from gunicorn_admission.webhooks.gates.wake import wake_deferred
from gunicorn_admission.webhooks.store import statements
from gunicorn_admission.webhooks.store.schema import audit, ceilings, gates, subscriptions

__all__ = ["check_deferral", "configure", "policy_of"]


def policy_of(gate: Gate) -> GatePolicy:
    """Return a gate's policy as it could be declared."""
    return GatePolicy(
        [bound.ceiling for bound in gate.bounds],
        cost=gate.cost,
        charge=gate.charge,
        at_ceiling=gate.at_ceiling,
    )


def check_deferral(connection: Connection, consumer: str, retention_us: int) -> None:
    """
    Refuse a retention that is too short for what the consumer's gate defers.

    Raises:
        ConfigError: Work is deferred for longer than an event would be kept.
    """
    lock_gate(connection, consumer)
    gate = load_gate(connection, consumer)
    if gate is not None:
        check_retention(policy_of(gate), retention_us)


def configure(
    connection: Connection,
    consumer: str,
    policy: GatePolicy,
    *,
    now: int,
    retention_us: int | None = None,
    actor: str = "code",
    declared: bool = False,
) -> bool:
    """
    Make ``policy`` the gate of a consumer.

    Ceilings that the policy no longer has end, and keep what was spent; one that returns goes
    on where it ended. What is reserved stays reserved. Deferred events are looked at again.

    Args:
        now: Microseconds since the epoch.
        retention_us: How long the subscription keeps an event; ``None`` asks the store.
        actor: Who changes it, for the audit trail.
        declared: It comes from code that says the same at each start. It is applied when the
            code has changed, so that what an operator set in between is not undone by a
            restart.

    Returns:
        Whether anything was changed.

    Raises:
        ConfigError: Work is to be deferred for longer than the event is kept.
    """
    if retention_us is None:
        retention_us = connection.execute(
            select(subscriptions.c.retention_us).where(subscriptions.c.name == consumer)
        ).scalar_one_or_none()
    if retention_us is not None:
        check_retention(policy, retention_us)
    wanted = policy.as_dict()
    columns = {
        "at_ceiling": wanted["at_ceiling"],
        "charge": wanted["charge"],
        "cost": wanted["cost"],
        "revision": secrets.token_hex(8),
        "updated_at": now,
    } | ({"declared": wanted} if declared else {})
    made = connection.execute(
        statements.insert(connection, gates).on_conflict_do_nothing().returning(gates.c.consumer),
        {"consumer": consumer, "created_at": now, **columns},
    )
    is_first = made.one_or_none() is not None
    before: dict[str, Any] | None = None
    if not is_first:
        said = connection.execute(
            select(gates.c.declared).where(gates.c.consumer == consumer).with_for_update()
        ).scalar_one()
        if declared and said == wanted:
            return False
        gate = load_gate(connection, consumer)
        assert gate is not None  # its row is locked
        before = policy_of(gate).as_dict()
        connection.execute(update(gates).where(gates.c.consumer == consumer).values(**columns))
        if before == wanted:
            return False
    _set_ceilings(connection, consumer, policy, now)
    wake_deferred(connection, consumer, now)
    connection.execute(
        insert(audit).values(
            at=now,
            actor=actor,
            action="gate.set",
            subject=consumer,
            detail={"before": before, "after": wanted},
        )
    )
    return True


def _set_ceilings(connection: Connection, consumer: str, policy: GatePolicy, now: int) -> None:
    known = {
        (row.unit, row.span): row
        for row in connection.execute(select(ceilings).where(ceilings.c.consumer == consumer))
    }
    for ceiling in policy.ceilings:
        values = {
            "hard": ceiling.hard,
            "soft": ceiling.soft,
            "bill_source": ceiling.bill_source,
            "ended_at": None,
        }
        row = known.pop((ceiling.unit, str(ceiling.span)), None)
        if row is None:
            new = {"consumer": consumer, "unit": ceiling.unit, "span": str(ceiling.span)}
            connection.execute(insert(ceilings).values(created_at=now, **new, **values))
        else:
            connection.execute(update(ceilings).where(ceilings.c.id == row.id).values(**values))
    for row in known.values():
        if row.ended_at is None:
            connection.execute(update(ceilings).where(ceilings.c.id == row.id).values(ended_at=now))
