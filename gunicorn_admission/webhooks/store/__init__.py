"""
Where events are kept: one schema on SQLite (embedded) or PostgreSQL; the URL decides.

Start at ``schema`` (the tables) and ``store.py`` (how they are written). A ``Store`` gives two
things: ``write(work)``, a short transaction that may share its commit with others, and
``read()``, a connection on one snapshot. ``migrations`` brings the tables of an older version up.
"""

from __future__ import annotations

from gunicorn_admission.webhooks.store.errors import SchemaMismatch, StoreError, StoreTimeout
from gunicorn_admission.webhooks.store.store import Store

__all__ = ["SchemaMismatch", "Store", "StoreError", "StoreTimeout"]
