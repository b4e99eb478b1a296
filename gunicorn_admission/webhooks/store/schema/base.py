"""What all tables share: one catalogue, names of constraints, types that fit both engines."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Integer, MetaData
from sqlalchemy.dialects.postgresql import JSONB

__all__ = ["BIG", "DOCUMENT", "KEY", "metadata"]

#: Named, so that a migration can drop what it added, on both engines.
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: 64 bits: times in microseconds, sequence numbers, money in micro-units.
BIG = BigInteger()

#: A generated key. SQLite generates one only for a column of type INTEGER, which is 64 bits there.
KEY = BigInteger().with_variant(Integer(), "sqlite")

#: Configuration and headers.
DOCUMENT = JSON().with_variant(JSONB(), "postgresql")
