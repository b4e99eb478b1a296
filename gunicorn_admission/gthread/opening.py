"""
Finding out what a request is before it is decided on, where a look is not enough.

TLS hides the request line. Before gunicorn 24, where nothing can wait for the rest on the
main loop, a PROXY header that arrives alone does so too. So threads of their own shake hands
and read the head into the buffer of gunicorn's parser, which finds it there later. Clients
that shake hands and then say nothing, as browsers do in advance, go back to the poller, and
so do those who stop in the middle of a head.

When these threads are all busy and slots are free, a request is run unread, and the gate
looks at it then. Once requests have to wait that will not do: their class says who waits
and who is refused, and a health check must not wait at all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from ssl import SSLSocket, SSLWantReadError
from typing import Any

from gunicorn_admission.gthread.bytes_at import skip_proxy_header
from gunicorn_admission.gthread.job import Job
from gunicorn_admission.gthread.parking import is_silent

__all__ = ["Opening"]

THREADS = 4
_LONGEST = 512
_LARGEST = 8192


class Opening:
    """
    Reads the heads of requests.

    Args:
        opened: Called with a job and its head: ``None`` where it cannot be known (HTTP/2),
            ``b""`` when the client has left or took too long.
        silent: Called with a job on which nothing has come after the handshake; ``None``
            to wait for it all the same.
        more: Called with a job of which only a part has come, which lies in the parser's
            buffer; ``None`` to wait for the rest.
        seconds: How long a client may take for handshake and head.

    Thread safety: ``put`` is for the main loop; ``opened`` is called by the threads.
    """

    def __init__(
        self,
        opened: Callable[[Job, bytes | None], None],
        silent: Callable[[Job], None] | None,
        more: Callable[[Job], None] | None,
        seconds: float,
    ) -> None:
        self._opened = opened
        self._silent = silent
        self._more = more
        self._seconds = seconds
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._unfinished = 0
        for index in range(THREADS):
            threading.Thread(target=self._run, name=f"admission-open-{index}", daemon=True).start()

    @property
    def idle(self) -> bool:
        """Whether a thread is free for a job that is put now."""
        return self._unfinished < THREADS

    def put(self, job: Job) -> bool:
        """Queue a job; False when so many wait that it should be decided on unread."""
        with self._lock:
            if self._unfinished >= _LONGEST:
                return False
            self._unfinished += 1
        self._queue.put(job)
        return True

    def close(self) -> None:
        """Let the threads end once the queue is empty."""
        for _ in range(THREADS):
            self._queue.put(None)

    def _run(self) -> None:
        while True:
            job = self._queue.get()
            if job is None:
                return
            self._open(job)
            with self._lock:
                self._unfinished -= 1

    def _open(self, job: Job) -> None:
        head: bytes | None
        try:
            unreader = self._shake_hands(job.conn)
            if self._silent is not None and _is_waiting(job.conn, unreader):
                self._silent(job)
                return
            head = None if unreader is None else self._read(unreader)
        except SSLWantReadError:
            if self._more is not None:
                self._more(job)
            return
        except Exception:
            head = b""  # a failed handshake, a timeout: nobody is there to be answered
        self._opened(job, head)

    def _shake_hands(self, conn: Any) -> Any:
        """Prepare a connection as gunicorn does; what its parser reads from, if it has one."""
        conn.sock.setblocking(True)
        conn.init()
        sock = conn.sock
        if isinstance(sock, SSLSocket):
            sock.settimeout(self._seconds)
            sock.do_handshake()  # before 24 gunicorn leaves it to the first read
            sock.settimeout(None)
        return getattr(conn.parser, "unreader", None)

    def _read(self, unreader: Any) -> bytes:
        deadline = time.monotonic() + self._seconds
        head: bytes = unreader.buf.getvalue()
        if self._more is not None:
            unreader.sock.settimeout(0)
        try:
            while b"\r\n\r\n" not in skip_proxy_header(head) and len(head) < _LARGEST:
                data = unreader.chunk()
                if time.monotonic() > deadline:
                    return b""
                if not data:
                    break  # the client has ended; what it sent is for the parser to judge
                head += data
        finally:
            unreader.buf.seek(0)
            unreader.buf.truncate()
            unreader.buf.write(head)
        return head


def _is_waiting(conn: Any, unreader: Any) -> bool:
    """Whether nothing has come on an HTTP/1 connection since the handshake."""
    sock = conn.sock
    return (
        unreader is not None
        and isinstance(sock, SSLSocket)
        and not unreader.buf.getvalue()
        and not sock.pending()
        and is_silent(sock)
    )
