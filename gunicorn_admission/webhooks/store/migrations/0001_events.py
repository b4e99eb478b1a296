"""Sources, secrets, events, and the record of changes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from gunicorn_admission.webhooks.store.schema.base import BIG, DOCUMENT, KEY

__all__ = ["upgrade"]

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables of ``schema/intake.py``."""
    op.create_table(
        "webhook_source",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("provider", sa.String(32), nullable=False),
        sa.Column("url", sa.Text()),
        sa.Column("priority", sa.String(8), nullable=False),
        sa.Column("deadline_us", BIG),
        sa.Column("max_body", sa.Integer()),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_webhook_source"),
    )
    op.create_table(
        "webhook_secret",
        sa.Column("source", sa.String(64), nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("not_after", BIG),
        sa.ForeignKeyConstraint(["source"], ["webhook_source.name"], "fk_webhook_secret_source"),
        sa.PrimaryKeyConstraint("source", "key_id", name="pk_webhook_secret"),
    )
    op.create_table(
        "webhook_event",
        sa.Column("seq", KEY, autoincrement=True, nullable=False),
        sa.Column("source", sa.String(64), nullable=False),
        sa.Column("event_id", sa.String(255), nullable=False),
        sa.Column("id_source", sa.String(8), nullable=False),
        sa.Column("type", sa.Text()),
        sa.Column("source_time", BIG),
        sa.Column("received_at", BIG, nullable=False),
        sa.Column("delivery_id", sa.String(255)),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("content_type", sa.Text()),
        sa.Column("headers", DOCUMENT, nullable=False),
        sa.Column("traceparent", sa.String(128)),
        sa.Column("duplicates", sa.Integer(), server_default="0", nullable=False),
        sa.Column("conflicts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("body_sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_webhook_event"),
        sa.UniqueConstraint("source", "event_id", name="uq_webhook_event_source_event_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_webhook_event_received_at", "webhook_event", ["received_at"])
    op.create_table(
        "webhook_nonce",
        sa.Column("source", sa.String(64), nullable=False),
        sa.Column("nonce", sa.String(255), nullable=False),
        sa.Column("body_sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("seen_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("source", "nonce", name="pk_webhook_nonce"),
    )
    op.create_table(
        "webhook_audit",
        sa.Column("id", KEY, autoincrement=True, nullable=False),
        sa.Column("at", BIG, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("detail", DOCUMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_audit"),
        sqlite_autoincrement=True,
    )
