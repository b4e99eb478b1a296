"""Connections on which nothing has arrived cost no thread, and slow ones not for ever."""

from __future__ import annotations

import socket
import struct
import time
from functools import partial
from selectors import EVENT_READ
from typing import Any

__all__ = ["ReadTimeout", "park"]

_LEVEL, _OPTION = int(socket.SOL_SOCKET), int(socket.SO_RCVTIMEO)


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


class ReadTimeout:
    """
    Bounds how long a thread may wait for the next bytes of a client.

    A stalled client otherwise holds its thread for ever, and neither gunicorn's timeout
    nor a middleware sees it. It is the kernel's receive timeout, which stays in force when
    gunicorn makes the socket blocking again.

    Args:
        seconds: Longest silence; above 0.
    """

    __slots__ = ("_value",)

    def __init__(self, seconds: float) -> None:
        whole = int(seconds)
        self._value = struct.pack("ll", whole, max(1, int((seconds - whole) * 1e6)))

    def set(self, sock: Any) -> None:
        """Apply it; a socket that is broken already is left to its reader."""
        try:
            sock.setsockopt(_LEVEL, _OPTION, self._value)
        except OSError:
            pass

    def set_once(self, conn: Any) -> None:
        """Apply it to a connection that does not have it yet."""
        if not getattr(conn, "admission_timed", False):
            conn.admission_timed = True
            self.set(conn.sock)
