"""The gate of a consumer as it stands in the store, locked for whoever decides for it."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen
from sqlalchemy import Connection, Row, bindparam, select

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.gates.ceiling import Ceiling
from gunicorn_admission.webhooks.gates.policy import AtCeiling, Charge
from gunicorn_admission.webhooks.gates.spans import parse_span
from gunicorn_admission.webhooks.gates.units import check_cost
from gunicorn_admission.webhooks.store.schema.gates import ceilings, gates

__all__ = ["Bound", "Gate", "Gates", "as_ceiling", "load_gate", "lock_gate"]

_LOCK = select(gates.c.revision).where(gates.c.consumer == bindparam("consumer")).with_for_update()
_GATE = select(gates).where(gates.c.consumer == bindparam("consumer"))
_CEILINGS = (
    select(ceilings)
    .where(ceilings.c.consumer == bindparam("consumer"))
    .order_by(ceilings.c.id)  # the order in which all take them
)


@frozen
class Bound:
    """A ceiling and its number in the store."""

    id: int
    ceiling: Ceiling


@frozen(kw_only=True)
class Gate:
    """
    A consumer's policy, as it was at ``revision``.

    Attributes:
        bounds: Ceilings in force, in the order in which they are locked.
        units: Of all its ceilings, also those that ended: reservations may be open there.
    """

    consumer: str
    revision: str
    at_ceiling: AtCeiling
    charge: Charge
    cost: Mapping[str, int]
    bounds: tuple[Bound, ...]
    units: Mapping[int, str]

    def amounts(self, cost: Mapping[str, int] | None) -> dict[str, int]:
        """
        Return what an event costs in each unit that is bounded.

        Raises:
            ConfigError: It is not whole numbers, or says nothing of a unit that has a ceiling.
        """
        given = self.cost if cost is None else {**self.cost, **check_cost(cost)}
        for bound in self.bounds:
            if bound.ceiling.unit not in given:
                raise ConfigError(
                    "cost", dict(given), f"an amount of {bound.ceiling.unit}",
                    f"{self.consumer} has the ceiling {bound.ceiling}; "
                    "return the unit from the cost function, or give it a default cost",
                )  # fmt: skip
        return dict(given)


def as_ceiling(row: Row[tuple[object, ...]]) -> Ceiling:
    """Return the ceiling that a row of the table describes."""
    span = parse_span(row.span)
    return Ceiling(row.hard, row.unit, per=str(span), soft=row.soft, bill_source=row.bill_source)


def load_gate(connection: Connection, consumer: str) -> Gate | None:
    """Read a gate, without a lock; ``None`` if the consumer has none."""
    row = connection.execute(_GATE, {"consumer": consumer}).one_or_none()
    if row is None:
        return None
    found = connection.execute(_CEILINGS, {"consumer": consumer}).all()
    return Gate(
        consumer=consumer,
        revision=row.revision,
        at_ceiling=AtCeiling(row.at_ceiling),
        charge=Charge(row.charge),
        cost=row.cost,
        bounds=tuple(Bound(each.id, as_ceiling(each)) for each in found if each.ended_at is None),
        units={each.id: each.unit for each in found},
    )


def lock_gate(connection: Connection, consumer: str) -> str | None:
    """
    Hold a gate until the transaction ends; its revision, or ``None`` if there is none.

    On SQLite the transaction itself is the lock.
    """
    found: str | None = connection.execute(_LOCK, {"consumer": consumer}).scalar_one_or_none()
    return found


class Gates:
    """
    Reads gates once for each revision.

    Thread safety: may be called from any thread; what it keeps is immutable.
    """

    def __init__(self) -> None:
        self._known: dict[str, Gate] = {}

    def lock(self, connection: Connection, consumer: str) -> Gate | None:
        """Hold a gate until the transaction ends, and return it; ``None`` if there is none."""
        revision = lock_gate(connection, consumer)
        if revision is None:
            return None
        gate = self._known.get(consumer)
        if gate is None or gate.revision != revision:
            gate = load_gate(connection, consumer)
            assert gate is not None  # its row is locked
            self._known[consumer] = gate
        return gate
