"""The store: short transactions on SQLite or PostgreSQL, whichever the URL names."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, Self, TypeVar

from sqlalchemy import Connection, Engine

from gunicorn_admission.webhooks.store.backend import Backend
from gunicorn_admission.webhooks.store.engine import create_file, file_exists, make_engine, parse
from gunicorn_admission.webhooks.store.failure import in_plain_words
from gunicorn_admission.webhooks.store.postgresql import PostgreSQL
from gunicorn_admission.webhooks.store.sqlite import SQLite, turns_of
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

    Nothing is opened before the first use, so it may be made before a fork; a child opens its own.
    As a context manager it closes itself.

    Thread safety: all methods may be called from any thread. ``write`` and ``transaction`` do not
    nest: one would wait for the other for ever, and so it is an error.

    Raises:
        ConfigError: The URL names no database that a store can live in.
    """

    def __init__(self, url: str, *, clock: Callable[[], float] = time.time) -> None:
        self.url: Final = parse(url)
        self._clock = clock
        self._opened: Backend | None = None
        self._opening = threading.Lock()  # guards that one backend is made
        self._here = threading.local()  # .writing: this thread is inside a transaction
        _stores.add(self)

    @property
    def engine(self) -> Engine:
        """The engine whose transactions write, for who has to look; not for writing."""
        return self._backend().engine

    def now(self) -> int:
        """Return microseconds since the epoch."""
        return round(self._clock() * 1e6)

    def write(self, work: Callable[[Connection], T], *, timeout: float | None = None) -> T:
        """
        Run ``work`` in a transaction and return what it returned, after the commit.

        Several pieces of work may share one commit, each in a savepoint of its own: one that
        raises undoes nothing of the others. Keep it short and free of anything but SQL: it may
        run in another thread, may run again where the server asks for that, and what it returns
        is read after the transaction (rows, no cursor).

        Args:
            timeout: Seconds until the commit must be done; ``None`` waits.

        Raises:
            StoreTimeout: It was not. Where ``maybe_committed`` is false, it will not be either.
            StoreError: The database failed.
            BaseException: What ``work`` raised; its own changes are undone.
        """
        with self._alone():
            return self._backend().write(self._marked(work), timeout)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """
        Hold a write transaction in the calling thread; for effects that join it.

        On SQLite nobody else writes meanwhile, in any process.

        Raises:
            StoreError: The database failed; see ``maybe_committed``.
        """
        with self._alone(), in_plain_words(), self._backend().transaction() as connection:
            self._here.writing = True
            try:
                yield connection
            finally:
                self._here.writing = False

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Hold a connection that only reads, on one snapshot; waits for no writer."""
        with in_plain_words(), self._backend().read() as connection:
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
            with in_plain_words(), self._turn(), engine.begin() as connection:
                return upgrade(connection)
        finally:
            engine.dispose()

    def _turn(self) -> AbstractContextManager[None]:
        if self.url.get_backend_name() != "sqlite":
            return nullcontext()
        return turns_of(self.url).take()

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

    def check(self) -> list[str]:
        """
        Look whether the tables are those of this version, and the file is whole.

        Returns:
            What is wrong, in words. SQLite reads the whole file for it; PostgreSQL looks after
            itself.
        """
        with self.read() as connection:
            if connection.dialect.name != "sqlite":
                return []
            found = list(connection.exec_driver_sql("PRAGMA quick_check(20)").scalars())
            broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
            found += [f"{row[0]} refers to a row of {row[2]} that is not there" for row in broken]
            return [one for one in found if one != "ok"]

    def close(self) -> None:
        """Finish what is under way and give the connections back; the next use opens anew."""
        with self._opening:
            backend, self._opened = self._opened, None
        if backend is not None:
            backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _backend(self) -> Backend:
        backend = self._opened
        if backend is not None:
            return backend
        with self._opening:
            if self._opened is None:
                sqlite = self.url.get_backend_name() == "sqlite"
                backend = SQLite(self.url) if sqlite else PostgreSQL(self.url)
                try:
                    with in_plain_words(), backend.read() as connection:
                        check_revision(connection)
                except BaseException:
                    backend.close()
                    raise
                self._opened = backend
            return self._opened

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if getattr(self._here, "writing", False):
            raise RuntimeError(
                "this thread is in a transaction already, which it would wait for. "
                "Hint: use the connection of that one"
            )
        yield

    def _marked(self, work: Callable[[Connection], T]) -> Callable[[Connection], T]:
        def marked(connection: Connection) -> T:
            self._here.writing = True
            try:
                return work(connection)
            finally:
                self._here.writing = False

        return marked

    def _after_fork(self) -> None:
        """Leave the parent's connections to it: closing them here would end them there."""
        self._opening = threading.Lock()
        self._here = threading.local()
        if self._opened is not None:
            _of_parents.append(self._opened)
            self._opened = None


_stores: weakref.WeakSet[Store] = weakref.WeakSet()
_of_parents: list[Backend] = []


def _after_fork() -> None:
    for store in list(_stores):
        store._after_fork()


os.register_at_fork(after_in_child=_after_fork)
