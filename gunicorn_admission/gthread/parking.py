"""Connections on which nothing has arrived cost no thread."""

from __future__ import annotations

import select
import time
from functools import partial
from selectors import EVENT_READ
from typing import Any

__all__ = ["is_silent", "park"]


def park(worker: Any, conn: Any) -> bool:
    """
    Leave a silent connection to the poller, where gunicorn keeps its own (25.2 and later).

    gunicorn hands a new connection to a thread at once, which waits there for up to five
    seconds; enough silent clients take all threads (benoitc/gunicorn #3518). Runs on the
    main loop.
    """
    if conn.initialized or conn.data_ready or not worker.alive:
        return False
    conn.sock.setblocking(False)
    conn.timeout = time.monotonic() + worker.cfg.keepalive
    worker.pending_conns.append(conn)
    worker.poller.register(
        conn.sock, EVENT_READ, partial(worker.on_pending_socket_readable, conn)
    )
    return True


def is_silent(sock: Any) -> bool:
    """Whether there is nothing to be read, not even an end; works on TLS too."""
    try:
        poll = select.poll()
        poll.register(sock.fileno(), select.POLLIN)
        return not poll.poll(0)
    except (OSError, ValueError):
        return False
