"""
The proof that the counters say what the entries say, and that no reservation is left over.

Reads only; on one snapshot, so it may run while workers do.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from attrs import asdict, frozen
from sqlalchemy import Connection, and_, exists, func, insert, select, update

from gunicorn_admission.webhooks.gates.gate import as_ceiling, lock_gate
from gunicorn_admission.webhooks.gates.record import State
from gunicorn_admission.webhooks.store.schema import (
    audit as trail,
)
from gunicorn_admission.webhooks.store.schema import (
    ceilings,
    deliveries,
    entries,
    events,
    ledger,
    subscriptions,
    windows,
)

__all__ = ["Finding", "Fault", "audit_ledger", "repair"]


class Fault(enum.Enum):
    """What is wrong; a closed list."""

    DRIFT = "drift"  # a counter is not the sum of its entries
    MISMATCH = "mismatch"  # an event's open reservations are not those of its entries
    LEAKED = "leaked"  # reserved for an attempt whose lease has ended
    ORPHANED = "orphaned"  # reserved for a next attempt that never comes


@frozen(kw_only=True)
class Finding:
    """
    One thing that is wrong.

    Attributes:
        fault: What.
        consumer: Whose ledger.
        subject: The ceiling and window, or the event as ``source/event_id``.
        detail: In words, with the figures.
        amounts: Units that are reserved by unit, or the difference of the counters.
    """

    fault: Fault
    consumer: str
    subject: str
    detail: str
    amounts: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {**asdict(self), "fault": self.fault.value}


def audit_ledger(
    connection: Connection, *, now: int, consumer: str | None = None, grace_us: int = 0
) -> list[Finding]:
    """
    Recompute the counters of all consumers, or one, and look for what is left over.

    Args:
        now: Microseconds since the epoch.
        grace_us: How long after the end of its lease a reservation may still stand: workers
            need a moment to take it up.
    """
    known = {
        row.id: (row.consumer, row.unit, str(as_ceiling(row)))
        for row in connection.execute(select(ceilings))
        if consumer in (None, row.consumer)
    }
    return [
        *_drift(connection, known),
        *_mismatch(connection, known),
        *_leaked(connection, known, now - grace_us),
    ]


_Known = dict[int, tuple[str, str, str]]


def _sums(connection: Connection) -> dict[tuple[int, int], tuple[int, int]]:
    """Return what the entries say of each window."""
    statement = select(
        entries.c.ceiling,
        entries.c.starts_at,
        func.sum(entries.c.reserved),
        func.sum(entries.c.settled),
    ).group_by(entries.c.ceiling, entries.c.starts_at)
    return {(c, w): (int(r), int(s)) for c, w, r, s in connection.execute(statement)}


def _drift(connection: Connection, known: _Known) -> Iterator[Finding]:
    sums = _sums(connection)
    counted = {
        (row.ceiling, row.starts_at): ((row.reserved, row.settled), row.key)
        for row in connection.execute(select(windows))
    }
    for place in sorted({*sums, *counted}):
        if place[0] not in known:
            continue
        told, key = counted.get(place, ((0, 0), f"from {_clock(place[1])}"))
        true = sums.get(place, (0, 0))
        if told != true:
            consumer, unit, ceiling = known[place[0]]
            yield Finding(
                fault=Fault.DRIFT,
                consumer=consumer,
                subject=f"{ceiling}, {key}",
                detail=f"counted {told[0]} reserved and {told[1]} settled, "
                f"entries say {true[0]} and {true[1]}",
                amounts={unit: sum(told) - sum(true)},
            )


def _mismatch(connection: Connection, known: _Known) -> Iterator[Finding]:
    open_by_entries: dict[tuple[str, str, str], dict[tuple[int, int], int]] = {}
    statement = (
        select(
            entries.c.ceiling,
            entries.c.starts_at,
            entries.c.source,
            entries.c.event_id,
            func.sum(entries.c.reserved),
        )
        .group_by(entries.c.ceiling, entries.c.starts_at, entries.c.source, entries.c.event_id)
        .having(func.sum(entries.c.reserved) != 0)
    )
    for ceiling, starts_at, source, event_id, amount in connection.execute(statement):
        if ceiling in known:
            event = (known[ceiling][0], source, event_id)
            open_by_entries.setdefault(event, {})[ceiling, starts_at] = int(amount)
    held = {
        (row.consumer, row.source, row.event_id): {(c, w): a for c, w, a in row.held if a}
        for row in connection.execute(_holding())
    }
    consumers = {consumer for consumer, *_ in known.values()}
    for event in sorted({*open_by_entries, *held}):
        true, told = open_by_entries.get(event, {}), held.get(event, {})
        if event[0] in consumers and true != told:
            yield Finding(
                fault=Fault.MISMATCH,
                consumer=event[0],
                subject=f"{event[1]}/{event[2]}",
                detail=f"holds {_words(told, known)}, entries say {_words(true, known)}",
                amounts=_by_unit(told, known),
            )


def _holding() -> Any:
    return select(ledger).where(ledger.c.held.is_not(None), ledger.c.state != State.COMPLETED.value)


def _leaked(connection: Connection, known: _Known, now: int) -> Iterator[Finding]:
    open_delivery = exists().where(
        deliveries.c.subscription == ledger.c.consumer,
        deliveries.c.seq == events.c.seq,
        events.c.source == ledger.c.source,
        events.c.event_id == ledger.c.event_id,
        deliveries.c.finished_at.is_(None),
    )
    # A consumer that fan-out does not run is asked again by whoever does.
    by_fanout = exists().where(subscriptions.c.name == ledger.c.consumer)
    consumers = {consumer for consumer, *_ in known.values()}
    statement = _holding().add_columns(and_(by_fanout, ~open_delivery).label("orphaned"))
    for row in connection.execute(statement):
        amounts = {(c, w): a for c, w, a in row.held if a}
        if row.consumer not in consumers or not amounts:
            continue
        if row.state == State.RESERVED.value:
            if row.lease_until >= now:
                continue
            fault = Fault.LEAKED
            detail = f"its lease ended at {_clock(row.lease_until)} and nobody took it up"
        else:
            if row.state == State.FAILED.value and not row.orphaned:
                continue
            fault = Fault.ORPHANED
            detail = f"is {row.state}, and no delivery is to come"
        yield Finding(
            fault=fault,
            consumer=row.consumer,
            subject=f"{row.source}/{row.event_id}",
            detail=f"holds {_words(amounts, known)}: {detail}",
            amounts=_by_unit(amounts, known),
        )


def _by_unit(amounts: dict[tuple[int, int], int], known: _Known) -> dict[str, int]:
    sums: dict[str, int] = {}
    for (ceiling, _), amount in amounts.items():
        unit = known[ceiling][1]
        sums[unit] = max(sums.get(unit, 0), amount)  # one event, under several ceilings
    return sums


def _words(amounts: dict[tuple[int, int], int], known: _Known) -> str:
    said = [f"{amount} {unit}" for unit, amount in _by_unit(amounts, known).items()]
    return ", ".join(said) or "nothing"


def _clock(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1e6, UTC):%Y-%m-%dT%H:%M:%SZ}"


def repair(connection: Connection, consumer: str, *, now: int, actor: str) -> int:
    """
    Write the sums of the entries into the counters of one consumer, with its gate held.

    Returns:
        How many windows were wrong. Reservations are not touched: those that are left over end
        when their event is taken up, or with ``dead-letters``.
    """
    lock_gate(connection, consumer)
    mine = set(connection.scalars(select(ceilings.c.id).where(ceilings.c.consumer == consumer)))
    sums = {place: true for place, true in _sums(connection).items() if place[0] in mine}
    wrong = []
    for row in connection.execute(select(windows).where(windows.c.ceiling.in_(mine))):
        true = sums.get((row.ceiling, row.starts_at), (0, 0))
        if true != (row.reserved, row.settled):
            wrong.append([row.ceiling, row.starts_at, row.reserved, row.settled])
            connection.execute(
                update(windows)
                .where(windows.c.ceiling == row.ceiling, windows.c.starts_at == row.starts_at)
                .values(reserved=true[0], settled=true[1])
            )
    if wrong:
        connection.execute(
            insert(trail).values(
                at=now, actor=actor, action="gate.repair", subject=consumer,
                detail={"before": wrong},
            )
        )  # fmt: skip
    return len(wrong)
