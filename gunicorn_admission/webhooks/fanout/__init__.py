"""
From events to consumers: each subscription has its own deliveries, leases and dead letters.

Start at ``subscription.py`` (what a consumer wants), then ``routing.py`` (the rows that an intake
writes), ``claims.py`` and ``acknowledge.py`` (how a row is taken and finished) and ``worker.py``.
"""

from __future__ import annotations

from gunicorn_admission.webhooks.fanout.routing import RoutedEvent, Routing

__all__ = ["RoutedEvent", "Routing"]
