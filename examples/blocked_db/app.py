"""A small Flask shop over a pooled database: nothing in here knows about admission."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

from database import Pool, PoolTimeout
from flask import Flask, request
from scenario import CONNECTIONS, QUERY_SECONDS

RUN = struct.Struct("<Id")  # request id, start of the handler on the monotonic clock

folder = Path(os.environ["DEMO_FOLDER"])
journal = os.open(folder / "handlers", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
pool = Pool(folder / "shop.db", folder / "control", size=CONNECTIONS, query_seconds=QUERY_SECONDS)
app = Flask(__name__)


def orders() -> dict[str, int]:
    """Run one query; note the start, so that the demo can tell work done for nobody."""
    os.write(journal, RUN.pack(int(request.headers["X-Demo-Id"]), time.monotonic()))
    with pool.connection() as connection:
        query = "SELECT sum(cents), remote_work() FROM orders"
        return {"cents": connection.execute(query).fetchone()[0]}


app.post("/payments", endpoint="payments")(orders)
app.post("/updates", endpoint="updates")(orders)
app.get("/analytics", endpoint="analytics")(orders)


@app.get("/healthz")
def healthz() -> str:
    """What a load balancer asks; it needs a thread and nothing else."""
    return "ok"


@app.errorhandler(PoolTimeout)
def no_connection(error: PoolTimeout) -> tuple[str, int]:
    """What an application does without admission: wait long, then fail."""
    return str(error), 500
