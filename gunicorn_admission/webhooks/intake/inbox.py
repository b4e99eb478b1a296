"""The one transaction of a request: its events, their duplicates, and who is to have them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, Protocol

from attrs import frozen
from sqlalchemy import Connection, bindparam, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql.dml import ReturningInsert

from gunicorn_admission.webhooks.fanout.routing import RoutedEvent
from gunicorn_admission.webhooks.intake.envelope import Envelope
from gunicorn_admission.webhooks.providers import Item
from gunicorn_admission.webhooks.store import schema
from gunicorn_admission.webhooks.store.statements import insert, insert_into

__all__ = ["Batch", "Kept", "NonceReused", "NotRouted", "Router", "keep"]

_events: Final = schema.events
_nonces: Final = schema.nonces
#: Ids looked up by one statement; SQLite takes 999 parameters in old builds.
_MANY: Final = 500
_YEAR_10000: Final = 253_402_300_800


class NonceReused(Exception):
    """What the sender signed in place of a body came before, with another body: it is forged."""


class NotRouted(Exception):
    """Events were stored, and who is to have them could not be found out; nothing is committed."""


class Router(Protocol):
    """Writes down, in the transaction of the events, who is to have them."""

    def route(self, connection: Connection, events: Sequence[RoutedEvent]) -> None:
        """Route new events."""


@frozen(kw_only=True)
class Kept:
    """
    What became of the events of one request.

    Attributes:
        stored: New ones.
        duplicates: Stored before, with the same bytes.
        conflicts: Stored before, with other bytes; the first ones are kept.
    """

    stored: int
    duplicates: int = 0
    conflicts: int = 0


@frozen
class Batch:
    """
    What one request has to store, worked out before the transaction, which others wait for.

    Attributes:
        envelope: The verified request.
        rows: By event id, of the first event that has it.
        again: Id and hash of those whose id came before in the same request.
    """

    envelope: Envelope
    rows: Mapping[str, dict[str, Any]]
    again: tuple[tuple[str, bytes], ...]

    @classmethod
    def of(cls, envelope: Envelope, body: bytes) -> Batch:
        """
        Work it out.

        Args:
            envelope: The verified request.
            body: Its whole body, whose hash is known.
        """
        rows: dict[str, dict[str, Any]] = {}
        again: list[tuple[str, bytes]] = []
        # In one order, so that two batches with common ids cannot wait for each other.
        for item in sorted(envelope.verified.items, key=lambda item: item.event_id):
            known = envelope.body_sha256 if item.body is body else None
            digest = known or hashlib.sha256(item.body).digest()
            if item.event_id in rows:
                again.append((item.event_id, digest))
            else:
                rows[item.event_id] = _row(envelope, item, digest)
        return cls(envelope, rows, tuple(again))


def keep(connection: Connection, batch: Batch, router: Router | None) -> Kept:
    """
    Store the events of one request, all or none.

    Args:
        connection: In a write transaction.
        batch: The events.
        router: ``None`` where nobody is to have them yet.

    Raises:
        NonceReused: The request is forged; nothing was stored.
        NotRouted: The router failed in a way that is not the store's.
    """
    _use_nonce(connection, batch.envelope)
    rows = batch.rows
    seqs = _insert(connection, list(rows.values()))
    known = [(i, row["body_sha256"]) for i, row in rows.items() if i not in seqs]
    again = [*batch.again, *known]
    duplicates, conflicts = _count(connection, batch.envelope.source, again)
    if router is not None and seqs:
        routed = [_routed(seqs[i], row) for i, row in rows.items() if i in seqs]
        try:
            router.route(connection, routed)
        except SQLAlchemyError:
            raise  # the store's, which knows what to do
        except Exception as error:
            raise NotRouted(type(error).__name__) from error
    return Kept(stored=len(seqs), duplicates=duplicates, conflicts=conflicts)


def _use_nonce(connection: Connection, envelope: Envelope) -> None:
    nonce = envelope.verified.nonce
    if nonce is None:
        return
    used = {
        "source": envelope.source,
        "nonce": nonce,
        "body_sha256": envelope.body_sha256,
        "seen_at": envelope.received_at,
    }
    statement = insert(connection, _nonces).values(used).on_conflict_do_nothing()
    if connection.execute(statement.returning(_nonces.c.nonce)).first() is not None:
        return
    before = connection.execute(
        select(_nonces.c.body_sha256).where(
            _nonces.c.source == envelope.source, _nonces.c.nonce == nonce
        )
    ).scalar_one()
    if before != envelope.body_sha256:
        raise NonceReused


def _row(envelope: Envelope, item: Item, digest: bytes) -> dict[str, Any]:
    whole = envelope.verified.event_id
    return {
        "source": envelope.source,
        "event_id": item.event_id,
        "id_source": item.id_source.value,
        "type": item.event_type,
        "source_time": _microseconds(item.timestamp),
        "received_at": envelope.received_at,
        "delivery_id": None if whole == item.event_id else whole,
        "key_id": envelope.key_id,
        "content_type": envelope.content_type,
        "headers": envelope.headers,
        "traceparent": envelope.traceparent,
        "size": len(item.body),
        "body_sha256": digest,
        "body": item.body,
    }


def _microseconds(seconds: float | None) -> int | None:
    """A sender's time as it is stored; none where a calendar or 64 bits could not hold it."""
    if seconds is None or not 0 <= seconds < _YEAR_10000:
        return None
    return round(seconds * 1e6)


def _insert(connection: Connection, rows: list[dict[str, Any]]) -> dict[str, int]:
    """Return the numbers of the rows that are new, by event id."""
    if not rows:
        return {}
    values = rows[0] if len(rows) == 1 else rows
    found = connection.execute(_insert_new(connection.dialect.name), values)
    return {row.event_id: row.seq for row in found}


@cache
def _insert_new(dialect: str) -> ReturningInsert[tuple[str, int]]:
    return (
        insert_into(dialect, _events)
        .on_conflict_do_nothing(index_elements=[_events.c.source, _events.c.event_id])
        .returning(_events.c.event_id, _events.c.seq)
    )


def _count(
    connection: Connection, source: str, again: Sequence[tuple[str, bytes]]
) -> tuple[int, int]:
    """Count what came again in the rows that were there first; how many of each kind."""
    if not again:
        return 0, 0
    ids = sorted({event_id for event_id, _ in again})
    first: dict[str, bytes] = {}
    for start in range(0, len(ids), _MANY):
        found = connection.execute(
            select(_events.c.event_id, _events.c.body_sha256).where(
                _events.c.source == source, _events.c.event_id.in_(ids[start : start + _MANY])
            )
        )
        first |= {row.event_id: row.body_sha256 for row in found}
    same: Counter[str] = Counter()
    other: Counter[str] = Counter()
    for event_id, digest in again:
        (same if first.get(event_id) == digest else other)[event_id] += 1
    connection.execute(
        update(_events)
        .where(_events.c.source == source, _events.c.event_id == bindparam("again"))
        .values(
            duplicates=_events.c.duplicates + bindparam("same"),
            conflicts=_events.c.conflicts + bindparam("other"),
        ),
        [{"again": one, "same": same[one], "other": other[one]} for one in ids],
    )
    return same.total(), other.total()


def _routed(seq: int, row: dict[str, Any]) -> RoutedEvent:
    names = ("source", "event_id", "type", "body", "received_at", "source_time")
    headers = [(name, value) for name, value in row["headers"]]
    return RoutedEvent(seq=seq, headers=headers, **{name: row[name] for name in names})
