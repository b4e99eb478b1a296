"""
Consumers for workers in processes of their own.

``books`` notes its effect in the store, in the transaction of its acknowledgement; ``mail`` notes
it in a file, as an effect somewhere else. An event may say how its handler is to behave.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from sqlalchemy import Connection

from gunicorn_admission.webhooks.fanout import Consumers, Event
from gunicorn_admission.webhooks.store.schema import audit

__all__ = ["consumers"]

consumers = Consumers()


def _note(line: str) -> None:
    file = os.open(os.environ["EFFECTS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, f"{line}\n".encode())
    os.close(file)


@consumers.consumer("books", transactional=True)
def books(event: Event, connection: Connection) -> None:
    row = {"at": 0, "actor": "books", "action": "effect", "subject": event.event_id, "detail": {}}
    connection.execute(audit.insert(), row)


@consumers.consumer("mail", concurrency=2, cost={"requests": 1})
def mail(event: Event) -> None:
    wait_for = event.json().get("wait_for")
    _note(f"begun {event.idempotency_key}")
    while wait_for and not Path(wait_for).exists():
        time.sleep(0.01)
    _note(f"done {event.idempotency_key}")
