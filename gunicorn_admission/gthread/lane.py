"""
The shed lane: refusals that need gunicorn's own code.

TLS, PROXY headers, chunked or large bodies, ``Expect``: two extra threads run gunicorn's
``handle`` for these with a mark that lets the gate answer 503 at once, so that the
parser, the access log and statsd work as ever. The lane is bounded by age and length; it
would be a second unbounded queue otherwise. What is too old is closed without an answer.
"""

from __future__ import annotations

import socket
import threading
import time
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from gunicorn.util import close as close_socket

from gunicorn_admission.core.policy import SECOND
from gunicorn_admission.gthread.job import Job
from gunicorn_admission.gthread.parking import ReadTimeout
from gunicorn_admission.settings import Settings

if TYPE_CHECKING:
    from gunicorn_admission.gthread.executor import AdmissionExecutor

__all__ = ["LANE_THREADS", "Lane"]

LANE_THREADS = 2
_OLDEST_NS = 2 * SECOND
_LONGEST = 512


class Lane:
    """
    Refuses jobs through gunicorn, in threads of its own.

    Args:
        executor: Whose jobs they are.
        worker: gunicorn's; its count of requests leaves refusals out.
        settings: ``read_timeout`` and ``drain_timeout`` bound how long a client may hold one.
    """

    def __init__(self, executor: AdmissionExecutor, worker: Any, settings: Settings) -> None:
        self._executor = executor
        self._worker = worker
        self._drain_timeout = settings.drain_timeout or 1.0
        self._drain = ReadTimeout(self._drain_timeout)
        self._read = ReadTimeout(settings.read_timeout)
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        for index in range(LANE_THREADS):
            threading.Thread(target=self._run, name=f"admission-lane-{index}", daemon=True).start()

    def put(self, job: Job, now_ns: int) -> bool:
        """Queue a job; False when there are so many that closing is kinder."""
        if self._queue.qsize() >= _LONGEST:
            return False
        job.lane_ns = now_ns
        self._queue.put(job)
        return True

    def close(self) -> None:
        """Let the threads end once the queue is empty."""
        for _ in range(LANE_THREADS):
            self._queue.put(None)

    def _run(self) -> None:
        local = self._executor.local
        local.lane = True
        while True:
            job = self._queue.get()
            if job is None:
                return
            if time.monotonic_ns() - job.lane_ns > _OLDEST_NS:
                self._executor.close_job(job)
                continue
            self._drain.set(job.conn.sock)
            local.job, local.unread = job, False
            result: object = None
            error: BaseException | None = None
            # Taken back before gunicorn counts it: a storm of refusals would otherwise use
            # up max_requests and recycle the workers again and again (#2602).
            self._worker.nr -= 1
            try:
                result = job.handle(job.conn)
            except BaseException as raised:
                error = raised
            if local.job is not None:
                self._worker.nr += 1  # it never got so far as to be counted
            local.job = None
            if local.unread:
                self._linger(job)
                self._executor.close_job(job)
            else:
                self._read.set(job.conn.sock)
                self._executor.settle(job, result, error)

    def _linger(self, job: Job) -> None:
        """
        Half-close and read on for a moment, so that no reset overtakes the answer.

        RFC 9112 section 9.6. Done here because gunicorn does it on its main loop.
        """
        sock = job.conn.sock
        deadline = time.monotonic() + self._drain_timeout
        try:
            sock.shutdown(socket.SHUT_WR)
            while time.monotonic() < deadline and sock.recv(65536):
                pass
        except OSError:
            pass
        job.conn.close = lambda graceful=False: close_socket(sock)
