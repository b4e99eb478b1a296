"""
Admission of events, and the end of their attempts: reserve, settle, release.

Locks, in this order: the delivery's row (fan-out's), the consumer's gate, the ledger's rows,
the windows by number of their ceiling. A transaction that follows it for one consumer, in one
order of events, cannot deadlock with another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row

from gunicorn_admission.webhooks.gates import answers, charges
from gunicorn_admission.webhooks.gates.decision import Decision, Kind
from gunicorn_admission.webhooks.gates.gate import Gate, Gates
from gunicorn_admission.webhooks.gates.record import (
    Key,
    State,
    change,
    create,
    extend,
    find,
)
from gunicorn_admission.webhooks.gates.units import check_cost

__all__ = ["Ledger"]


class Ledger:
    """
    Decides for each event at each consumer, once.

    Every method works in the caller's transaction, which must write (``Store.write`` or
    ``Store.transaction``) and must roll back if a method raises. Times are microseconds since
    the epoch. ``lease`` is a random token, another one for each attempt: it fences off an
    attempt whose lease was lost.

    Thread safety: all methods may be called from any thread, each with its own connection.
    """

    def __init__(self) -> None:
        self._gates = Gates()

    def admit(
        self,
        connection: Connection,
        *,
        consumer: str,
        source: str,
        event_id: str,
        lease: str,
        lease_until: int,
        now: int,
        cost: Mapping[str, int] | None = None,
        expires_at: int | None = None,
    ) -> Decision:
        """
        Say whether the consumer may have the event now, and reserve what it costs if so.

        The answer is a row. The same question gives the same answer, with ``is_new=False``,
        until something changes: the window resets, an operator releases it, the attempt ends.

        Args:
            cost: Of this event by unit; what it leaves out has the gate's default.
            expires_at: When the event is thrown away: it is not deferred beyond that.

        Raises:
            ConfigError: The cost is not whole numbers, or leaves out a unit that is bounded.
                Nothing was written.
        """
        key = Key(consumer, source, event_id)
        gate = self._gates.lock(connection, consumer)
        amounts = check_cost(cost or {}) if gate is None else gate.amounts(cost)
        while True:
            row = find(connection, key)
            if row is not None:
                told = answers.recorded(connection, key, row, lease, now)
                if told is not None:
                    return told
            answer = answers.decide(connection, key, row, gate, amounts, now, expires_at)
            if answer.decision.kind is Kind.ADMITTED:
                answer.values.update(lease=lease, lease_until=lease_until)
            if row is not None:
                change(connection, key, now, **answer.values)
            elif not create(connection, key, now, **answer.values):
                continue  # another transaction was first: see what it decided
            answer.reserve(connection, answers.cause(key, answer.decision.attempt, now))
            return answer.decision

    def complete(
        self,
        connection: Connection,
        *,
        consumer: str,
        source: str,
        event_id: str,
        lease: str,
        now: int,
        actual: Mapping[str, int] | None = None,
    ) -> bool:
        """
        Record that the effect is done, and settle what it cost.

        Args:
            actual: What it did cost by unit, for a gate that charges attempts or actual cost.
                A unit left out, or ``None``, settles at the estimate.

        Returns:
            ``False``: the lease was lost, and nothing is recorded. An effect in the same
            transaction must then be rolled back.

        Raises:
            ConfigError: ``actual`` is not whole numbers.
        """
        key = Key(consumer, source, event_id)
        gate, row = self._fenced(connection, key, lease)
        if row is None:
            return False
        charges.settle(connection, key, gate, row, now, actual)
        change(connection, key, now, state="completed", lease=None, lease_until=None, held=None)
        return True

    def fail(
        self,
        connection: Connection,
        *,
        consumer: str,
        source: str,
        event_id: str,
        lease: str,
        now: int,
        actual: Mapping[str, int] | None = None,
    ) -> bool:
        """
        Record that the attempt failed; another may come.

        A gate that charges attempts settles this one. Otherwise the reservation stays for the
        next attempt, unless a gate of actual cost is told that this one has cost something.

        Returns:
            ``False``: the lease was lost, and nothing is recorded.
        """
        key = Key(consumer, source, event_id)
        gate, row = self._fenced(connection, key, lease)
        if row is None:
            return False
        values: dict[str, Any] = {"state": "failed", "lease": None, "lease_until": None}
        if charges.is_charged(gate, actual):
            charges.settle(connection, key, gate, row, now, actual)
            values["held"] = None
        change(connection, key, now, **values)
        return True

    def hand_back(
        self,
        connection: Connection,
        *,
        consumer: str,
        source: str,
        event_id: str,
        lease: str,
        now: int,
    ) -> bool:
        """
        Take back an attempt whose handler was not called; it costs nothing.

        Returns:
            ``False``: the lease was lost, and nothing is recorded.
        """
        key = Key(consumer, source, event_id)
        _, row = self._fenced(connection, key, lease)
        if row is None:
            return False
        values = {"state": "failed", "lease": None, "lease_until": None}
        change(connection, key, now, attempts=row.attempts - 1, **values)
        return True

    def extend(
        self,
        connection: Connection,
        *,
        consumer: str,
        source: str,
        event_id: str,
        lease: str,
        lease_until: int,
    ) -> bool:
        """Keep the lease for longer; ``False``: it was lost."""
        return extend(connection, Key(consumer, source, event_id), lease, lease_until)

    def bury(
        self,
        connection: Connection,
        *,
        consumer: str,
        source: str,
        event_id: str,
        now: int,
        lease: str | None = None,
        actual: Mapping[str, int] | None = None,
    ) -> bool:
        """
        Send it to the dead letters: what is reserved is released. A redrive is admitted anew.

        Args:
            lease: Of the attempt that was the last; ``None`` for an event with none under way.
            actual: What that attempt did cost.

        Returns:
            ``False``: the lease was lost, an attempt is under way, or the effect is done.
        """
        return self._end(connection, Key(consumer, source, event_id), "dead", now, lease, actual)

    def skip(
        self,
        connection: Connection,
        *,
        consumer: str,
        source: str,
        event_id: str,
        now: int,
        lease: str | None = None,
    ) -> bool:
        """
        Record that no effect is wanted (shadow, filter); what is reserved is released.

        An explicit replay is admitted, since nothing was done.

        Returns:
            ``False``: the lease was lost, an attempt is under way, or the effect is done.
        """
        key = Key(consumer, source, event_id)
        if lease is None and create(connection, key, now, state="skipped"):
            return True
        return self._end(connection, key, "skipped", now, lease, None)

    def _end(
        self,
        connection: Connection,
        key: Key,
        state: str,
        now: int,
        lease: str | None,
        actual: Mapping[str, int] | None,
    ) -> bool:
        gate = self._gates.lock(connection, key.consumer)
        row = find(connection, key)
        if row is None or row.lease != lease or row.state == State.COMPLETED.value:
            return False
        if lease is not None and charges.is_charged(gate, actual):
            charges.settle(connection, key, gate, row, now, actual)
        else:
            charges.release(connection, key, row, now)
        change(connection, key, now, state=state, lease=None, lease_until=None, held=None)
        return True

    def _fenced(
        self, connection: Connection, key: Key, lease: str
    ) -> tuple[Gate | None, Row[Any] | None]:
        """Return the row if the attempt still holds it."""
        gate = self._gates.lock(connection, key.consumer)
        row = find(connection, key)
        if row is None or row.state != State.RESERVED.value or row.lease != lease:
            return gate, None
        return gate, row
