"""
The revision of all subscriptions: a row that lets intakes and changes wait for each other.

An intake reads it with a shared lock and holds that until its commit; a change takes it for
itself. So each event is either committed before a change began, and the change finds it, or
routed after the change, by what it wrote. On SQLite all of them are one after the other anyway.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, case, select, update

from gunicorn_admission.webhooks.store.schema import revision
from gunicorn_admission.webhooks.store.statements import insert

__all__ = ["advance", "lock_shared"]


_SHARED: Final = select(revision.c.number).where(revision.c.id == 1).with_for_update(read=True)


def lock_shared(connection: Connection) -> int:
    """Return the revision; it stays the same until the end of the transaction."""
    number = connection.scalar(_SHARED)
    if number is None:  # a schema that was created without its first row
        _found(connection)
        number = connection.scalar(_SHARED)
    return int(number or 0)


def advance(connection: Connection, now: int) -> None:
    """
    Wait for the intakes under way, keep others waiting, and set a new revision.

    Call it before anything else in the transaction.

    Args:
        now: The store's time. Revisions follow it, so that none comes twice even where a
            transaction that set one was rolled back.
    """
    _found(connection)
    following = revision.c.number + 1
    later = case((following > now, following), else_=now)
    connection.execute(update(revision).where(revision.c.id == 1).values(number=later))


def _found(connection: Connection) -> None:
    connection.execute(insert(connection, revision).values(id=1, number=0).on_conflict_do_nothing())
