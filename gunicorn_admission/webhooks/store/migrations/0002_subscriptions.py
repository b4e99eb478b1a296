"""Subscriptions, their deliveries, and the number that tells when they changed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from gunicorn_admission.webhooks.store.schema.base import BIG, DOCUMENT, KEY

__all__ = ["upgrade"]

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables of ``schema/fanout.py``, and the one row of the revision."""
    op.create_table(
        "webhook_attempt",
        sa.Column("id", KEY, autoincrement=True, nullable=False),
        sa.Column("subscription", sa.String(64), nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("lease", sa.String(32), nullable=False),
        sa.Column("started_at", BIG, nullable=False),
        sa.Column("ended_at", BIG),
        sa.Column("outcome", sa.String(16)),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_attempt"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_webhook_attempt_subscription_seq", "webhook_attempt", ["subscription", "seq"]
    )
    op.create_table(
        "webhook_revision",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("number", BIG, nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_webhook_revision_one_row")),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_revision"),
    )
    op.execute("INSERT INTO webhook_revision (id, number) VALUES (1, 0)")
    op.create_table(
        "webhook_subscription",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("mode", sa.String(8), nullable=False),
        sa.Column("filter", DOCUMENT, nullable=False),
        sa.Column("start_seq", BIG, nullable=False),
        sa.Column("backfill_next", BIG),
        sa.Column("backfill_end", BIG),
        sa.Column("retry", DOCUMENT, nullable=False),
        sa.Column("retention_us", BIG, nullable=False),
        sa.Column("lease_us", BIG, nullable=False),
        sa.Column("objective_us", BIG),
        sa.Column("severity", sa.String(8), server_default="warning", nullable=False),
        sa.Column("runbook", sa.Text()),
        sa.Column("order_by", sa.Text()),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("mode_since", BIG, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_webhook_subscription"),
    )
    op.create_table(
        "webhook_delivery",
        sa.Column("seq", BIG, nullable=False),
        sa.Column("subscription", sa.String(64), nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("visible_at", BIG, nullable=False),
        sa.Column("order_key", sa.Text()),
        sa.Column("lease", sa.String(32)),
        sa.Column("last_error", sa.Text()),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("updated_at", BIG, nullable=False),
        sa.Column("finished_at", BIG),
        sa.ForeignKeyConstraint(
            ["subscription"], ["webhook_subscription.name"], name="fk_webhook_delivery_subscription"
        ),
        sa.ForeignKeyConstraint(["seq"], ["webhook_event.seq"], name="fk_webhook_delivery_seq"),
        sa.PrimaryKeyConstraint("seq", "subscription", name="pk_webhook_delivery"),
    )
    op.create_index(
        "ix_webhook_delivery_subscription_order_key_seq",
        "webhook_delivery",
        ["subscription", "order_key", "seq"],
        sqlite_where=sa.text("finished_at IS NULL"),
        postgresql_where=sa.text("finished_at IS NULL"),
    )
    op.create_index(
        "ix_webhook_delivery_subscription_state", "webhook_delivery", ["subscription", "state"]
    )
    op.create_index(
        "ix_webhook_delivery_subscription_visible_at",
        "webhook_delivery",
        ["subscription", "visible_at"],
        sqlite_where=sa.text("finished_at IS NULL"),
        postgresql_where=sa.text("finished_at IS NULL"),
    )
