"""
Connections whose request has not arrived yet cost no thread, and not for ever.

A thread that reads from a silent or slow client waits with it. Enough such clients take
all threads, before any middleware runs (benoitc/gunicorn #2917, #3518). So a connection
is given to a thread when its request is there, as far as it fits into the socket buffer;
until then the poller waits for it. The kernel is told how many bytes to wait for
(SO_RCVLOWAT), so that a client that sends byte by byte wakes nobody either. On Unix
sockets, where that has no effect, ``edges.py`` waits.
"""

from __future__ import annotations

import select
import socket
import time
from functools import partial
from math import inf
from selectors import EVENT_READ
from typing import Any

from gunicorn.util import close as close_socket

from gunicorn_admission.answer import date_line
from gunicorn_admission.gthread.edges import Edges, has_edges
from gunicorn_admission.gthread.main_loop import MainLoop

__all__ = ["Parking", "is_silent"]

_LEVEL, _LOW_WATER = int(socket.SOL_SOCKET), int(socket.SO_RCVLOWAT)
_DONTWAIT = int(socket.MSG_DONTWAIT)
#: A Unix socket has no buffer of its own: what waits there fills the sender's.
_LARGEST_ON_UNIX = 32 * 1024
_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\nServer: gunicorn\r\n",
    b"Connection: close\r\nContent-Length: 0\r\n\r\n",
)


class Parking:
    """
    Connections of one worker that wait for bytes (gunicorn 24 and later).

    Args:
        worker: gunicorn's; its poller waits.
        loop: For the deadlines.
        seconds: How long a request may take to arrive. A client that has sent part of one
            is then told 408; one that has sent nothing is closed, like an idle one.

    Thread safety: main loop only.
    """

    def __init__(self, worker: Any, loop: MainLoop, seconds: float) -> None:
        self._worker = worker
        self._seconds = seconds
        # As long as gunicorn waits for the first bytes, in a thread or in its poller.
        self._silence = max(5.0, float(worker.cfg.keepalive))
        self._parked: dict[Any, float] = {}
        self._due = inf
        self._edges: Edges | None = None
        self._may_tell = not worker.cfg.is_ssl
        loop.each_turn(self._expire)

    def __len__(self) -> int:
        """Connections that are waited for now."""
        return len(self._parked)

    def park(self, conn: Any, length: int, needed: int) -> bool:
        """
        Wait until so many bytes have arrived.

        Args:
            conn: Its socket is not registered with the poller.
            length: Bytes that lie in its buffer.
            needed: Bytes that make progress possible; more than ``length``.

        Returns:
            False when there is nothing to wait for: the worker stops, or the socket became
            readable without the bytes, so the client has closed its side.
        """
        worker = self._worker
        if not worker.alive or length < getattr(conn, "admission_needed", 0):
            return False
        # A TCP address is a pair.
        grows = length > 0 and type(conn.server) is not tuple
        if grows and (needed > _LARGEST_ON_UNIX or not has_edges()):
            return False
        deadline = getattr(conn, "admission_deadline", None)
        if deadline is None:
            seconds = self._seconds if length else min(self._seconds, self._silence)
            deadline = time.monotonic() + seconds
        if length:
            # Kept until the request is complete, so that trickling does not help.
            conn.admission_deadline = deadline
            conn.admission_needed = needed
        conn.sock.setblocking(False)
        self._parked[conn] = deadline
        self._due = min(self._due, deadline)
        if grows:
            if self._edges is None:
                self._edges = Edges(worker.poller)
            self._edges.watch(conn.sock, needed, partial(self._readable, conn))
        else:
            if length:
                _wait_for(conn.sock, needed)
            worker.poller.register(conn.sock, EVENT_READ, partial(self._readable, conn))
        return True

    def park_begun(self, conn: Any) -> None:
        """Wait for more of a request that a thread has begun to read, behind TLS."""
        if getattr(conn, "admission_deadline", None) is None:
            conn.admission_deadline = time.monotonic() + self._seconds
        if not self._worker.alive:
            self._give_up(conn)
            return
        conn.sock.setblocking(False)
        self._parked[conn] = deadline = conn.admission_deadline
        self._due = min(self._due, deadline)
        self._worker.poller.register(conn.sock, EVENT_READ, partial(self._readable, conn))

    def complete(self, conn: Any) -> None:
        """A request has arrived on a connection; the next one has its own deadline."""
        if getattr(conn, "admission_deadline", None) is not None:
            conn.admission_deadline = None
            conn.admission_needed = 0

    def _readable(self, conn: Any, sock: Any) -> None:
        self._leave(conn)
        if getattr(conn, "admission_needed", 0):
            _wait_for(sock, 1)
        conn.data_ready = True
        self._worker.enqueue_req(conn)

    def _leave(self, conn: Any) -> None:
        del self._parked[conn]
        if self._edges is not None and self._edges.forget(conn.sock):
            return
        try:
            self._worker.poller.unregister(conn.sock)
        except (OSError, ValueError, KeyError):
            pass  # closed already

    def _expire(self, stopping: bool) -> None:
        now = time.monotonic()
        if now < self._due and not stopping:
            return
        for conn, deadline in list(self._parked.items()):
            if deadline <= now or stopping:
                self._leave(conn)
                self._give_up(conn)
        self._due = min(self._parked.values(), default=inf)

    def _give_up(self, conn: Any) -> None:
        sock = conn.sock
        begun = bool(getattr(conn, "admission_needed", 0))
        if begun and self._may_tell:
            try:
                while sock.recv(65536, _DONTWAIT):
                    pass  # nothing unread may be left: closing on it is a reset
            except OSError:
                pass
            try:
                sock.send(date_line().join(_TOO_SLOW), _DONTWAIT)
            except OSError:
                pass
        self._worker.nr_conns -= 1
        close_socket(sock)


def _wait_for(sock: Any, count: int) -> None:
    try:
        sock.setsockopt(_LEVEL, _LOW_WATER, count)
    except OSError:
        pass  # broken already; whoever reads it will see


def is_silent(sock: Any) -> bool:
    """Whether there is nothing to be read, not even an end; works on TLS too."""
    try:
        poll = select.poll()
        poll.register(sock.fileno(), select.POLLIN)
        return not poll.poll(0)
    except (OSError, ValueError):
        return False
