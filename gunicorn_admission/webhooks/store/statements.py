"""Statements that the two engines spell in different words."""

from __future__ import annotations

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

__all__ = ["insert"]


def insert(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return an INSERT that knows ON CONFLICT, for the engine behind ``connection``."""
    if connection.dialect.name == "sqlite":
        return sqlite.insert(table)
    return postgresql.insert(table)
