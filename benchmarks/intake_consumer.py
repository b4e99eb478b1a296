"""
A stand-in for one consumer: it claims and completes deliveries in two commits a batch.

    python -m benchmarks.intake_consumer NAME

It writes as much as a real one, and does nothing with the events.
"""

from __future__ import annotations

import sys
import time

from sqlalchemy import Connection, select, update

from gunicorn_admission.webhooks.fanout.states import State
from gunicorn_admission.webhooks.intake.app import store_url
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import deliveries

__all__ = ["work"]

BATCH = 64


def work(store: Store, name: str) -> int:
    """Take one batch; how many deliveries it had."""
    mine = deliveries.c.subscription == name

    def claim(connection: Connection) -> list[int]:
        due = select(deliveries.c.seq).where(mine, deliveries.c.state == State.PENDING.value)
        found = due.order_by(deliveries.c.seq).limit(BATCH).with_for_update(skip_locked=True)
        seqs = list(connection.execute(found).scalars())
        _set(connection, seqs, State.LEASED)
        return seqs

    def _set(connection: Connection, seqs: list[int], state: State) -> None:
        if seqs:
            rows = update(deliveries).where(mine, deliveries.c.seq.in_(seqs))
            connection.execute(rows.values(state=state.value))

    seqs = store.write(claim)
    if seqs:
        store.write(lambda connection: _set(connection, seqs, State.COMPLETED))
    return len(seqs)


def main() -> None:
    with Store(store_url()) as store:
        while True:
            if not work(store, sys.argv[1]):
                time.sleep(0.01)


if __name__ == "__main__":
    main()
