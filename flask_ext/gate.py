"""
The way into an application: ``app.wsgi_app``, and the gate behind it where no other stands.

Under gunicorn with admission installed, requests have been decided on before they come
here. Under other servers this is where they are. Nothing is made before the first request
of a process, so a fork inherits nothing.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final

from flask import Flask, Response

from flask_ext.signals import request_shed, send
from gunicorn_admission.classify import Classifier
from gunicorn_admission.classify.announce import give
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.limiter.serving import limiter_for
from gunicorn_admission.observe import Reporter
from gunicorn_admission.settings import Settings
from gunicorn_admission.settings.rules import RouteRule
from gunicorn_admission.wsgi import Gate, say_that_it_is_alone

__all__ = ["AppGate", "WSGIApp", "note_complete", "open_gate"]

WSGIApp = Callable[..., Iterable[bytes]]

_log = logging.getLogger("gunicorn_admission")
_COMPLETE: Final = "gunicorn_admission.complete"
_SMALL: Final = 65536
#: Threads of servers that name themselves but not their threads. Werkzeug's development
#: server makes one for each connection; waitress has 4 unless told otherwise.
_THREADS: Final = {"werkzeug": 64, "waitress": 4}


class AppGate(Gate):
    """
    A gate that knows its Flask application.

    Args:
        app: The application; refusals are signalled in its name.
        wsgi_app: What is called.
        limiter, classifier, settings: See :class:`~gunicorn_admission.wsgi.Gate`.
    """

    def __init__(
        self,
        app: Flask,
        wsgi_app: WSGIApp,
        limiter: Limiter,
        classifier: Classifier,
        settings: Settings,
    ) -> None:
        super().__init__(self.serve, limiter, classifier, settings)
        self._flask = app
        self._wsgi_app = wsgi_app
        self.reporter: Reporter | None = None

    def serve(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """
        Run the application, and see to it that the slot ends even where nobody closes.

        Servers close what they are given; Flask's test client leaves it to the test.
        """
        result = self._wsgi_app(environ, start_response)
        exchange = environ.get("gunicorn_admission.token")
        if exchange is None:
            return result
        if environ.pop(_COMPLETE, False):
            exchange.end()
        else:
            try:
                end = weakref.finalize(result, self.limiter.reclaim, exchange.ticket)
            except TypeError:
                return result  # a list, say, which has ended already
            end.atexit = False
        return result

    def refuse(
        self, ticket: Ticket, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer that the request is refused, and tell who listens."""
        result = super().refuse(ticket, environ, start_response)
        about = {"priority": ticket.priority, "partition": ticket.partition.name}
        send(request_shed, self._flask, reason=ticket.reason, **about)
        return result


def note_complete(environ: dict[str, Any], response: Response) -> None:
    """Note that a response is all computed: only sending it is left, which needs no slot."""
    if response.direct_passthrough:
        return
    length = response.content_length
    if response.status_code >= 300 and length is not None and length <= _SMALL:
        # Flask passes HTTP errors and redirects through an iterator, though they are complete.
        response.make_sequence()
    if response.is_sequence:
        environ[_COMPLETE] = True


def open_gate(
    app: Flask,
    wsgi_app: WSGIApp,
    settings: Settings,
    rules: Iterable[RouteRule],
    environ: dict[str, Any],
) -> AppGate | str:
    """
    Make the gate of an application for the server that calls it.

    Args:
        app, wsgi_app, settings: See :class:`AppGate`.
        rules: Of its views.
        environ: A request's, which tells the server.

    Returns:
        The gate, or why there can be none here.

    Raises:
        ConfigError: A setting does not fit the threads, or the rules contradict each other
            and the application is being tested or debugged.
    """
    server = str(environ.get("SERVER_SOFTWARE", ""))
    threads = settings.threads or _THREADS.get(server.partition("/")[0].lower())
    if threads is None:
        hint = "set ADMISSION_THREADS in app.config to the number of its threads"
        if server.startswith("gunicorn"):
            hint = "call gunicorn_admission.hooks.install in gunicorn.conf.py"
        return f"the threads of {server or 'the server'} are not known; {hint}"
    resolved = settings.derive(threads, waiting_holds_thread=True)
    if resolved.off_reason is not None:
        return resolved.off_reason
    classifier = Classifier(settings)
    for error in give(rules, classifier):
        if app.debug or app.testing:
            raise error
        _log.error("admission: %s; the rule is left out", error)
    say_that_it_is_alone(settings)
    limiter = limiter_for(resolved, classifier.policies.values())
    _log.info(
        "admission: gate in %r, limit %s of %d threads%s, queue %d, %s",
        app.name,
        resolved.limit,
        threads,
        "" if settings.threads else " (assumed; ADMISSION_THREADS tells)",
        resolved.policy.max_queue,
        resolved.policy.mode.value,
    )
    return AppGate(app, wsgi_app, limiter, classifier, settings)
