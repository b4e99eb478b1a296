"""
Finding out what a request is before it is decided on, where a look is not enough.

TLS hides the request line, and a PROXY header may arrive alone. While slots are free that
costs nothing: the request runs, and the gate looks at it then. Once requests have to wait,
their class says who waits and who is refused, and a health check must not wait at all. So
threads of their own shake hands and read the head into the buffer of gunicorn's parser,
which finds it there later.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from gunicorn_admission.gthread.bytes_at import skip_proxy_header
from gunicorn_admission.gthread.job import Job

__all__ = ["Opening"]

THREADS = 4
_LONGEST = 512
_LARGEST = 8192


class Opening:
    """
    Reads the heads of requests.

    Args:
        opened: Called with a job and its head: ``None`` where it cannot be known (HTTP/2),
            ``b""`` when the client has left or said nothing in time.
        seconds: How long a client may take for handshake and head.

    Thread safety: ``put`` is for the main loop; ``opened`` is called by the threads.
    """

    def __init__(self, opened: Callable[[Job, bytes | None], None], seconds: float) -> None:
        self._opened = opened
        self._seconds = seconds
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        for index in range(THREADS):
            threading.Thread(target=self._run, name=f"admission-open-{index}", daemon=True).start()

    def put(self, job: Job) -> bool:
        """Queue a job; False when so many wait that it should be decided on unread."""
        if self._queue.qsize() >= _LONGEST:
            return False
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
            try:
                head = self._read(job.conn)
            except Exception:
                head = b""  # a failed handshake, a timeout: nobody is there to be answered
            self._opened(job, head)

    def _read(self, conn: Any) -> bytes | None:
        deadline = time.monotonic() + self._seconds
        conn.sock.setblocking(True)
        conn.init()
        unreader = getattr(conn.parser, "unreader", None)
        if unreader is None:
            return None
        head: bytes = unreader.buf.getvalue()
        while b"\r\n\r\n" not in skip_proxy_header(head) and len(head) < _LARGEST:
            data = unreader.chunk()
            if not data or time.monotonic() > deadline:
                return b""
            head += data
        unreader.buf.seek(0)
        unreader.buf.truncate()
        unreader.buf.write(head)
        return head
