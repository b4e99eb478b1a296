"""The ledger's row of one event at one consumer: how it is found, made and changed."""

from __future__ import annotations

import enum
from functools import cache
from typing import Any

from attrs import frozen
from sqlalchemy import Connection, Executable, Row, bindparam, select, update

from gunicorn_admission.webhooks.gates.book import Held
from gunicorn_admission.webhooks.store.schema.gates import ledger
from gunicorn_admission.webhooks.store.statements import insert_into

__all__ = ["Key", "State", "change", "count_duplicate", "create", "extend", "find", "held_of"]


class State(enum.Enum):
    """What became of an event at a consumer."""

    RESERVED = "reserved"  # an attempt is under way, or was when its process died
    FAILED = "failed"  # the last attempt failed; another may come
    COMPLETED = "completed"  # its effect is done: all that comes now is a duplicate
    REFUSED = "refused"
    DEFERRED = "deferred"
    REVIEW = "review"
    REJECTED = "rejected"  # in review, by an operator
    APPROVED = "approved"  # or released: by an operator, and not yet admitted
    DEAD = "dead"  # in the dead letters
    SKIPPED = "skipped"  # no effect was wanted: shadow, filter


@frozen
class Key:
    """Whose ledger, and which event."""

    consumer: str
    source: str
    event_id: str

    def as_dict(self) -> dict[str, str]:
        """Return the primary key's columns."""
        return {"consumer": self.consumer, "source": self.source, "event_id": self.event_id}


_MINE = (
    ledger.c.consumer == bindparam("k_consumer"),
    ledger.c.source == bindparam("k_source"),
    ledger.c.event_id == bindparam("k_event_id"),
)
_FIND = select(ledger).where(*_MINE).with_for_update()
_CHANGE = update(ledger).where(*_MINE)
_AGAIN = _CHANGE.values(duplicates=ledger.c.duplicates + 1, updated_at=bindparam("now"))


def _bound(key: Key) -> dict[str, str]:
    return {"k_consumer": key.consumer, "k_source": key.source, "k_event_id": key.event_id}


def find(connection: Connection, key: Key) -> Row[Any] | None:
    """Return the row, locked until the transaction ends, or ``None``."""
    return connection.execute(_FIND, _bound(key)).one_or_none()


def create(connection: Connection, key: Key, now: int, **values: Any) -> bool:
    """Make the row; ``False`` if another transaction made it first."""
    row = {**key.as_dict(), "created_at": now, "updated_at": now, **values}
    # Not rowcount: an engine may not count what it inserts.
    return connection.execute(_make(connection.dialect.name), row).first() is not None


@cache
def _make(dialect: str) -> Executable:
    return insert_into(dialect, ledger).on_conflict_do_nothing().returning(ledger.c.state)


def change(connection: Connection, key: Key, now: int, **values: Any) -> None:
    """Change the row, which the caller has found."""
    connection.execute(_CHANGE, {**_bound(key), "updated_at": now, **values})


def count_duplicate(connection: Connection, key: Key, now: int) -> None:
    """Count that a completed event came again."""
    connection.execute(_AGAIN, {**_bound(key), "now": now})


def extend(connection: Connection, key: Key, lease: str, lease_until: int) -> bool:
    """Move the end of a lease; ``False`` if the attempt no longer holds it."""
    statement = (
        update(ledger)
        .where(*_MINE, ledger.c.state == State.RESERVED.value, ledger.c.lease == lease)
        .values(lease_until=lease_until)
    )
    return connection.execute(statement, _bound(key)).rowcount == 1


def held_of(row: Row[Any]) -> Held:
    """Return the open reservations of a row."""
    return [(ceiling, starts_at, amount) for ceiling, starts_at, amount in row.held or ()]
