"""What was worth waking someone for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from gunicorn_admission.webhooks.store.schema.base import BIG, DOCUMENT

__all__ = ["upgrade"]

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the tables of ``schema/pages.py``."""
    op.create_table(
        "webhook_page",
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("episode", sa.Integer(), nullable=False),
        sa.Column("boundary", sa.String(12), nullable=False),
        sa.Column("condition", sa.String(12), nullable=False),
        sa.Column("severity", sa.String(8), nullable=False),
        sa.Column("consumer", sa.String(64)),
        sa.Column("source", sa.String(64)),
        sa.Column("event_id", sa.String(255)),
        sa.Column("detail", DOCUMENT, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("first_at", BIG, nullable=False),
        sa.Column("last_at", BIG, nullable=False),
        sa.Column("until", BIG),
        sa.Column("resolved_at", BIG),
        sa.PrimaryKeyConstraint("key", name="pk_webhook_page"),
    )
    op.create_index("ix_webhook_page_last_at", "webhook_page", ["last_at"])
    op.create_table(
        "webhook_notice",
        sa.Column("page", sa.String(255), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("episode", sa.Integer(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("resolved", sa.Boolean(), nullable=False),
        sa.Column("repeat_at", BIG, nullable=False),
        sa.Column("not_before", BIG, nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("last_error", sa.Text()),
        sa.PrimaryKeyConstraint("page", "channel", name="pk_webhook_notice"),
        sa.ForeignKeyConstraint(["page"], ["webhook_page.key"], name="fk_webhook_notice_page"),
    )
