"""
The threads that run requests: the pool's, and two for requests that are exempt.

A thread stands for a slot: the slot ends when gunicorn's ``handle`` returns, and the same
thread then takes the next request that was granted by it. All are daemons, so that a hung
call cannot keep a worker alive that was told to quit.
"""

from __future__ import annotations

import logging
import threading
from queue import SimpleQueue

from gunicorn_admission.core.policy import MILLISECOND
from gunicorn_admission.core.types import State
from gunicorn_admission.gthread.arrival import is_gone
from gunicorn_admission.gthread.done import Results
from gunicorn_admission.gthread.job import Job
from gunicorn_admission.gthread.local import Local
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.settings import Settings

__all__ = ["Pool"]

_log = logging.getLogger("gunicorn_admission")
_GRANTED = State.GRANTED
EXEMPT_THREADS = 2
# Whoever has just sent a request is still there; asking costs a system call.
_JUST_ARRIVED_NS = 2 * MILLISECOND


class Pool:
    """
    Runs jobs by gunicorn's ``handle``.

    Args:
        limiter: Whose slots they hold.
        results: Tells the main loop.
        settings: Whether to look for clients that have left.
        half_closed: What counts as such; see :func:`~gunicorn_admission.gthread.arrival.is_gone`.
        threads: Number of threads.

    Attributes:
        local: What its threads tell the gate.

    Thread safety: all methods may be called from any thread.
    """

    def __init__(
        self,
        limiter: Limiter,
        results: Results,
        settings: Settings,
        half_closed: bool,
        threads: int,
    ) -> None:
        self._limiter = limiter
        self._results = results
        self._gone_check = settings.gone_check
        self._half_closed = half_closed
        self._threads = threads
        self.local = Local()
        self._ready: SimpleQueue[Job | None] = SimpleQueue()
        self._exempt: SimpleQueue[Job | None] = SimpleQueue()
        for number in range(threads):
            threading.Thread(target=self._run, name=f"admission-{number}", daemon=True).start()
        for number in range(EXEMPT_THREADS):
            name = f"admission-exempt-{number}"
            threading.Thread(target=self._run_exempt, name=name, daemon=True).start()
        self.put = self._ready.put
        self.put_exempt = self._exempt.put

    def close(self) -> None:
        """Let the threads end after what they run; waits for nothing."""
        for _ in range(self._threads):
            self._ready.put(None)
        for _ in range(EXEMPT_THREADS):
            self._exempt.put(None)

    @property
    def wanted(self) -> bool:
        """Whether a request that may run waits for a thread."""
        return not self._ready.empty()

    def settle(self, job: Job, result: object, error: BaseException | None) -> None:
        """
        Hand a result to the main loop; an error ends its connection and nothing else.

        It is one that no ``except Exception`` of gunicorn has caught, such as SystemExit.
        Before 24 gunicorn would leave the connection open for ever. Later it would raise it
        on its main loop, which ends the worker in the middle of its other requests, and
        the whole server where it is KeyboardInterrupt or ``SystemExit(3)``.
        """
        if error is None:
            job.future.set_result(result)
        else:
            _log.error("a request ended with %r; its connection is closed", error)
            self._results.close(job)

    def _run(self) -> None:
        while True:
            job = self._ready.get()
            if job is None:
                return
            while job is not None:
                job = self._serve(job)

    def _serve(self, job: Job) -> Job | None:
        """Run one granted job; returns the next one that its end has made room for."""
        if (
            self._gone_check
            and job.delay_ns > _JUST_ARRIVED_NS
            and is_gone(job.conn.sock, self._half_closed)
        ):
            self._limiter.abandon(job)
            self._results.close(job)
            return None
        local = self.local
        local.job = job
        error: BaseException | None = None
        result: object = None
        try:
            result = job.handle(job.conn)
        except BaseException as raised:
            error = raised
        local.job = None
        # Not granted any more: the gate found it exempt, or ended it with its HTTP/2 stream.
        following = None
        if job.state is _GRANTED:
            following = self._limiter.finish_and_take(job, job.outcome)
        self.settle(job, result, error)
        return following if isinstance(following, Job) else None

    def _run_exempt(self) -> None:
        self.local.exempt = True
        while True:
            job = self._exempt.get()
            if job is None:
                return
            self._limiter.bypassed()
            result, error = None, None
            try:
                result = job.handle(job.conn)
            except BaseException as raised:
                error = raised
            self.settle(job, result, error)
