"""Sources, their secrets, and the events they sent."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from gunicorn_admission.webhooks.store.schema.base import BIG, DOCUMENT, KEY, metadata

__all__ = ["audit", "events", "nonces", "secrets", "sources"]

#: Who may post to ``/hooks/<name>``.
sources = Table(
    "webhook_source",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("provider", String(32), nullable=False),
    Column("url", Text),  # public URL, for senders that sign it
    Column("priority", String(8), nullable=False),  # of admission
    Column("deadline_us", BIG),  # NULL: the sender's own
    Column("max_body", Integer),  # bytes; NULL: the sender's own
    Column("enabled", Boolean, nullable=False),
    Column("created_at", BIG, nullable=False),
)

#: A secret is a reference, "env:NAME" or "file:PATH", or the value itself.
secrets = Table(
    "webhook_secret",
    metadata,
    Column("source", String(64), ForeignKey("webhook_source.name"), primary_key=True),
    Column("key_id", String(64), primary_key=True),
    Column("value", Text, nullable=False),
    Column("created_at", BIG, nullable=False),
    Column("not_after", BIG),  # NULL: without end
)

#: Every event that was answered 2xx. The row is not changed but for the two counters.
events = Table(
    "webhook_event",
    metadata,
    Column("seq", KEY, primary_key=True, autoincrement=True),
    Column("source", String(64), nullable=False),
    Column("event_id", String(255), nullable=False),  # the sender's own
    Column("id_source", String(8), nullable=False),
    Column("type", Text),
    Column("source_time", BIG),  # when it happened or was sent, as the sender says
    Column("received_at", BIG, nullable=False),
    Column("delivery_id", String(255)),  # of the request that carried it, where that differs
    Column("key_id", String(64), nullable=False),  # of the secret that matched
    Column("content_type", Text),
    Column("headers", DOCUMENT, nullable=False),  # [[name, value], ...], no credentials
    Column("traceparent", String(128)),
    Column("duplicates", Integer, nullable=False, server_default="0"),
    Column("conflicts", Integer, nullable=False, server_default="0"),  # same id, other bytes
    Column("size", Integer, nullable=False),
    Column("body_sha256", LargeBinary(32), nullable=False),
    Column("body", LargeBinary, nullable=False),  # last: a long one spills into pages of its own
    UniqueConstraint("source", "event_id"),
    Index(None, "received_at"),
    sqlite_autoincrement=True,  # a number is not used again after a purge
)

#: What was signed in place of a body (Mailgun): good once, for the same bytes.
nonces = Table(
    "webhook_nonce",
    metadata,
    Column("source", String(64), primary_key=True),
    Column("nonce", String(255), primary_key=True),
    Column("body_sha256", LargeBinary(32), nullable=False),
    Column("seen_at", BIG, nullable=False),
)

#: Who changed what, for operators.
audit = Table(
    "webhook_audit",
    metadata,
    Column("id", KEY, primary_key=True, autoincrement=True),
    Column("at", BIG, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", String(64), nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", DOCUMENT, nullable=False),
    sqlite_autoincrement=True,
)
