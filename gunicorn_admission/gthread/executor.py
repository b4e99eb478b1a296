"""
The waiting room: takes the place of gthread's thread pool.

gunicorn's main loop hands every readable connection to ``submit``. Here it is stamped,
classified from its first bytes and offered to the limiter. What is granted goes to a
thread; what must wait waits in the limiter and costs no thread; what is refused is
answered at once. A thread stands for a slot: the slot ends when gunicorn's ``handle``
returns, and the same thread then takes the next request that was granted by it.

Threads: ``submit`` runs on the main loop. Pool threads, two threads for exempt requests
and two that refuse through gunicorn's own code (the shed lane) are daemons, so that a
hung call cannot keep a worker alive that was told to quit. ``decided`` is called back by
whichever thread decided. The queues are ``SimpleQueue``; there is no lock of its own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from gunicorn_admission.classify import Classifier, RequestClass
from gunicorn_admission.core.policy import MILLISECOND
from gunicorn_admission.core.types import Priority, State
from gunicorn_admission.gthread.accepting import accept_in_batches
from gunicorn_admission.gthread.arrival import is_gone, waited_ns
from gunicorn_admission.gthread.bytes_at import Peek, skip_proxy_header
from gunicorn_admission.gthread.capabilities import Capabilities
from gunicorn_admission.gthread.done import NOTHING_MORE, Done
from gunicorn_admission.gthread.job import Job
from gunicorn_admission.gthread.lane import Lane
from gunicorn_admission.gthread.local import Local
from gunicorn_admission.gthread.parking import ReadTimeout, park
from gunicorn_admission.gthread.refusal import Refuser, has_buffered
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.settings import Settings

__all__ = ["AdmissionExecutor"]

_log = logging.getLogger("gunicorn_admission")
_GRANTED, _SHED = State.GRANTED, State.SHED
EXEMPT_THREADS = 2
# Whoever has just sent a request is still there; asking costs a system call.
_JUST_ARRIVED_NS = 2 * MILLISECOND
_STILL_REFUSING_NS = 100 * MILLISECOND


class AdmissionExecutor:
    """
    An executor for ``worker.tpool``.

    Args:
        worker: gunicorn's, initialised, its main loop not yet running.
        can: What it can do.
        limiter: Decides.
        classifier: Tells the class of a request by its first bytes.
        settings: Timeouts and switches.
        threads: Size of the pool.
        clock: Monotonic nanoseconds, the limiter's.
    """

    def __init__(
        self,
        worker: Any,
        can: Capabilities,
        limiter: Limiter,
        classifier: Classifier,
        settings: Settings,
        threads: int,
        clock: Callable[[], int],
    ) -> None:
        self._worker = worker
        self._can = can
        self._limiter = limiter
        self._classifier = classifier
        self._gone_check = settings.gone_check
        self._read_timeout = ReadTimeout(settings.read_timeout)
        self._peek = Peek()
        self._clock = clock
        self.local = Local()
        self._ready: SimpleQueue[Job | None] = SimpleQueue()
        self._exempt: SimpleQueue[Job | None] = SimpleQueue()
        self._refuser = Refuser(worker, can, settings.shed_status)
        self._lane = Lane(self, worker, settings)
        self._unknown = limiter.partition("(unparsed)")
        self._half_closed = not worker.cfg.is_ssl
        self._complained = False
        self._threads = threads
        self._refused_at_ns = 0
        limiter.each_round = self._look_for_stop
        if can.keepalived:
            accept_in_batches(worker, self._is_refusing)
        for index in range(threads):
            self._start(self._run, self._ready, f"admission-{index}")
        for index in range(EXEMPT_THREADS):
            self._start(self._run_exempt, self._exempt, f"admission-exempt-{index}")

    def _start(
        self, target: Callable[[SimpleQueue[Job | None]], None], queue: Any, name: str
    ) -> None:
        threading.Thread(target=target, args=(queue,), name=name, daemon=True).start()

    # -- on the main loop ------------------------------------------------------------

    def submit(self, handle: Callable[[Any], Any], conn: Any) -> Any:
        """Take a connection on which something has arrived; gunicorn's main loop calls it."""
        now_ns = self._clock()
        request_class: RequestClass | None = None
        looked = False
        if self._can.plain:
            data: bytes | None
            if has_buffered(conn):
                data = conn.parser.unreader.buf.getvalue()
            else:
                try:
                    data = self._peek.look(conn.sock)
                except OSError:
                    data = b""
                looked = not self._can.proxied
            if data:
                request_class = self._classify(data, conn)
            elif data is None:
                if self._can.parking:
                    if park(self._worker, conn):
                        return NOTHING_MORE
                elif self._worker.cfg.keepalive:
                    # A connection without a request is what gunicorn calls kept alive.
                    return self._finish_now(conn, True)
            else:
                return self._finish_now(conn, False)
        future: Any = Done()
        if not self._can.light_future:
            future = Future()
            future.set_running_or_notify_cancel()
        job = self._job(handle, conn, future, request_class, now_ns)
        if request_class is not None and request_class.exempt:
            self._read_timeout.set_once(conn)
            self._exempt.put(job)
            return future
        state = self._limiter.offer(job, now_ns)
        if (
            state is _SHED
            and looked
            and self._can.light_future
            and self._refuser.write_on_main_loop(job, self._peek)
        ):
            self._refused_at_ns = now_ns
            return NOTHING_MORE
        self._read_timeout.set_once(conn)
        if state is _GRANTED:
            self._ready.put(job)
        elif state is _SHED:
            self._refuse(job)
        return future

    def _job(
        self,
        handle: Callable[[Any], Any],
        conn: Any,
        future: Any,
        request_class: RequestClass | None,
        now_ns: int,
    ) -> Job:
        # A TCP address is a pair; the kernel tells nothing of Unix sockets.
        arrived_ns = now_ns - waited_ns(conn.sock) if type(conn.server) is tuple else now_ns
        partition, priority, deadline_ns = self._unknown, Priority.DEFAULT, None
        if request_class is not None:
            partition = self._limiter.partition(request_class.partition)
            priority = request_class.priority
            deadline_ns = request_class.policy.deadline_ns
            if deadline_ns is not None:
                deadline_ns += arrived_ns
        return Job(
            partition,
            priority,
            arrived_ns,
            deadline_ns,
            self._decided,
            handle,
            conn,
            future,
            request_class,
        )

    def _is_refusing(self) -> bool:
        return self._clock() - self._refused_at_ns < _STILL_REFUSING_NS

    def _classify(self, data: bytes, conn: Any) -> RequestClass | None:
        try:
            if self._can.proxied and conn.parser is None:
                data = skip_proxy_header(data)
            return self._classifier.classify_head(data)
        except Exception:
            self._complain("classifying a request failed; such requests count as default")
            return None

    def _finish_now(self, conn: Any, keep: bool) -> Any:
        """Return a future that has ended already, in the shape this gunicorn wants."""
        future: Any = Done() if self._can.light_future else Future()
        future.set_result(self._shape(conn, keep))
        return future

    def _shape(self, conn: Any, keep: bool) -> object:
        return (keep, conn) if self._can.pair_result else keep

    # -- in any thread ---------------------------------------------------------------

    def _decided(self, job: Job) -> None:
        """A job that had to wait was granted or refused."""
        if job.state is _GRANTED:
            self._ready.put(job)
        else:
            self._refuse(job)

    def _refuse(self, job: Job) -> None:
        answered = is_gone(job.conn.sock, self._half_closed) or self._refuser.write(job)
        if answered or not self._lane.put(job, self._clock()):
            self.close_job(job)

    def close_job(self, job: Job) -> None:
        """Let the main loop close the connection of a job."""
        job.future.set_result(self._shape(job.conn, False))

    # -- in the pool's threads -------------------------------------------------------

    def _run(self, queue: SimpleQueue[Job | None]) -> None:
        while True:
            job = queue.get()
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
            self.close_job(job)
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

    def settle(self, job: Job, result: object, error: BaseException | None) -> None:
        """
        Hand the result to the main loop; an error ends its connection and nothing else.

        It is one that no ``except Exception`` of gunicorn has caught, such as SystemExit.
        Before 24 gunicorn would leave the connection open for ever. Later it would raise it
        on its main loop, which ends the worker in the middle of its other requests, and
        the whole server where it is KeyboardInterrupt or ``SystemExit(3)``.
        """
        if error is None:
            job.future.set_result(result)
        else:
            _log.error("a request ended with %r; its connection is closed", error)
            self.close_job(job)

    def _run_exempt(self, queue: SimpleQueue[Job | None]) -> None:
        local = self.local
        local.exempt = True
        while True:
            job = queue.get()
            if job is None:
                return
            self._limiter.bypassed()
            result, error = None, None
            try:
                result = job.handle(job.conn)
            except BaseException as raised:
                error = raised
            self.settle(job, result, error)

    # -- the end ---------------------------------------------------------------------

    def _look_for_stop(self) -> None:
        """A worker that stops answers whom it keeps waiting rather than let them hang."""
        if not self._worker.alive:
            self._limiter.close()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end after what they run; waits for nothing, being daemons."""
        self._limiter.close()
        for _ in range(self._threads):
            self._ready.put(None)
        for _ in range(EXEMPT_THREADS):
            self._exempt.put(None)
        self._lane.close()

    def _complain(self, message: str) -> None:
        if not self._complained:
            self._complained = True
            _log.exception("%s; reported once", message)
