"""SQLite: one writer thread a process, and turns between everybody who writes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from sqlalchemy import URL, Connection, Engine

from gunicorn_admission.webhooks.store.engine import make_engine
from gunicorn_admission.webhooks.store.failure import commit
from gunicorn_admission.webhooks.store.turns import Turns
from gunicorn_admission.webhooks.store.writer import Writer

__all__ = ["SQLite", "turns_of"]

T = TypeVar("T")


def turns_of(url: URL) -> Turns:
    """Return the turns of everybody who writes to this file."""
    assert url.database is not None  # parse() saw to it
    return Turns(Path(url.database).absolute())


class SQLite:
    """
    One file, opened by one process; see ``backend.py``.

    Lock: ``_lock`` guards that one writer is started, by the first who writes.
    """

    def __init__(self, url: URL) -> None:
        self.engine: Engine = make_engine(url)
        self._reading = make_engine(url, reading=True)
        self._turns = turns_of(url)
        self._lock = threading.Lock()
        self._writer: Writer | None = None

    def write(self, work: Callable[[Connection], T], timeout: float | None) -> T:
        """Hand ``work`` to the writer, and wait."""
        writer = self._writer
        if writer is None:
            with self._lock:
                writer = self._writer = self._writer or Writer(self.engine, self._turns)
        return writer.write(work, timeout)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Hold a turn and a transaction."""
        with self._turns.take(), self.engine.connect() as connection:
            transaction = connection.begin()
            yield connection
            commit(connection, transaction)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Hold a snapshot."""
        with self._reading.connect() as connection:
            yield connection

    def close(self) -> None:
        """Commit what was handed in; the last process to close folds the log into the file."""
        with self._lock:
            if self._writer is not None:
                self._writer.close()
        self._reading.dispose()
        self.engine.dispose()
