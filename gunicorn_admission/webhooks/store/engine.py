"""How each engine is opened."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import make_url

__all__ = ["make_engine"]


def make_engine(url: str) -> Engine:
    """Return an engine for a store's URL."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _sqlite(url)
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    return create_engine(parsed, pool_pre_ping=True)


def _sqlite(url: str) -> Engine:
    engine = create_engine(url)

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _: object) -> None:
        connection.isolation_level = None  # we begin transactions ourselves
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",  # NORMAL may lose the last commits with the power
            "foreign_keys = ON",
            "busy_timeout = 30000",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
