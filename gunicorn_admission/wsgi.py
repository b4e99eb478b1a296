"""
The gate: admission around a WSGI application, for any server.

A request that has to wait does so in its thread, so this helps only as long as threads
are left: limit + waiting + spare must not exceed the server's threads. Under gunicorn's
gthread worker use ``gunicorn_admission.hooks.install`` instead, which waits in front of
the threads.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from threading import get_ident
from typing import Any

from gunicorn_admission.answer import answer
from gunicorn_admission.classify import Classifier, RequestClass
from gunicorn_admission.classify.announce import subscribe
from gunicorn_admission.classify.request_start import RequestStart
from gunicorn_admission.core.policy import SECOND
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Outcome, Priority, Reason, State
from gunicorn_admission.exchange import Exchange, TimedInput
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.limiter.serving import limiter_for
from gunicorn_admission.observe import start_reporting
from gunicorn_admission.settings import Settings, load
from gunicorn_admission.status import Probes, Readiness

__all__ = ["AdmissionMiddleware", "Gate", "say_that_it_is_alone"]

_log = logging.getLogger("gunicorn_admission")
_GRANTED, _WAITING = State.GRANTED, State.WAITING
_NAMES = tuple(priority.name.lower() for priority in Priority)
#: Threads of a server that does not say how many it has (waitress and werkzeug do not).
DEFAULT_THREADS = 4


class Gate:
    """
    Lets requests of one application through, one permit each.

    Args:
        app: The WSGI application.
        limiter: Decides.
        classifier: Tells the class of a request.
        settings: Status of refusals, and how much of a refused body is read.

    Thread safety: a WSGI callable, so it may be called from any thread.
    """

    def __init__(
        self,
        app: Callable[..., Iterable[bytes]],
        limiter: Limiter,
        classifier: Classifier,
        settings: Settings,
    ) -> None:
        self.app = app
        self.limiter = limiter
        self.classifier = classifier
        self.settings = settings
        self.readiness = Readiness(limiter.statistics)
        self._request_start = RequestStart() if settings.trust_request_start else None

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Admit, wait or refuse, then run the application."""
        if "gunicorn_admission.decision" in environ:
            return self.app(environ, start_response)  # a gate further out has decided
        request_class = self.classify(environ)
        if request_class.exempt:
            return self.pass_exempt(environ, start_response)
        ticket = self.enter(request_class, environ)
        if ticket.state is not _GRANTED:
            return self.refuse(ticket, environ, start_response)
        return self.run(ticket, self.finish, environ, start_response)

    def finish(self, ticket: Ticket, outcome: Outcome) -> None:
        """End an admitted request."""
        self.limiter.finish(ticket, outcome)

    def classify(self, environ: dict[str, Any]) -> RequestClass:
        """Return the class of a parsed request."""
        return self.classifier.classify(environ["REQUEST_METHOD"], environ.get("PATH_INFO", ""))

    def enter(self, request_class: RequestClass, environ: Mapping[str, Any]) -> Ticket:
        """Offer a request to the limiter and wait in this thread for the decision."""
        now_ns = time.monotonic_ns()
        arrived_ns = now_ns - self.waited_in_front_ns(environ)
        deadline_ns = request_class.policy.deadline_ns
        ticket = Ticket(
            self.limiter.partition(request_class.partition),
            request_class.priority,
            arrived_ns,
            self.patience_ns(),
            None if deadline_ns is None else arrived_ns + deadline_ns,
        )
        self.limiter.offer(ticket, now_ns)
        if ticket.state is _WAITING:
            self.limiter.wait(ticket)
        return ticket

    def patience_ns(self) -> int | None:
        """How long a request may wait in this thread; ``None`` for as long as usual."""
        return None

    def waited_in_front_ns(self, environ: Mapping[str, Any]) -> int:
        """How long a request was under way before it came here; 0 unless trusted proxies say."""
        if self._request_start is None:
            return 0
        return int(self._request_start.age(environ) * SECOND)

    @property
    def readiness(self) -> Readiness:
        """Whether to send requests here; whoever knows of siblings sets another."""
        return self._readiness

    @readiness.setter
    def readiness(self, readiness: Readiness) -> None:
        self._readiness = readiness
        path = self.settings.status_path
        self._probes = None if path is None else Probes(path, readiness)

    def pass_exempt(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Count and run an exempt request."""
        self.limiter.bypassed()
        return self.run_exempt(environ, start_response)

    def run_exempt(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Run an exempt request, or answer it where it is for the status path."""
        environ["gunicorn_admission.decision"] = "exempt"
        if self._probes is not None and self._probes.covers(environ.get("PATH_INFO", "")):
            return self._probes(environ, start_response)
        environ["gunicorn_admission.ready"] = self._readiness
        return self.app(environ, start_response)

    def run(
        self,
        ticket: Ticket,
        end: Callable[[Ticket, Outcome], None],
        environ: dict[str, Any],
        start_response: Callable[..., Any],
    ) -> Iterable[bytes]:
        """Run an admitted request."""
        ticket.thread = get_ident()
        policy = ticket.partition.policy
        first = self.limiter.detach if policy.release_on_first_byte else None
        exchange = Exchange(ticket, end, first)
        environ["gunicorn_admission.token"] = exchange
        environ["gunicorn_admission.gate"] = self  # for frameworks that learn more later
        environ["gunicorn_admission.decision"] = "admitted"
        environ["gunicorn_admission.priority"] = _NAMES[ticket.priority]
        environ["gunicorn_admission.partition"] = ticket.partition.name
        environ["gunicorn_admission.queue_delay"] = ticket.delay_ns / 1e9
        if environ.get("CONTENT_LENGTH", "0") not in ("", "0") or (
            "HTTP_TRANSFER_ENCODING" in environ
        ):
            environ["wsgi.input"] = TimedInput(environ["wsgi.input"], ticket)
        return exchange.run(self.app, environ, start_response)

    def refuse(
        self, ticket: Ticket, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer that the request is refused."""
        reason = ticket.reason or Reason.OVERLOADED
        environ["gunicorn_admission.decision"] = "shed"
        environ["gunicorn_admission.reason"] = reason.value
        self.drain(environ)
        refusal = answer(reason, ticket.retry_after_ns, self.settings.shed_status)
        start_response(refusal.status, refusal.headers)
        return [b"" if environ["REQUEST_METHOD"] == "HEAD" else refusal.body]

    def drain(self, environ: dict[str, Any]) -> bool:
        """
        Read a refused body within bounds; whether all of it was read.

        A client that is still sending when the server closes gets a reset, which may
        destroy the answer before it is read (RFC 9112 section 9.6).
        """
        chunked = "HTTP_TRANSFER_ENCODING" in environ
        try:
            length = int(environ.get("CONTENT_LENGTH") or 0)
        except ValueError:
            return False
        if not chunked and (length <= 0 or length > self.settings.drain_bytes):
            return length <= 0
        left = self.settings.drain_bytes if chunked else length
        deadline = time.monotonic() + self.settings.drain_timeout
        try:
            while left > 0 and time.monotonic() < deadline:
                data = environ["wsgi.input"].read(min(left, 65536))
                if not data:
                    return True
                left -= len(data)
        except Exception:
            return False  # a broken body is the client's affair; the answer is sent anyway
        return left == 0 and not chunked


def say_that_it_is_alone(settings: Settings) -> None:
    """Warn of settings that need a master which shares a page with its workers."""
    if settings.node_limit is None and not settings.node_classes and settings.recycle_after is None:
        return
    _log.warning(
        "admission: node_limit and node_cap hold for this process alone, and recycle_after does "
        "nothing: no master shares a page with it. Under gunicorn call install(globals()) in its "
        "configuration"
    )


class AdmissionMiddleware(Gate):
    """
    Admission for a WSGI application on any threaded server.

    Args:
        app: The WSGI application.
        settings: Fields of :class:`~gunicorn_admission.settings.Settings`; ``threads`` should
            be the server's number of threads (default 4). Environment and TOML are read too.

    Raises:
        ConfigError: A setting cannot work, such as a limit that leaves no thread to refuse.

    Example:
        ``serve(AdmissionMiddleware(app, threads=8, routes={"/payments": "high"}), threads=8)``
    """

    def __init__(self, app: Callable[..., Iterable[bytes]], **settings: Any) -> None:
        loaded, _ = load(settings, environ=os.environ)
        resolved = loaded.derive(loaded.threads or DEFAULT_THREADS, waiting_holds_thread=True)
        if resolved.off_reason is not None:
            _log.warning("admission: off: %s", resolved.off_reason)
        say_that_it_is_alone(loaded)
        limiter = limiter_for(resolved)
        super().__init__(app, limiter, Classifier(loaded), loaded)
        subscribe(self.classifier, limiter)
        self._reports_in: int | None = None

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Admit, wait or refuse, then run the application."""
        if self._reports_in != os.getpid():
            # At the first request of a process: threads do not survive a fork.
            self._reports_in = os.getpid()
            start_reporting(self.limiter, self.settings)
        return super().__call__(environ, start_response)
