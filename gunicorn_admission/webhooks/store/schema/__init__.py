"""
The tables, one file for each concern: ``intake`` (sources, events), ``fanout`` (subscriptions,
deliveries), ``gates`` (ceilings, ledger), ``pages`` (what was worth waking someone for).

All times are integer microseconds since the epoch (``*_at``, ``*_until``), so that they compare
alike on every engine and no time zone is in between. All names begin with ``webhook_``, because
the tables may stand in the application's own database, where an effect can join their
transaction.
"""

from __future__ import annotations

from gunicorn_admission.webhooks.store.schema.base import metadata
from gunicorn_admission.webhooks.store.schema.fanout import (
    attempts,
    deliveries,
    revision,
    subscriptions,
)
from gunicorn_admission.webhooks.store.schema.gates import (
    ceilings,
    entries,
    gates,
    ledger,
    windows,
)
from gunicorn_admission.webhooks.store.schema.intake import audit, events, nonces, secrets, sources
from gunicorn_admission.webhooks.store.schema.pages import notices, pages

__all__ = [
    "attempts",
    "audit",
    "ceilings",
    "deliveries",
    "entries",
    "events",
    "gates",
    "ledger",
    "metadata",
    "nonces",
    "notices",
    "pages",
    "revision",
    "secrets",
    "sources",
    "subscriptions",
    "windows",
]
