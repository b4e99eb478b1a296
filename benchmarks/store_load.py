"""
One process of ``store``: it stores events from several threads, or consumes them.

    python -m benchmarks.store_load ROLE URL THREADS SECONDS

It says "ready", waits for a line, and prints what each commit took, in microseconds, as JSON. A
consumer works until its standard input is closed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, select, update

from gunicorn_admission.webhooks.fanout.routing import Routing
from gunicorn_admission.webhooks.intake.envelope import Envelope
from gunicorn_admission.webhooks.intake.inbox import Batch, keep
from gunicorn_admission.webhooks.providers import IdSource, Item, Verified
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import deliveries

__all__ = ["CONSUMERS"]

CONSUMERS = ("entitlements", "invoice-projection", "usage-analytics")
BODY = json.dumps({"type": "invoice.paid", "filler": "x" * 2000}).encode()
DIGEST = hashlib.sha256(BODY).digest()
HEADERS = [["Content-Type", "application/json"], ["User-Agent", "Stripe/1.0"]]
#: Deliveries that a consumer takes at once.
CLAIM = 50

Commit = Callable[[str], None]


def with_store(store: Store) -> Commit:
    """What intake does: the event and its deliveries by the product's own code."""
    routing = Routing(store)

    def commit(event_id: str) -> None:
        item = Item(
            event_id=event_id,
            id_source=IdSource.BODY,
            event_type="invoice.paid",
            timestamp=None,
            body=BODY,
        )
        envelope = Envelope(
            source="stripe",
            verified=Verified(
                event_id=event_id, event_type=None, timestamp=None, secret=0, items=(item,)
            ),
            key_id="k",
            headers=HEADERS,
            content_type="application/json",
            traceparent=None,
            received_at=store.now(),
            body_sha256=DIGEST,
        )
        batch = Batch.of(envelope, BODY)
        store.write(lambda connection: keep(connection, batch, routing))

    return commit


def connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=60, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def by_hand(path: str) -> Commit:
    """What one would write: a connection for each thread, a transaction for each event."""
    here = threading.local()
    event = (
        "INSERT INTO webhook_event (source, event_id, id_source, type, received_at, key_id,"
        " headers, size, body_sha256, body) VALUES ('stripe', ?, 'body', 'invoice.paid', ?, 'k',"
        " ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING seq"
    )
    delivery = (
        "INSERT INTO webhook_delivery (seq, subscription, state, visible_at, created_at,"
        " updated_at) VALUES (?, ?, 'pending', 0, 0, 0)"
    )

    def commit(event_id: str) -> None:
        if not hasattr(here, "connection"):
            here.connection = connect(path)
        values = (event_id, time.time_ns() // 1000, json.dumps(HEADERS), len(BODY), DIGEST, BODY)
        execute = here.connection.execute
        execute("BEGIN IMMEDIATE")
        (seq,) = execute(event, values).fetchone()
        here.connection.executemany(delivery, [(seq, name) for name in CONSUMERS])
        execute("COMMIT")

    return commit


def produce(commit: Commit, threads: int, seconds: float) -> list[int]:
    taken: list[int] = []
    start = threading.Barrier(threads)

    def run(thread: int) -> None:
        number = 0
        start.wait()
        until = time.perf_counter_ns() + seconds * 1e9
        while (began := time.perf_counter_ns()) < until:
            commit(f"evt_{os.getpid()}_{thread}_{number}")
            taken.append((time.perf_counter_ns() - began) // 1000)
            number += 1

    workers = [threading.Thread(target=run, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return taken


def consume(store: Store, name: str) -> bool:
    """Claim a batch, and complete it: two writes. Whether there was any."""
    key = (deliveries.c.subscription == name, deliveries.c.seq)
    ready = (
        select(deliveries.c.seq)
        .where(key[0], deliveries.c.finished_at.is_(None), deliveries.c.visible_at <= store.now())
        .order_by(deliveries.c.visible_at)
        .limit(CLAIM)
        .with_for_update(skip_locked=True)
    )

    def change(connection: Connection, seqs: list[int], **values: Any) -> None:
        mine = update(deliveries).where(key[0], key[1].in_(seqs))
        connection.execute(mine.values(**values))

    def claim(connection: Connection) -> list[int]:
        seqs = list(connection.scalars(ready))
        change(connection, seqs, state="leased", visible_at=store.now() + 30_000_000)
        return seqs

    if seqs := store.write(claim):
        store.write(lambda connection: change(connection, seqs, state="completed", finished_at=1))
    return bool(seqs)


def consume_by_hand(connection: sqlite3.Connection, name: str) -> bool:
    connection.execute("BEGIN IMMEDIATE")
    found = connection.execute(
        "SELECT seq FROM webhook_delivery WHERE subscription = ? AND finished_at IS NULL"
        " ORDER BY visible_at LIMIT 1",
        (name,),
    ).fetchone()
    change = "UPDATE webhook_delivery SET state = ?, visible_at = ?, finished_at = ?"
    mine = " WHERE subscription = ? AND seq = ?"
    if found:
        connection.execute(change + mine, ("leased", 2**60, None, name, found[0]))
    connection.execute("COMMIT")
    if found:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(change + mine, ("completed", 0, 1, name, found[0]))
        connection.execute("COMMIT")
    return bool(found)


def consume_until_closed(one: Callable[[], bool]) -> None:
    over = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait, daemon=True).start()
    while not over.is_set():
        if not one():
            over.wait(0.01)


def main() -> None:
    role, url, threads, seconds = sys.argv[1:]
    path = url.removeprefix("sqlite:///")
    with Store(url) as store:
        store.engine.connect().close()
        print("ready", flush=True)
        sys.stdin.readline()
        if role == "store":
            print(json.dumps(produce(with_store(store), int(threads), float(seconds))))
        elif role == "by-hand":
            print(json.dumps(produce(by_hand(path), int(threads), float(seconds))))
        elif role.startswith("consume-by-hand:"):
            connection = connect(path)
            consume_until_closed(lambda: consume_by_hand(connection, role.partition(":")[2]))
        else:
            consume_until_closed(lambda: consume(store, role.partition(":")[2]))


if __name__ == "__main__":
    main()
