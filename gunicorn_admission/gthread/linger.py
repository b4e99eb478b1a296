"""
Lingering close without standing still.

gunicorn 26 to 27.0.1 closes a connection after its last answer by half-closing and then
reading, for up to 2 s, on the main loop: eight clients that keep their socket open stop
the whole worker for 14 s. Here the poller does the waiting.
"""

from __future__ import annotations

import inspect
import socket
import ssl
import time
from collections import OrderedDict
from functools import partial
from selectors import EVENT_READ
from typing import Any

from gunicorn.util import close as close_socket
from gunicorn.workers import gthread

from gunicorn_admission.gthread.main_loop import MainLoop

__all__ = ["Linger", "lingers"]

_SECONDS = 2.0
_MOST = 8 << 20
_CHUNK = 65536


def lingers() -> bool:
    """Whether this gunicorn lingers when it closes (26 and later)."""
    return "graceful" in inspect.signature(gthread.TConn.close).parameters


class Linger:
    """
    Closes connections of one worker, and waits for their clients in the poller.

    RFC 9112 section 9.6: half-close, read until the client has closed too, then close;
    otherwise what it still sends causes a reset that may destroy the answer.

    Args:
        worker: gunicorn's; its poller is used.
        loop: For the deadline, which is 2 s; 8 MiB are read at most.

    Thread safety: main loop only.
    """

    def __init__(self, worker: Any, loop: MainLoop) -> None:
        self._worker = worker
        self._waiting: OrderedDict[socket.socket, tuple[float, int]] = OrderedDict()
        loop.each_turn(self._expire)

    def take_over(self, conn: Any) -> None:
        """Close this connection our way, once that is due."""
        if "close" not in vars(conn):
            conn.close = partial(self._close, conn)

    def _close(self, conn: Any, graceful: bool = False) -> None:
        sock = conn.sock
        if not graceful:
            close_socket(sock)
            return
        try:
            sock.setblocking(False)
            sock.shutdown(socket.SHUT_WR)
            self._waiting[sock] = time.monotonic() + _SECONDS, 0
            if self._read(sock):
                self._worker.poller.register(sock, EVENT_READ, self._read)
        except (OSError, ValueError, KeyError):
            self._end(sock)

    def _read(self, sock: Any) -> bool:
        """Read what is there; whether there may be more later."""
        deadline, taken = self._waiting[sock]
        try:
            while data := sock.recv(_CHUNK):
                taken += len(data)
                if taken > _MOST:
                    break
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError):
            self._waiting[sock] = deadline, taken
            return True
        except OSError:
            pass
        self._end(sock)
        return False

    def _end(self, sock: Any) -> None:
        self._waiting.pop(sock, None)
        try:
            self._worker.poller.unregister(sock)
        except (OSError, ValueError, KeyError):
            pass  # never registered
        close_socket(sock)

    def _expire(self, stopping: bool) -> None:
        now = time.monotonic()
        while self._waiting:
            sock, (deadline, _) = next(iter(self._waiting.items()))
            if now < deadline and not stopping:
                return
            self._end(sock)
