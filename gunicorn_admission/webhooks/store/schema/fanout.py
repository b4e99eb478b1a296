"""Subscriptions, and one row for each event that one of them is to have."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    text,
)

from gunicorn_admission.webhooks.store.schema.base import BIG, DOCUMENT, KEY, metadata

__all__ = ["attempts", "deliveries", "revision", "subscriptions"]

#: One row. Its number grows with each change of a subscription, so that a process knows when
#: what it has in memory is old. An intake reads it in its own transaction (FOR SHARE on
#: PostgreSQL), a change of subscriptions writes it: so no event falls between "not yet
#: subscribed" and "already backfilled".
revision = Table(
    "webhook_revision",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1", name="one_row"), primary_key=True),
    Column("number", BIG, nullable=False),
)

#: What a consumer wants, and how.
subscriptions = Table(
    "webhook_subscription",
    metadata,
    Column("name", String(64), primary_key=True),  # of the consumer
    Column("mode", String(8), nullable=False),  # active, shadow, paused, disabled
    Column("filter", DOCUMENT, nullable=False),
    Column("start_seq", BIG, nullable=False),  # the first event it may have
    Column("backfill_next", BIG),  # the first older event that was not looked at; NULL: all were
    Column("backfill_end", BIG),  # behind the last one
    Column("retry", DOCUMENT, nullable=False),
    Column("retention_us", BIG, nullable=False),
    Column("lease_us", BIG, nullable=False),
    Column("objective_us", BIG),  # recovery objective: the greatest age that is no page
    Column("severity", String(8), nullable=False, server_default="warning"),  # of its pages
    Column("runbook", Text),  # where its pages send their reader
    Column("order_by", Text),  # JSON path of the key whose events are delivered in order
    Column("created_at", BIG, nullable=False),
    Column("mode_since", BIG, nullable=False),
)

_OPEN = text("finished_at IS NULL")

#: State of one event at one subscription (``fanout.states``). ``visible_at`` is when a worker may
#: take it next: the end of its lease, of its backoff or of its deferral, and never where it waits
#: for a person. What a ceiling decided stands in the ledger.
deliveries = Table(
    "webhook_delivery",
    metadata,
    # The event first: it is what a purge asks for, and new rows go to the end.
    Column("seq", BIG, ForeignKey("webhook_event.seq"), primary_key=True),
    Column("subscription", String(64), ForeignKey("webhook_subscription.name"), primary_key=True),
    Column("state", String(12), nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("visible_at", BIG, nullable=False),
    Column("order_key", Text),
    Column("lease", String(32)),  # fencing token of the attempt that holds it, or held it last
    Column("last_error", Text),
    Column("created_at", BIG, nullable=False),
    Column("updated_at", BIG, nullable=False),
    Column("finished_at", BIG),  # NULL: something is still to be done
    Index(None, "subscription", "state"),
    # Of what is still to be done: small, however many were completed.
    Index(None, "subscription", "visible_at", sqlite_where=_OPEN, postgresql_where=_OPEN),
    Index(None, "subscription", "order_key", "seq", sqlite_where=_OPEN, postgresql_where=_OPEN),
)

#: Each try, for operators.
attempts = Table(
    "webhook_attempt",
    metadata,
    Column("id", KEY, primary_key=True, autoincrement=True),
    Column("subscription", String(64), nullable=False),
    Column("seq", BIG, nullable=False),
    Column("number", Integer, nullable=False),
    Column("lease", String(32), nullable=False),
    Column("started_at", BIG, nullable=False),
    Column("ended_at", BIG),
    Column("outcome", String(16)),
    Column("error", Text),
    Index(None, "subscription", "seq"),
    sqlite_autoincrement=True,
)
