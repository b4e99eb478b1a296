"""Statements that the two engines spell in different words."""

from __future__ import annotations

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

__all__ = ["insert", "insert_into"]


def insert(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return an INSERT that knows ON CONFLICT, for the engine behind ``connection``."""
    return insert_into(connection.dialect.name, table)


def insert_into(dialect: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    """
    Return the same by the name of the engine, for who makes a statement once and keeps it.

    Where it runs for every event that is worth it: putting a statement together takes longer than
    running it. Give the values to ``execute`` and not to ``values``.
    """
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)
