"""How each database is opened: settings on which durability rests, and what a URL may say."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.store.errors import SchemaMismatch

__all__ = ["create_file", "file_exists", "make_engine", "parse"]

#: Connections of one process to PostgreSQL. A thread holds one for a few milliseconds.
POOL = 10

#: Of libpq: seconds until a connection is made (it takes no less), and milliseconds until one on
#: which nothing is acknowledged counts as broken.
_IMPATIENT = {"connect_timeout": "2", "tcp_user_timeout": "5000"}

#: Milliseconds to wait for somebody who does not take part in our turns: a backup, a shell.
_BUSY_MS = 30_000

#: Bytes that the write-ahead log keeps on disk after a long reader had let it grow.
_LOG_KEPT = 64 << 20


def parse(url: str) -> URL:
    """
    Return a store's URL with its driver.

    Raises:
        ConfigError: It names no database that a store can live in.
    """
    expected = "sqlite:///path or postgresql://user@host/database"
    try:
        parsed = make_url(url)
    except ArgumentError:
        # The value may hold a password, even where it cannot be read.
        raise ConfigError("url", "...", expected, "write it as SQLAlchemy does") from None
    backend = parsed.get_backend_name()
    if backend == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    shown = parsed.render_as_string(hide_password=True)
    if backend != "sqlite":
        raise ConfigError("url", shown, expected, "only these two are supported")
    if parsed.database in (None, "", ":memory:"):
        raise ConfigError("url", shown, expected, "name a file, since memory ends with the process")
    if parsed.query:
        raise ConfigError("url", shown, "no parameters", "leave out what follows the '?'")
    return parsed


def make_engine(url: URL, *, reading: bool = False) -> Engine:
    """Return an engine whose transactions write, or which only read, each on one snapshot."""
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, reading)
    return _postgresql(url, reading)


def create_file(url: URL) -> None:
    """Make the file of an SQLite database, readable by its owner only; nothing if it is there."""
    if url.get_backend_name() != "sqlite":
        return
    assert url.database is not None  # parse() saw to it
    try:
        os.close(os.open(url.database, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        hint = "the folder has to exist, and to be writable for who runs this"
        raise ConfigError("url", str(url), "a file that can be made", hint) from error


def file_exists(url: URL) -> bool:
    """Whether an SQLite database is there; what a server has is not asked."""
    return url.get_backend_name() != "sqlite" or Path(url.database or "").exists()


def _sqlite(url: URL, reading: bool) -> Engine:
    assert url.database is not None
    path = Path(url.database).absolute()

    def connect() -> sqlite3.Connection:
        # Without mode=rw, a typing error in the path would make an empty database there.
        if not path.exists():
            hint = "check the path, or run gunicorn-admission db upgrade to make it"
            raise SchemaMismatch(f"there is no {path}. Hint: {hint}")
        return sqlite3.connect(
            f"file:{quote(str(path))}?mode=rw",
            uri=True,
            timeout=_BUSY_MS / 1000,
            isolation_level=None,  # we begin transactions ourselves
            check_same_thread=False,  # the pool hands a connection to one thread at a time
        )

    # No bound on connections: a file has none, and who waits for one may hold the writer's turn.
    engine = create_engine(url, creator=connect, max_overflow=-1, hide_parameters=True)
    pragmas = [
        "journal_mode = WAL",
        "synchronous = FULL",  # NORMAL may lose the last commits with the power
        "foreign_keys = ON",
        f"journal_size_limit = {_LOG_KEPT}",
    ]
    if sys.platform == "darwin":
        pragmas.append("fullfsync = ON")  # fsync alone does not reach the disk there
    if reading:
        pragmas.append("query_only = ON")
    start = "BEGIN" if reading else "BEGIN IMMEDIATE"

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _: object) -> None:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql(start)

    return engine


def _postgresql(url: URL, reading: bool) -> Engine:
    options: dict[str, Any] = {"pool_size": POOL, "max_overflow": 0, "hide_parameters": True}
    # A server that does not answer must not hold a thread longer than a sender waits. What the
    # URL says counts more.
    url = url.set(query={**_IMPATIENT, **url.query})
    if reading:
        options["execution_options"] = {
            "isolation_level": "REPEATABLE READ",
            "postgresql_readonly": True,
        }
    try:
        engine = create_engine(url, pool_pre_ping=True, **options)
    except ModuleNotFoundError as error:
        shown = url.render_as_string(hide_password=True)
        hint = "pip install 'gunicorn-admission[postgres]'"
        raise ConfigError("url", shown, "an installed driver", hint) from error

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _: object) -> None:
        # A server may be set to acknowledge commits that are not on disk; an event is not lost
        # to that. A setting that waits for more than the disk is left alone.
        connection.execute(
            "SELECT set_config('synchronous_commit', 'on', false)"
            " WHERE current_setting('synchronous_commit') = 'off'"
        )
        connection.commit()

    return engine
