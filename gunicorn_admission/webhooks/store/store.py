"""The store: short transactions on SQLite or PostgreSQL, whichever the URL names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Self, TypeVar

from sqlalchemy import Connection, Engine

from gunicorn_admission.webhooks.store.engine import create_file, file_exists, make_engine, parse
from gunicorn_admission.webhooks.store.failure import in_plain_words
from gunicorn_admission.webhooks.store.upgrade import (
    check_revision,
    current_revision,
    statements,
    upgrade,
)

__all__ = ["Store"]

T = TypeVar("T")


class Store:
    """
    Where events, deliveries and ledger are kept.

    Args:
        url: ``sqlite:///path`` or ``postgresql://...``, as SQLAlchemy writes it.
        clock: Returns seconds since the epoch.

    Nothing is opened before the first use, so it may be made before a fork. As a context manager
    it closes itself.

    Thread safety: all methods may be called from any thread.

    Raises:
        ConfigError: The URL names no database that a store can live in.
    """

    def __init__(self, url: str, *, clock: Callable[[], float] = time.time) -> None:
        self.url = parse(url)
        self._clock = clock

    @cached_property
    def engine(self) -> Engine:
        """The engine whose transactions write; checks the tables on first use."""
        return self._checked(make_engine(self.url))

    @cached_property
    def _reading(self) -> Engine:
        return self._checked(make_engine(self.url, reading=True))

    @staticmethod
    def _checked(engine: Engine) -> Engine:
        try:
            with in_plain_words(), engine.connect() as connection:
                check_revision(connection)
        except BaseException:
            engine.dispose()
            raise
        return engine

    def now(self) -> int:
        """Return microseconds since the epoch."""
        return round(self._clock() * 1e6)

    def write(self, work: Callable[[Connection], T], *, timeout: float | None = None) -> T:
        """
        Run ``work`` in a transaction and return what it returned, after the commit.

        Several pieces of work may share one commit, each in a savepoint of its own: one that
        raises undoes nothing of the others. Keep it short and free of anything but SQL: it may
        run again, and not in the calling thread.

        Args:
            timeout: Seconds until the commit must be done; ``None`` waits.
        """
        with self.transaction() as connection:
            return work(connection)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Hold a write transaction in the calling thread; for effects that join it."""
        with in_plain_words(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Hold a connection that only reads, on one snapshot; waits for no writer."""
        with in_plain_words(), self._reading.connect() as connection:
            yield connection

    def upgrade(self) -> tuple[str | None, str]:
        """
        Make the tables, or bring them to the state that this version needs.

        Returns:
            The revision before (``None``: no tables) and after; the same where nothing was to do.

        Raises:
            SchemaMismatch: The tables are newer than this version.
        """
        create_file(self.url)
        engine = make_engine(self.url)
        try:
            with in_plain_words(), engine.begin() as connection:
                return upgrade(connection)
        finally:
            engine.dispose()

    def upgrade_sql(self) -> str:
        """Return what ``upgrade`` would run, as SQL."""
        engine = make_engine(self.url, reading=True)
        if not file_exists(self.url):
            return statements(engine.dialect.name, None)
        try:
            with in_plain_words(), engine.connect() as connection:
                return statements(engine.dialect.name, current_revision(connection))
        finally:
            engine.dispose()

    def close(self) -> None:
        """Finish what is under way and give the connections back."""
        for name in ("engine", "_reading"):
            if engine := self.__dict__.pop(name, None):
                engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
