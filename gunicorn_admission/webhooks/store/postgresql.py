"""
PostgreSQL: each thread has a connection of its own for as long as its transaction takes.

The server flushes the commits of several connections together, so there is no writer thread.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError

from gunicorn_admission.webhooks.store.engine import POOL, make_engine
from gunicorn_admission.webhooks.store.errors import StoreError, StoreTimeout
from gunicorn_admission.webhooks.store.failure import commit, explain, maybe_committed, transient

__all__ = ["PostgreSQL"]

T = TypeVar("T")

#: Seconds before the next try, at most: as long as a server takes to start again, or a standby
#: to take over.
_PAUSES: Final = (0.02, 0.1, 0.4, 1.0)

#: Seconds that a reader, or an effect, waits for a connection.
_PATIENCE: Final = 30.0


class PostgreSQL:
    """One database, opened by one process; see ``backend.py``."""

    def __init__(self, url: URL) -> None:
        self.engine: Engine = make_engine(url)
        self._reading = self.engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        # Of the pool, whose own wait knows no deadline of the caller.
        self._free = threading.BoundedSemaphore(POOL)

    def write(self, work: Callable[[Connection], T], timeout: float | None) -> T:
        """Run ``work`` in a transaction, several times where the server asks for that."""
        until = None if timeout is None else time.monotonic() + timeout
        for pause in (*_PAUSES, None):
            with self._connection_slot(timeout if until is None else until - time.monotonic()):
                try:
                    return self._attempt(work, until)
                except _Again as again:
                    failure, cause = again.failure, again.cause
            if pause is None or (until is not None and time.monotonic() + pause > until):
                break
            time.sleep(random.uniform(pause / 2, pause))  # those who deadlocked must not again
        raise failure from cause

    def _attempt(self, work: Callable[[Connection], T], until: float | None) -> T:
        committing = False
        connected = False
        try:
            with self.engine.connect() as connection:
                connected = True
                transaction = connection.begin()
                if until is not None:
                    left = max(1, round((until - time.monotonic()) * 1000))
                    connection.exec_driver_sql(f"SET LOCAL statement_timeout = {left}")
                result = work(connection)
                committing = True
                transaction.commit()
                return result
        except DBAPIError as error:
            failure = explain(error)
            if committing and failure is not None and maybe_committed(error):
                failure.maybe_committed = True
                raise failure from error
            if transient(error) or not connected:
                raise _Again(failure or StoreError(str(error.orig)), error) from None
            if failure is None:
                raise
            raise failure from error

    @contextmanager
    def _connection_slot(self, timeout: float | None) -> Iterator[None]:
        if not self._free.acquire(timeout=None if timeout is None else max(timeout, 0)):
            raise StoreTimeout(
                f"none of {POOL} connections became free. Hint: look for long transactions"
            )
        try:
            yield
        finally:
            self._free.release()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Hold a connection and a transaction."""
        with self._connection_slot(_PATIENCE), self.engine.connect() as connection:
            transaction = connection.begin()
            yield connection
            commit(connection, transaction)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Hold a snapshot."""
        with self._connection_slot(_PATIENCE), self._reading.connect() as connection:
            yield connection

    def close(self) -> None:
        """Give the connections back."""
        self.engine.dispose()


class _Again(Exception):
    def __init__(self, failure: StoreError, cause: DBAPIError) -> None:
        self.failure = failure
        self.cause = cause
