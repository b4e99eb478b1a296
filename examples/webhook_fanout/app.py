"""
A shop that takes webhooks in once and lets three consumers have them.

The effects stand in a table of the same database. It has no unique key, so that an effect that
happened twice would show.
"""

from __future__ import annotations

import os
import time

from flask import Flask
from sqlalchemy import Column, Connection, MetaData, String, Table, create_engine, insert

from flask_ext import Webhooks
from gunicorn_admission.webhooks.fanout import Event
from gunicorn_admission.webhooks.intake import Source

STORE = os.environ["GUNICORN_ADMISSION_STORE_URL"]

effects = Table(
    "shop_effect", MetaData(), Column("consumer", String(64)), Column("event", String(255))
)

app = Flask(__name__)
webhooks = Webhooks(
    app,
    sources=[
        # GitHub never retries, so its deliveries have high priority by themselves.
        Source("git", provider="github", secrets="env:GIT_SECRET"),
        Source("billing", provider="stripe", secrets="env:BILLING_SECRET"),
        Source("orders", provider="shopify", secrets="env:ORDERS_SECRET"),
    ],
)


@app.get("/reports")
def reports() -> str:
    time.sleep(0.05)
    return "a report\n"


@webhooks.consumer("entitlements", transactional=True)
def entitlements(event: Event, connection: Connection) -> None:
    """What a customer may use. Its effect is committed with the acknowledgement, or not at all."""
    note(event, connection)


@webhooks.consumer("invoice-projection", transactional=True)
def invoice_projection(event: Event, connection: Connection) -> None:
    """What will be on the next invoice."""
    note(event, connection)


@webhooks.consumer("usage-analytics", cost=1, transactional=True)
def usage_analytics(event: Event, connection: Connection) -> None:
    """Costs money with each event, so it has a ceiling."""
    note(event, connection)


def note(event: Event, connection: Connection) -> None:
    row = {"consumer": event.consumer, "event": f"{event.source}/{event.event_id}"}
    connection.execute(insert(effects), row)


def make_table() -> None:
    """Make the shop's own table, beside those of the webhooks."""
    effects.metadata.create_all(create_engine(STORE))
