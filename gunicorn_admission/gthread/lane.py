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
from typing import Any

from gunicorn.util import close as close_socket

from gunicorn_admission.core.policy import SECOND
from gunicorn_admission.gthread.done import Results
from gunicorn_admission.gthread.job import Job
from gunicorn_admission.gthread.pool import Pool
from gunicorn_admission.gthread.read_timeout import read_timeout
from gunicorn_admission.settings import Settings

__all__ = ["LANE_THREADS", "Lane"]

LANE_THREADS = 2
_OLDEST_NS = 2 * SECOND
_LONGEST = 512


class Lane:
    """
    Refuses jobs through gunicorn, in threads of its own.

    Args:
        pool: Refused jobs are settled like those that it runs.
        results: Tells the main loop.
        worker: gunicorn's; its count of requests leaves refusals out.
        settings: ``read_timeout`` and ``drain_timeout`` bound how long a client may hold one.
    """

    def __init__(self, pool: Pool, results: Results, worker: Any, settings: Settings) -> None:
        self._pool = pool
        self._results = results
        self._worker = worker
        self._drain_timeout = settings.drain_timeout or 1.0
        tls = bool(worker.cfg.is_ssl)
        self._drain = read_timeout(self._drain_timeout, tls)
        self._read = read_timeout(settings.read_timeout, tls)
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
        local = self._pool.local
        local.lane = True
        while True:
            job = self._queue.get()
            if job is None:
                return
            if time.monotonic_ns() - job.lane_ns > _OLDEST_NS:
                self._results.close(job)
                continue
            self._drain.set(job.conn)
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
                self._results.close(job)
            else:
                self._read.set(job.conn)
                self._pool.settle(job, result, error)

    def _linger(self, job: Job) -> None:
        """
        Half-close and read on for a moment, so that no reset overtakes the answer.

        RFC 9112 section 9.6. Done here because gunicorn does it on its main loop.
        """
        sock = job.conn.sock
        deadline = time.monotonic() + self._drain_timeout
        try:
            sock.shutdown(socket.SHUT_WR)
            while (left := deadline - time.monotonic()) > 0:
                sock.settimeout(left)
                if not sock.recv(65536):
                    break
        except OSError:
            pass
        job.conn.close = lambda graceful=False: close_socket(sock)
