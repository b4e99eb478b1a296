"""Pages: what was worth waking someone for, once, and which channel was told how much of it."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, String, Table, Text

from gunicorn_admission.webhooks.store.schema.base import BIG, DOCUMENT, metadata

__all__ = ["notices", "pages"]

#: One row for each thing that went wrong. What happens again only counts.
pages = Table(
    "webhook_page",
    metadata,
    Column("key", String(255), primary_key=True),  # consumer, window and decision
    Column("episode", Integer, nullable=False),  # grows when it comes back after it was over
    Column("boundary", String(12), nullable=False),
    Column("condition", String(12), nullable=False),
    Column("severity", String(8), nullable=False),
    Column("consumer", String(64)),
    Column("source", String(64)),
    Column("event_id", String(255)),  # of the first event; it never becomes a label
    Column("detail", DOCUMENT, nullable=False),
    Column("count", Integer, nullable=False),
    Column("first_at", BIG, nullable=False),
    Column("last_at", BIG, nullable=False),
    Column("until", BIG),  # when it ends by itself: the window rolls
    Column("resolved_at", BIG),
    Index(None, "last_at"),
)

#: What one channel was told of one page; channels do not wait for each other.
notices = Table(
    "webhook_notice",
    metadata,
    Column("page", String(255), ForeignKey("webhook_page.key"), primary_key=True),
    Column("channel", Text, primary_key=True),
    Column("episode", Integer, nullable=False),
    Column("count", Integer, nullable=False),  # of the page, when it was last told
    Column("resolved", Boolean, nullable=False),
    Column("repeat_at", BIG, nullable=False),  # what only counts on is not told again before
    Column("not_before", BIG, nullable=False),  # lease of who tells it now, or back-off
    Column("failures", Integer, nullable=False),  # in a row
    Column("last_error", Text),
)
