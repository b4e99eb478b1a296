"""The smallest thing that can be written: one row of a table that nothing refers to."""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy import Connection, insert, select

from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import nonces

__all__ = ["add", "names", "wait_until"]

_ADD = insert(nonces)


def add(name: str, size: int = 32) -> Callable[[Connection], str]:
    """Work that writes one row and returns its name."""

    def work(connection: Connection) -> str:
        row = {"source": "test", "nonce": name, "body_sha256": bytes(size), "seen_at": 0}
        connection.execute(_ADD, row)
        return name

    return work


def names(store: Store) -> list[str]:
    """What was written, sorted."""
    with store.read() as connection:
        return list(connection.scalars(select(nonces.c.nonce).order_by(nonces.c.nonce)))


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread is about to do; fail when it does not."""
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.001)
