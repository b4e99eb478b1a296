"""The gate inside gunicorn's workers; on a thread of the executor it has little left to decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from gunicorn_admission.classify import Classifier, RequestClass
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Outcome, Priority, State
from gunicorn_admission.gthread.arrival import is_gone
from gunicorn_admission.gthread.job import Job
from gunicorn_admission.gthread.local import Local
from gunicorn_admission.gthread.peers import TrustedPeers
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.settings import Settings
from gunicorn_admission.wsgi import Gate

__all__ = ["ThreadGate", "WorkerGate"]

_SHED = State.SHED
#: Seconds that an HTTP/2 connection has to send its next request, where its thread is needed
#: by others, or it was refused; and where nobody else asks.
_MOMENT, _WHILE = 0.05, 1.0


class WorkerGate(Gate):
    """
    The gate in a worker whose requests wait in threads or greenlets of their own.

    Args:
        worker: gunicorn's; ``app`` is its ``wsgi``.
        limiter, classifier, settings: See :class:`~gunicorn_admission.wsgi.Gate`.
    """

    def __init__(
        self, worker: Any, limiter: Limiter, classifier: Classifier, settings: Settings
    ) -> None:
        super().__init__(worker.wsgi, limiter, classifier, settings)
        self._worker = worker
        self._peers = TrustedPeers(worker.cfg.forwarded_allow_ips)

    def waited_in_front_ns(self, environ: Mapping[str, Any]) -> int:
        """As the ordinary gate, from peers whom gunicorn trusts with such headers."""
        if not self.settings.trust_request_start:
            return 0
        sock = environ.get("gunicorn.socket") or environ.get("gunicorn.sock")  # with pywsgi
        return super().waited_in_front_ns(environ) if self._peers.trusts(sock) else 0

    def refuse(
        self, ticket: Ticket, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer that the request is refused, which does not count towards ``max_requests``."""
        self._worker.nr -= 1
        return super().refuse(ticket, environ, start_response)


class ThreadGate(WorkerGate):
    """
    Takes the job that the executor left on this thread.

    A request whose class only the parser could tell (TLS, PROXY, odd request lines) is
    re-classified here. Requests without a job, which are later ones on an HTTP/2
    connection, go through the ordinary gate.

    Args:
        worker: gunicorn's; ``app`` is its ``wsgi``.
        limiter, classifier, settings: See :class:`~gunicorn_admission.wsgi.Gate`.
        local: Shared with the executor.
        wanted: Whether others wait for a thread now.
    """

    def __init__(
        self,
        worker: Any,
        limiter: Limiter,
        classifier: Classifier,
        settings: Settings,
        local: Local,
        wanted: Callable[[], bool],
    ) -> None:
        super().__init__(worker, limiter, classifier, settings)
        self._wanted = wanted
        self._local = local
        self._half_closed = not worker.cfg.is_ssl  # read once: gunicorn computes it each time

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Run or refuse the job of this thread."""
        local = self._local
        job = local.job
        if job is None:
            if local.exempt:
                return self.run_exempt(environ, start_response)
            return super().__call__(environ, start_response)
        local.job = None
        http2 = getattr(job.conn, "is_http2", False)
        if http2:
            local.http2 = job.conn.parser
            _hurry(job.conn.parser, _MOMENT if local.lane else _WHILE)
        if job.request_class is None:
            job.request_class = request_class = self.classify(environ)
            if request_class.exempt:
                if job.state is not _SHED:
                    self.limiter.finish(job, Outcome.IGNORE)
                else:
                    self._worker.nr += 1  # not refused after all
                return self.pass_exempt(environ, start_response)
            if job.state is _SHED:
                if request_class.priority is Priority.HIGH:
                    return self._offer_again(job, request_class, environ, start_response)
            elif not self.limiter.reclassify(
                job, request_class.partition, request_class.priority, force=False
            ):
                # A slot for anybody, but this class holds all that it may.
                self.limiter.finish(job, Outcome.IGNORE)
                return self._offer_again(job, request_class, environ, start_response)
        if job.state is _SHED:
            return self.refuse(job, environ, start_response)
        environ["gunicorn_admission.client_gone"] = partial(
            is_gone, job.conn.sock, self._half_closed
        )
        return self.run(job, self.finish if http2 else _note, environ, start_response)

    def patience_ns(self) -> int | None:
        """Nobody waits in a thread that refuses; a connection there may send more requests."""
        return 0 if self._local.lane else None

    def finish(self, ticket: Ticket, outcome: Outcome) -> None:
        """End a request of an HTTP/2 connection, which keeps the thread and may keep it idle."""
        super().finish(ticket, outcome)
        _hurry(self._local.http2, _MOMENT if self._wanted() else _WHILE)

    def refuse(
        self, ticket: Ticket, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """As in other workers; a job is refused in the lane, which does not let it count."""
        if isinstance(ticket, Job):
            self._worker.nr += 1
        return super().refuse(ticket, environ, start_response)

    def _offer_again(
        self,
        job: Job,
        request_class: RequestClass,
        environ: dict[str, Any],
        start_response: Callable[..., Any],
    ) -> Iterable[bytes]:
        """Decide once more, now that the class is known: it runs here at once or not at all."""
        if self._local.lane:
            self._worker.nr += 1  # it counts like any other, unless it is refused again
        ticket = Ticket(
            self.limiter.partition(request_class.partition),
            request_class.priority,
            job.arrived_ns,
            0,
        )
        self.limiter.offer(ticket, job.arrived_ns)
        if ticket.state is _SHED:
            return self.refuse(ticket, environ, start_response)
        return self.run(ticket, self.limiter.finish, environ, start_response)

    def drain(self, environ: dict[str, Any]) -> bool:
        """As the ordinary gate; remembers for the lane what was left unread."""
        drained = super().drain(environ)
        self._local.unread = not drained
        return drained


def _hurry(connection: Any, seconds: float) -> None:
    """Let an HTTP/2 connection give up its thread once idle for so long (gunicorn 27)."""
    if hasattr(connection, "idle_timeout"):
        connection.idle_timeout = min(connection.idle_timeout or seconds, seconds)


def _note(job: Ticket, outcome: Outcome) -> None:
    """The slot ends with the thread's work on the connection; only the outcome is known now."""
    if isinstance(job, Job):
        job.outcome = outcome
