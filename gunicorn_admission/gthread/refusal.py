"""
Refusing without a thread: a ready-made 503 straight into the socket.

A refusal through a thread, gunicorn's parser and WSGI costs about as much as a trivial
request, so at ten times the load the refusals alone fill the process. Here it is a peek,
a read and a send. It is done only for plain HTTP/1.x requests that lie whole in the
socket buffer: exactly these bytes are taken, so closing sends no reset that would
overtake the answer, and keep-alive stays possible.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from selectors import EVENT_READ
from typing import Any

from gunicorn.util import close as close_socket

from gunicorn_admission.answer import raw_answer
from gunicorn_admission.core.types import Reason
from gunicorn_admission.gthread.bytes_at import Peek, is_fresh
from gunicorn_admission.gthread.capabilities import Capabilities
from gunicorn_admission.gthread.job import Job

__all__ = ["Refuser"]

_DONTWAIT = int(socket.MSG_DONTWAIT)


class Refuser:
    """
    Writes refusals for one worker.

    Args:
        worker: gunicorn's.
        can: What it can do.
        status: 503 or 429.

    Thread safety: ``write`` may be called from any thread that owns the connection;
    ``write_on_main_loop`` only from the main loop.
    """

    def __init__(self, worker: Any, can: Capabilities, status: int) -> None:
        self._worker = worker
        self._can = can
        self._status = status
        self._keepalive = bool(worker.cfg.keepalive)  # read once: cfg looks it up each time

    def write_on_main_loop(self, job: Job, peek: Peek) -> bool:
        """
        Answer and put the connection where it belongs; False when this cannot be done.

        Args:
            job: Refused.
            peek: Has just looked at the connection.
        """
        worker, conn = self._worker, job.conn
        if self._can.proxied and is_fresh(conn):
            return False  # the parser would take what comes next for the start of the connection
        keep = self._send(job, peek, keep=self._can.keepalived)
        if keep is None:
            return False
        if keep:
            # The same as ThreadWorker.finish_request, less the parser, which a connection
            # needs only once a request on it is served.
            conn.sock.setblocking(False)
            conn.data_ready = True
            conn.set_timeout()
            worker.keepalived_conns.append(conn)
            worker.poller.register(
                conn.sock, EVENT_READ, partial(worker.on_client_socket_readable, conn)
            )
        else:
            worker.nr_conns -= 1
            close_socket(conn.sock)
        return True

    def turn_away(
        self, sock: Any, peek: Peek, ask: Callable[[], tuple[Reason, int] | None]
    ) -> bool:
        """
        Answer and close a socket that gunicorn does not know of yet.

        Args:
            sock: Just accepted.
            peek: Has just looked at it.
            ask: Refuses the request, with a reason and when to retry, or does not.

        Returns:
            False when it was left alone: not a whole request, one on a connection that
            stays open, or not refused.
        """
        whole = peek.whole()
        if whole is None or whole.keep_alive or whole.followed or (told := ask()) is None:
            return False
        reason, retry_after_ns = told
        data = raw_answer(
            reason, retry_after_ns, self._status, keep_alive=False, with_body=not whole.is_head
        )
        try:
            peek.take(sock, whole.size)
            sock.send(data, _DONTWAIT)
        except OSError:
            pass  # the client has left
        close_socket(sock)
        return True

    def write(self, job: Job) -> bool:
        """Answer and close, from another thread; False when this cannot be done."""
        if not self._can.plain or self._can.proxied or has_buffered(job.conn):
            return False
        peek = Peek()
        try:
            peek.look(job.conn.sock)
        except OSError:
            return False
        if self._send(job, peek, keep=False) is None:
            return False
        sock = job.conn.sock
        # Nothing unread is left, so there is nothing to linger for; gunicorn 26 to 27.0.1
        # would linger for up to 2 s on its main loop.
        job.conn.close = lambda graceful=False: close_socket(sock)
        return True

    def _send(self, job: Job, peek: Peek, keep: bool) -> bool | None:
        """Send the answer; whether the connection stays open, ``None`` if nothing was done."""
        whole = peek.whole()
        if whole is None:
            return None
        sock = job.conn.sock
        keep = keep and whole.keep_alive and self._may_keep()
        if whole.followed and not keep:
            return None  # closing on unread bytes is a reset, which may destroy the answer
        data = raw_answer(
            job.reason or Reason.OVERLOADED,
            job.retry_after_ns,
            self._status,
            keep_alive=keep,
            with_body=not whole.is_head,
        )
        try:
            peek.take(sock, whole.size)
            sent = sock.send(data, _DONTWAIT)
        except OSError:
            return False  # the client has left; what remains is to close
        return keep and bool(sent == len(data))

    def _may_keep(self) -> bool:
        worker = self._worker
        return bool(
            worker.alive
            and self._keepalive
            and len(worker.keepalived_conns) < worker.max_keepalived
        )


def has_buffered(conn: Any) -> bool:
    """Whether the parser has read ahead, so that the socket does not hold the whole request."""
    parser = conn.parser
    return parser is not None and bool(parser.unreader.buf.getvalue())
