"""A gate on a store, with the clock in the test's hand."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from gunicorn_admission.webhooks.gates import Decision, GatePolicy, Ledger, configure
from gunicorn_admission.webhooks.gates.audit import Finding, audit_ledger
from gunicorn_admission.webhooks.store import Store

__all__ = ["DAY", "HOUR", "LEASE", "MONDAY", "SECOND", "Gated"]

SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR
LEASE = 30 * SECOND
#: 2026-11-30T12:00:00Z
MONDAY = 1_796_040_000 * SECOND


class Gated:
    """One consumer, its gate and its attempts; each call is a transaction."""

    def __init__(self, store: Store, policy: GatePolicy | None, consumer: str = "usage") -> None:
        self.store = store
        self.consumer = consumer
        self.ledger = Ledger()
        self.now = MONDAY
        self._tokens = (f"lease-{number}" for number in itertools.count())
        self.leases: dict[str, str] = {}
        if policy is not None:
            self.configure(policy)

    def configure(self, policy: GatePolicy, **options: Any) -> bool:
        return self.store.write(
            lambda connection: configure(connection, self.consumer, policy, now=self.now, **options)
        )

    def admit(
        self, event_id: str, cost: Mapping[str, int] | None = None, **options: Any
    ) -> Decision:
        lease = next(self._tokens)
        decision = self.store.write(
            lambda connection: self.ledger.admit(
                connection, lease=lease, lease_until=self.now + LEASE, now=self.now, cost=cost,
                **self._key(event_id), **options,
            )
        )  # fmt: skip
        if decision.kind.value == "admitted":
            self.leases[event_id] = lease
        return decision

    def complete(self, event_id: str, lease: str | None = None, **options: Any) -> bool:
        return self._end("complete", event_id, lease, options)

    def fail(self, event_id: str, lease: str | None = None, **options: Any) -> bool:
        return self._end("fail", event_id, lease, options)

    def bury(self, event_id: str, **options: Any) -> bool:
        return self.store.write(
            lambda connection: self.ledger.bury(
                connection, now=self.now, **self._key(event_id), **options
            )
        )

    def skip(self, event_id: str, **options: Any) -> bool:
        return self.store.write(
            lambda connection: self.ledger.skip(
                connection, now=self.now, **self._key(event_id), **options
            )
        )

    def permit(self, verb: Any, event_id: str, **options: Any) -> None:
        self.store.write(
            lambda connection: verb(
                connection, now=self.now, actor="ann", **self._key(event_id), **options
            )
        )

    def done(self, event_id: str, cost: Mapping[str, int] | None = None) -> str:
        """Admit, and complete if admitted; returns what was decided."""
        decision = self.admit(event_id, cost)
        if decision.kind.value == "admitted":
            assert self.complete(event_id)
        return decision.kind.value

    def audit(self, **options: Any) -> list[Finding]:
        with self.store.read() as connection:
            return audit_ledger(connection, now=self.now, **options)

    def _end(self, verb: str, event_id: str, lease: str | None, options: dict[str, Any]) -> bool:
        token = lease or self.leases[event_id]
        done: bool = self.store.write(
            lambda connection: getattr(self.ledger, verb)(
                connection, lease=token, now=self.now, **self._key(event_id), **options
            )
        )
        return done

    def _key(self, event_id: str) -> dict[str, str]:
        return {"consumer": self.consumer, "source": "stripe", "event_id": event_id}
