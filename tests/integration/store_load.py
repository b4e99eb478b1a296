"""
A process that stores events from several threads until it is killed.

``python -m tests.integration.store_load URL FILE`` appends the id of each event to FILE once the
store has acknowledged it: what stands there must be in the store, whatever happens next.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import threading

from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from gunicorn_admission.webhooks.store import Store, StoreError
from gunicorn_admission.webhooks.store.schema import events

__all__ = ["body_of"]

THREADS = 8
STATEMENTS = {
    dialect.dialect.name: dialect.insert(events).on_conflict_do_nothing()
    for dialect in (sqlite, postgresql)
}


def body_of(event_id: str) -> bytes:
    """The same bytes each time; some fill a page of the database, some many, some none."""
    draw = random.Random(event_id)
    return draw.randbytes(draw.choice((0, 10, 1000, 5000, 50_000)))


def store_event(connection: Connection, event_id: str) -> None:
    body = body_of(event_id)
    row = {
        "source": "load",
        "event_id": event_id,
        "id_source": "header",
        "received_at": 0,
        "key_id": "k",
        "headers": [],
        "size": len(body),
        "body_sha256": hashlib.sha256(body).digest(),
        "body": body,
    }
    connection.execute(STATEMENTS[connection.dialect.name], row)


def load(store: Store, acknowledged: int, thread: int) -> None:
    for number in range(1_000_000):
        event_id = f"{os.getpid()}-{thread}-{number}"
        try:
            if number % 4:
                store.write(lambda connection, it=event_id: store_event(connection, it), timeout=5)
            else:
                with store.transaction() as connection:
                    store_event(connection, event_id)
        except StoreError:
            continue  # a server that crashed meanwhile; nothing was acknowledged
        os.write(acknowledged, f"{event_id}\n".encode())


def main() -> None:
    url, path = sys.argv[1:]
    store = Store(url)
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for thread in range(THREADS):
        threading.Thread(target=load, args=(store, file, thread)).start()


if __name__ == "__main__":
    main()
