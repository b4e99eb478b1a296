"""
The waiting room: takes the place of gthread's thread pool.

gunicorn's main loop hands every readable connection to ``submit``. Here it is stamped,
classified from its first bytes and offered to the limiter. What is granted goes to a
thread; what must wait waits in the limiter and costs no thread; what is refused is
answered at once.

Threads: ``submit`` runs on the main loop. ``_decided`` is called back by whichever thread
decided, ``_opened`` by those that read heads behind TLS. ``pool.py`` runs what is
granted, ``lane.py`` refuses what cannot be refused right here. The queues between them are
``SimpleQueue``; there is no lock of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from ssl import SSLSocket
from typing import Any

from gunicorn_admission.classify import Classifier, RequestClass
from gunicorn_admission.core.policy import MILLISECOND
from gunicorn_admission.core.types import State
from gunicorn_admission.gthread.accept_gate import AcceptGate
from gunicorn_admission.gthread.accepting import accept_in_batches
from gunicorn_admission.gthread.arrival import is_gone, waited_ns
from gunicorn_admission.gthread.bytes_at import (
    Peek,
    is_fresh,
    proxy_header_size,
    skip_proxy_header,
)
from gunicorn_admission.gthread.capabilities import Capabilities
from gunicorn_admission.gthread.done import NOTHING_MORE, Results
from gunicorn_admission.gthread.job import Job
from gunicorn_admission.gthread.lane import Lane
from gunicorn_admission.gthread.linger import Linger, lingers
from gunicorn_admission.gthread.main_loop import MainLoop
from gunicorn_admission.gthread.opening import Opening
from gunicorn_admission.gthread.parking import Parking, is_silent
from gunicorn_admission.gthread.pool import Pool
from gunicorn_admission.gthread.read_timeout import read_timeout
from gunicorn_admission.gthread.refusal import Refuser, has_buffered
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.settings import Settings

__all__ = ["AdmissionExecutor"]

_log = logging.getLogger("gunicorn_admission")
_GRANTED, _SHED = State.GRANTED, State.SHED
_STILL_REFUSING_NS = 100 * MILLISECOND
_UNREADABLE = b"?"


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

    Attributes:
        local: What its threads tell the gate.
        wanted: Whether a request that may run waits for a thread.
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
        self._clock = clock
        self._tls = tls = bool(worker.cfg.is_ssl)
        self._half_closed = not tls
        self._read_timeout = read_timeout(settings.read_timeout, tls)
        self._peek = Peek()
        self._results = Results(can)
        self._pool = Pool(limiter, self._results, settings, self._half_closed, threads)
        self.local = self._pool.local
        self._refuser = Refuser(worker, can, settings.shed_status)
        self._lane = Lane(self._pool, self._results, worker, settings)
        self._opening: Opening | None = None
        if tls or (can.proxied and not can.main_loop):
            silent = self._results.keep if worker.cfg.keepalive else None
            more = self._begun if tls and can.main_loop else None
            self._opening = Opening(self._opened, silent, more, settings.read_timeout)
        self._unknown = limiter.partition("(unparsed)")
        self._complained = False
        self._refused_at_ns = 0
        self._parking: Parking | None = None
        self._linger: Linger | None = None
        if can.main_loop:
            self._join(worker, settings)

    def _join(self, worker: Any, settings: Settings) -> None:
        """Take part in the main loop, where this gunicorn lets us."""
        loop = MainLoop(worker)
        accept_in_batches(worker, self._is_refusing, self._turn_away)
        self._parking = Parking(worker, loop, settings.read_timeout)
        self._limiter.reading = self._parking.__len__
        if lingers():
            self._linger = Linger(worker, loop)
        if self._can.siblings:
            AcceptGate(worker, lambda: self._limiter.crowded)

    @property
    def wanted(self) -> bool:
        return self._pool.wanted

    # -- on the main loop ------------------------------------------------------------

    def submit(self, handle: Callable[[Any], Any], conn: Any) -> Any:
        """Take a connection on which something has arrived; gunicorn's main loop calls it."""
        now_ns = self._clock()
        data = self._first_bytes(conn)
        if data == b"":
            return self._results.ended(conn, False)
        # A TCP address is a pair; the kernel tells nothing of Unix sockets.
        tcp = type(conn.server) is tuple
        if data is None or self._parking is not None:
            parked = self._park(conn, data)
            if parked is not None:
                return parked
        arrived_ns = now_ns - waited_ns(conn.sock) if tcp else now_ns
        future = self._results.future()
        job = Job(self._unknown, arrived_ns, self._decided, handle, conn, future)
        if data and self._can.plain:
            self._classify(job, data)
        request_class = job.request_class
        if (
            request_class is None
            and self._opening is not None
            and (self._opening.idle or self._limiter.full)
        ):
            self._bound(conn)
            if self._opening.put(job):
                return future
        if request_class is not None and request_class.exempt:
            self._bound(conn)
            self._pool.put_exempt(job)
            return future
        state = self._limiter.offer(job, now_ns)
        if (
            state is _SHED
            and self._can.light_future
            and self._refuser.write_on_main_loop(job, self._peek)
        ):
            self._refused_at_ns = now_ns
            return NOTHING_MORE
        self._bound(conn)
        self._carry_out(job, state)
        return future

    def _bound(self, conn: Any) -> None:
        """Bound how long threads and main loop may have to wait for this client."""
        self._read_timeout.set_once(conn)
        if self._linger is not None:
            self._linger.take_over(conn)

    def _first_bytes(self, conn: Any) -> bytes | None:
        """What a request starts with; empty when the client has left, ``None`` in silence."""
        self._peek.forget()
        if has_buffered(conn):
            buffered: bytes = conn.parser.unreader.buf.getvalue()
            return buffered
        if not (self._can.plain or (self._tls and not isinstance(conn.sock, SSLSocket))):
            return None if is_silent(conn.sock) else _UNREADABLE
        try:
            return self._peek.look(conn.sock)
        except OSError:
            return b""

    def _park(self, conn: Any, data: bytes | None) -> Any:
        """Leave to the poller what has not arrived; ``None`` when it is for a thread."""
        if self._parking is not None:
            length = self._peek.length
            if data is None:
                missing = 1
            elif not length:
                return None  # not looked at
            elif self._tls:
                missing = self._peek.missing_of_hello()
            else:
                start = proxy_header_size(data) if self._is_proxied(conn) else 0
                missing = length + 1 if start is None else self._peek.missing(start)
            if missing and self._parking.park(conn, length, missing):
                return NOTHING_MORE
            self._parking.complete(conn)
        elif data is None and self._worker.cfg.keepalive:
            # A connection without a request is what gunicorn calls kept alive.
            return self._results.ended(conn, True)
        return None

    def _is_proxied(self, conn: Any) -> bool:
        """Whether a connection may begin with a PROXY protocol header now."""
        return self._can.proxied and is_fresh(conn)

    def _turn_away(self, sock: Any) -> bool:
        """Refuse what has just been accepted, in the plainest case of an overload."""
        if not self._can.plain or self._can.proxied:
            return False
        try:
            data = self._peek.look(sock)
        except OSError:
            return False
        found = self._classifier.classify_head(data) if data else None
        if found is None or found.exempt:
            return False
        now_ns = self._clock()
        refused = self._refuser.turn_away(
            sock,
            self._peek,
            lambda: self._limiter.turn_away(found.partition, found.priority, now_ns),
        )
        if refused:
            self._refused_at_ns = now_ns
        return refused

    def _is_refusing(self) -> bool:
        return self._clock() - self._refused_at_ns < _STILL_REFUSING_NS

    # -- in any thread ---------------------------------------------------------------

    def _classify(self, job: Job, head: bytes) -> None:
        try:
            if self._is_proxied(job.conn):
                head = skip_proxy_header(head)
            found = self._classifier.classify_head(head)
            if found is not None:
                job.become(found, self._limiter.partition(found.partition))
        except Exception:
            if not self._complained:
                self._complained = True
                _log.exception(
                    "classifying a request failed; such requests count as default; reported once"
                )

    def _begun(self, job: Job) -> None:
        """Only a part of a head has come; its job is made anew with the rest."""
        if self._parking is not None:
            self._worker.method_queue.defer(self._parking.park_begun, job.conn)

    def _opened(self, job: Job, head: bytes | None) -> None:
        """A job whose head had to be read first can be decided on."""
        if head == b"":
            self._results.close(job)
            return
        if self._parking is not None:
            self._parking.complete(job.conn)
        if head is not None:
            self._classify(job, head)
        request_class: RequestClass | None = job.request_class
        if request_class is not None and request_class.exempt:
            self._pool.put_exempt(job)
        else:
            self._carry_out(job, self._limiter.offer(job, self._clock()))

    def _decided(self, job: Job) -> None:
        """A job that had to wait was granted or refused."""
        self._carry_out(job, job.state)

    def _carry_out(self, job: Job, state: State) -> None:
        if state is _GRANTED:
            self._pool.put(job)
        elif state is _SHED:
            answered = is_gone(job.conn.sock, self._half_closed) or self._refuser.write(job)
            if answered or not self._lane.put(job, self._clock()):
                self._results.close(job)

    # -- the end ---------------------------------------------------------------------

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end after what they run; waits for nothing, being daemons."""
        self._limiter.close()
        self._pool.close()
        self._lane.close()
        if self._opening is not None:
            self._opening.close()
