"""What each consumer may spend, what it has spent, and what was decided about each event."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from gunicorn_admission.webhooks.store.schema.base import BIG, DOCUMENT, KEY, metadata

__all__ = ["ceilings", "entries", "gates", "ledger", "windows"]

#: A document that may be missing: as NULL, and not as a document that says null.
OPTIONAL = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")

#: The policy of a consumer that has ceilings. Whoever decides or settles for the consumer locks
#: this row first, so that what it then reads of windows and ledger stays true until its commit.
gates = Table(
    "webhook_gate",
    metadata,
    Column("consumer", String(64), primary_key=True),
    Column("at_ceiling", String(8), nullable=False),  # refuse, defer, review
    Column("charge", String(8), nullable=False),  # event, attempt, actual
    Column("cost", DOCUMENT, nullable=False),  # {unit: amount} of an event that names none
    Column("declared", OPTIONAL),  # by the code, the last time; a change there is applied once
    Column("revision", String(16), nullable=False),  # random: another one after each change
    Column("created_at", BIG, nullable=False),
    Column("updated_at", BIG, nullable=False),
)

#: One bound: so much of a unit in each window. An ended one stays, with what was spent under it.
ceilings = Table(
    "webhook_ceiling",
    metadata,
    Column("id", KEY, primary_key=True, autoincrement=True),
    Column("consumer", String(64), ForeignKey("webhook_gate.consumer"), nullable=False),
    Column("unit", String(32), nullable=False),
    Column("span", String(80), nullable=False),  # "day America/New_York", "rolling 1h", "total"
    Column("hard", BIG),
    Column("soft", BIG),
    Column("bill_source", Text),  # where the unit stands on the bill
    Column("created_at", BIG, nullable=False),
    Column("ended_at", BIG),
    UniqueConstraint("consumer", "unit", "span"),
    CheckConstraint("hard IS NOT NULL OR soft IS NOT NULL", name="bounds_something"),
    sqlite_autoincrement=True,
)

#: What is used of a ceiling in one window (for a rolling one, in one slice of it). A cache: the
#: sums of ``entries``, kept in the same transaction.
windows = Table(
    "webhook_spend_window",
    metadata,
    Column("ceiling", BIG, ForeignKey("webhook_ceiling.id"), primary_key=True),
    Column("starts_at", BIG, primary_key=True),
    Column("ends_at", BIG),  # NULL: never
    Column("key", String(32), nullable=False),  # the local time it begins at, for people and bills
    Column("reserved", BIG, CheckConstraint("reserved >= 0", name="reserved"), nullable=False),
    Column("settled", BIG, CheckConstraint("settled >= 0", name="settled"), nullable=False),
    Column("soft_crossed", BIG),  # the soft ceiling whose crossing was told
    sqlite_with_rowid=False,
)

#: Every change of what is used, in order; never changed nor deleted. This is the truth.
entries = Table(
    "webhook_spend_entry",
    metadata,
    Column("id", KEY, primary_key=True, autoincrement=True),
    Column("at", BIG, nullable=False),
    Column("ceiling", BIG, ForeignKey("webhook_ceiling.id"), nullable=False),
    Column("starts_at", BIG, nullable=False),  # of the window
    Column("source", String(64), nullable=False),
    Column("event_id", String(255), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("kind", String(8), nullable=False),  # reserve, beyond, settle, release
    Column("reserved", BIG, nullable=False),  # change of what is reserved
    Column("settled", BIG, nullable=False),  # change of what is settled
    Index(None, "ceiling", "starts_at"),
    sqlite_autoincrement=True,
)

#: What became of an event at a consumer: the record against doing, or deciding, it twice. Kept
#: longer than the event. Consumers without a ceiling have it too.
ledger = Table(
    "webhook_ledger",
    metadata,
    Column("consumer", String(64), primary_key=True),
    Column("source", String(64), primary_key=True),
    Column("event_id", String(255), primary_key=True),
    Column("state", String(10), nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),  # that were admitted
    Column("lease", String(32)),  # fencing token of the attempt under way
    Column("lease_until", BIG),
    Column("held", OPTIONAL),  # open reservations: [[ceiling, starts_at, amount], ...]
    Column("defer_until", BIG),
    Column("permit", String(8)),  # an operator's: approved, or beyond (the ceiling)
    Column("answer", OPTIONAL),  # what was decided last at a ceiling, to say the same again
    Column("duplicates", Integer, nullable=False, server_default="0"),
    Column("refusals", Integer, nullable=False, server_default="0"),
    Column("deferrals", Integer, nullable=False, server_default="0"),
    Column("created_at", BIG, nullable=False),
    Column("updated_at", BIG, nullable=False),
    # The many completed ones are looked up by key only.
    Index(
        "ix_webhook_ledger_open", "consumer", "state", "updated_at",
        sqlite_where=text("state <> 'completed'"), postgresql_where=text("state <> 'completed'"),
    ),
    sqlite_with_rowid=False,
)  # fmt: skip
