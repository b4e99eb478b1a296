"""A pool of database connections, and a database that hangs or slows down on command."""

from __future__ import annotations

import math
import queue
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Pool", "PoolTimeout"]

SPREAD = 0.25  # sigma of the log-normal query time
SLOWDOWN = 10


class PoolTimeout(Exception):
    """No connection became free in time."""


class Pool:
    """
    ``size`` SQLite connections for any number of threads, as an ORM's pool would hold them.

    Args:
        path: The database file; made and filled when it is not there.
        control: A file with one word: ``hang`` holds every query until the word changes,
            ``slow`` makes each ten times slower, anything else is normal.
        size: Connections.
        query_seconds: Mean time of a query; it sleeps, as a thread that waits for a remote
            database does.
        checkout_timeout: Seconds to wait for a free connection; 30 is SQLAlchemy's default.
    """

    def __init__(
        self,
        path: Path,
        control: Path,
        *,
        size: int,
        query_seconds: float,
        checkout_timeout: float = 30.0,
    ) -> None:
        self._control = control
        self._query_seconds = query_seconds
        self._checkout_timeout = checkout_timeout
        self._random = random.Random()
        self._idle: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        for _ in range(size):
            self._idle.put(self._connect(path))

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Check a connection out; raises :class:`PoolTimeout` when none is free in time."""
        try:
            connection = self._idle.get(timeout=self._checkout_timeout)
        except queue.Empty:
            raise PoolTimeout(f"no connection within {self._checkout_timeout:g} s") from None
        try:
            yield connection
        finally:
            self._idle.put(connection)

    def close(self) -> None:
        """Close the connections that are idle."""
        while not self._idle.empty():
            self._idle.get().close()

    def _connect(self, path: Path) -> sqlite3.Connection:
        connection = sqlite3.connect(path, check_same_thread=False)
        connection.create_function("remote_work", 0, self._remote_work)
        with connection:
            connection.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, cents)")
            connection.execute("INSERT OR IGNORE INTO orders VALUES (1, 4200), (2, 1700), (3, 990)")
        return connection

    def _remote_work(self) -> int:
        """SQL function: the time that the query spends at a database on another machine."""
        while (word := self._control.read_text()) == "hang":
            time.sleep(0.01)
        median = self._query_seconds * math.exp(-SPREAD * SPREAD / 2)
        seconds = self._random.lognormvariate(math.log(median), SPREAD)
        time.sleep(seconds * SLOWDOWN if word == "slow" else seconds)
        return 0
