"""What each consumer may spend, and the record of what was decided."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from gunicorn_admission.webhooks.store.schema.base import BIG, DOCUMENT, KEY

__all__ = ["upgrade"]

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the tables of ``schema/gates.py``."""
    _declared()
    _spent()
    _decided()


def _declared() -> None:
    op.create_table(
        "webhook_gate",
        sa.Column("consumer", sa.String(64), nullable=False),
        sa.Column("at_ceiling", sa.String(8), nullable=False),
        sa.Column("charge", sa.String(8), nullable=False),
        sa.Column("cost", DOCUMENT, nullable=False),
        sa.Column("declared", DOCUMENT),
        sa.Column("revision", sa.String(16), nullable=False),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("updated_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("consumer", name="pk_webhook_gate"),
    )
    op.create_table(
        "webhook_ceiling",
        sa.Column("id", KEY, autoincrement=True, nullable=False),
        sa.Column("consumer", sa.String(64), nullable=False),
        sa.Column("unit", sa.String(32), nullable=False),
        sa.Column("span", sa.String(80), nullable=False),
        sa.Column("hard", BIG),
        sa.Column("soft", BIG),
        sa.Column("bill_source", sa.Text()),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("ended_at", BIG),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_ceiling"),
        sa.ForeignKeyConstraint(
            ["consumer"], ["webhook_gate.consumer"], name="fk_webhook_ceiling_consumer"
        ),
        sa.UniqueConstraint(
            "consumer", "unit", "span", name="uq_webhook_ceiling_consumer_unit_span"
        ),
        sa.CheckConstraint(
            "hard IS NOT NULL OR soft IS NOT NULL", name=op.f("ck_webhook_ceiling_bounds_something")
        ),
        sqlite_autoincrement=True,
    )


def _spent() -> None:
    op.create_table(
        "webhook_spend_window",
        sa.Column("ceiling", BIG, nullable=False),
        sa.Column("starts_at", BIG, nullable=False),
        sa.Column("ends_at", BIG),
        sa.Column("key", sa.String(32), nullable=False),
        sa.Column("reserved", BIG, nullable=False),
        sa.Column("settled", BIG, nullable=False),
        sa.Column("soft_crossed", BIG),
        sa.PrimaryKeyConstraint("ceiling", "starts_at", name="pk_webhook_spend_window"),
        sa.ForeignKeyConstraint(
            ["ceiling"], ["webhook_ceiling.id"], name="fk_webhook_spend_window_ceiling"
        ),
        sa.CheckConstraint("reserved >= 0", name=op.f("ck_webhook_spend_window_reserved")),
        sa.CheckConstraint("settled >= 0", name=op.f("ck_webhook_spend_window_settled")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "webhook_spend_entry",
        sa.Column("id", KEY, autoincrement=True, nullable=False),
        sa.Column("at", BIG, nullable=False),
        sa.Column("ceiling", BIG, nullable=False),
        sa.Column("starts_at", BIG, nullable=False),
        sa.Column("source", sa.String(64), nullable=False),
        sa.Column("event_id", sa.String(255), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("reserved", BIG, nullable=False),
        sa.Column("settled", BIG, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_spend_entry"),
        sa.ForeignKeyConstraint(
            ["ceiling"], ["webhook_ceiling.id"], name="fk_webhook_spend_entry_ceiling"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_webhook_spend_entry_ceiling_starts_at", "webhook_spend_entry", ["ceiling", "starts_at"]
    )


def _decided() -> None:
    op.create_table(
        "webhook_ledger",
        sa.Column("consumer", sa.String(64), nullable=False),
        sa.Column("source", sa.String(64), nullable=False),
        sa.Column("event_id", sa.String(255), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("lease", sa.String(32)),
        sa.Column("lease_until", BIG),
        sa.Column("held", DOCUMENT),
        sa.Column("defer_until", BIG),
        sa.Column("permit", sa.String(8)),
        sa.Column("answer", DOCUMENT),
        sa.Column("duplicates", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("refusals", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("deferrals", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("updated_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("consumer", "source", "event_id", name="pk_webhook_ledger"),
        sqlite_with_rowid=False,
    )
    unfinished = sa.text("state <> 'completed'")
    op.create_index(
        "ix_webhook_ledger_open", "webhook_ledger", ["consumer", "state", "updated_at"],
        sqlite_where=unfinished, postgresql_where=unfinished,
    )  # fmt: skip
