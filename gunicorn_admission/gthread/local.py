"""What a thread of the executor tells the gate that gunicorn calls on it."""

from __future__ import annotations

import threading
from typing import Any

from gunicorn_admission.gthread.job import Job

__all__ = ["Local"]


class Local(threading.local):
    """
    Per-thread facts.

    Attributes:
        job: What this thread runs or refuses; taken by the gate, so that a second request
            on an HTTP/2 connection finds none.
        exempt: This thread serves exempt requests only.
        lane: This thread refuses.
        http2: The HTTP/2 connection that holds this thread, between its requests too.
        unread: The gate left so much of a refused body unread that the connection is lost.
    """

    job: Job | None = None
    exempt = False
    http2: Any = None
    lane = False
    unread = False
