"""
A shop whose reports have a database of their own, which hangs on command.

``/catalog`` and ``/cart`` ask another one that always works, ``/healthz`` asks none. All
three share the threads of one gunicorn worker, which is how a hung database stops them.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from flask import Flask, request

from benchmarks.overload.app import Database
from benchmarks.overload.records import HANDLED
from benchmarks.overload.signed import ID_HEADER

__all__ = ["app"]

#: As many calls as there are threads may hang at once.
reports = Database(16, 0.030, Path(os.environ["BENCHMARK_CONTROL"]))
shop = Database(16, 0.015, None)
log = os.open(os.environ["BENCHMARK_HANDLED"], os.O_WRONLY | os.O_APPEND)
app = Flask(__name__)


def ask(database: Database) -> str:
    """Call it; note the run, so that work done for nobody can be told."""
    began = time.monotonic()
    try:
        database.call()
    finally:
        os.write(log, HANDLED.pack(int(request.headers[ID_HEADER]), began, time.monotonic()))
    return "ok"


app.post("/reports", endpoint="reports")(lambda: ask(reports))
app.post("/catalog", endpoint="catalog")(lambda: ask(shop))
app.post("/cart", endpoint="cart")(lambda: ask(shop))
app.get("/healthz", endpoint="healthz")(lambda: "ok")
