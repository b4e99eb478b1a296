"""What a database's error means: in plain words, and whether to try once more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, RootTransaction
from sqlalchemy.exc import DBAPIError, OperationalError

from gunicorn_admission.webhooks.store.errors import StoreError, StoreTimeout

__all__ = ["commit", "explain", "in_plain_words", "maybe_committed", "transient"]

#: By SQLite's name of the error, whose extended forms begin alike.
_SQLITE = {
    "SQLITE_FULL": "the disk is full, or the database may not grow. Hint: make room",
    "SQLITE_BUSY": "somebody else held the database for too long. Hint: look for a backup, a "
    "shell or a long transaction",
    "SQLITE_IOERR": "the disk did not do what was asked. Hint: look into the system's log",
    "SQLITE_READONLY": "the database may not be written. Hint: the file and its folder have to be "
    "writable for who runs this",
    "SQLITE_CANTOPEN": "the database cannot be opened. Hint: the file and its folder have to be "
    "writable for who runs this",
    "SQLITE_NOTADB": "the file is not a database. Hint: check the path",
    "SQLITE_CORRUPT": "the file is damaged. Hint: sqlite3 FILE .recover, or restore a backup",
}

#: Serialization failure and deadlock: the server asks to run the transaction again.
_AGAIN = {"40001", "40P01"}
_CANCELLED = "57014"  # by statement_timeout; by an operator in rare cases


def explain(error: DBAPIError) -> StoreError | None:
    """Return what to raise in place of ``error``; ``None``: it is the statement's own fault."""
    cause: Any = error.orig
    if name := getattr(cause, "sqlite_errorname", None):
        for known, meaning in _SQLITE.items():
            if name.startswith(known):
                return StoreError(f"{meaning} ({name})")
        return None
    if not isinstance(error, OperationalError):
        return None
    if getattr(cause, "sqlstate", None) == _CANCELLED:
        return StoreTimeout("the statement was not done in time")
    first = str(cause).strip().partition("\n")[0]
    return StoreError(f"PostgreSQL is not reachable or gave up: {first}")


def transient(error: DBAPIError) -> bool:
    """Whether the same transaction may succeed when it is run again from its beginning."""
    return error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _AGAIN


def maybe_committed(error: BaseException) -> bool:
    """Whether a commit that ended in ``error`` may have reached the disk all the same."""
    if not isinstance(error, DBAPIError):
        return True
    cause: Any = error.orig
    if name := getattr(cause, "sqlite_errorname", None):
        # A flush that failed may have written: what is in the log then is found after a crash.
        return not name.startswith(("SQLITE_FULL", "SQLITE_BUSY", "SQLITE_CONSTRAINT"))
    # The server has answered, or it has not: one that is being stopped may have committed before.
    state = getattr(cause, "sqlstate", None)
    return state is None or state.startswith(("08", "57P"))


def commit(connection: Connection, transaction: RootTransaction) -> None:
    """
    Commit, and say where it is not known whether that was done.

    Raises:
        StoreError: It failed.
        DBAPIError: The statements break a constraint.
    """
    try:
        transaction.commit()
    except DBAPIError as error:
        connection.invalidate()
        failure = explain(error)
        if failure is None:
            raise
        failure.maybe_committed = maybe_committed(error)
        raise failure from error


@contextmanager
def in_plain_words() -> Iterator[None]:
    """Raise a ``StoreError`` in place of errors of the database, and others as they are."""
    try:
        yield
    except DBAPIError as error:
        explained = explain(error)
        if explained is None:
            raise
        raise explained from error
