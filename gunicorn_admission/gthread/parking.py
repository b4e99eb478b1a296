"""Connections on which nothing has arrived cost no thread, and slow ones not for ever."""

from __future__ import annotations

import socket
import struct
import time
from functools import partial
from selectors import EVENT_READ
from typing import Any

__all__ = ["park", "set_read_timeout", "set_receive_timeout"]


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


def set_read_timeout(conn: Any, seconds: float) -> None:
    """
    Bound how long a thread may wait for the next bytes of a client; once a connection.

    A stalled client otherwise holds its thread for ever, and neither gunicorn's timeout
    nor a middleware sees it. The kernel's timeout stays in force when gunicorn makes the
    socket blocking again.
    """
    if getattr(conn, "admission_timed", False):
        return
    conn.admission_timed = True
    set_receive_timeout(conn.sock, seconds)


def set_receive_timeout(sock: Any, seconds: float) -> None:
    """Set ``SO_RCVTIMEO``; a socket that is broken already is left to its reader."""
    whole = int(seconds)
    value = struct.pack("ll", whole, int((seconds - whole) * 1e6))
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, value)
    except OSError:
        pass
