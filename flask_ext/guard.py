"""
What the extension knows of one application: its settings, its views, who decides for it.

Lock: none. What is made at the first request of a process is published with
``dict.setdefault``, which decides races and cannot be held over a fork.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from attrs import evolve
from flask import Flask, Response, request

from flask_ext.config import OWN
from flask_ext.gate import AppGate, WSGIApp, note_complete, open_gate
from flask_ext.url_patterns import below
from flask_ext.walk import Walk, walk
from gunicorn_admission.classify.announce import announce
from gunicorn_admission.core.types import Priority
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.observe import start_reporting
from gunicorn_admission.settings import RouteRule, Settings, Source
from gunicorn_admission.settings.partitions import ALL
from gunicorn_admission.wsgi import Gate

__all__ = ["Guard"]

_log = logging.getLogger("gunicorn_admission")
_DECISION: Final = "gunicorn_admission.decision"
_GATE: Final = "gunicorn_admission.gate"
#: Settings of the application that hold behind a gate further out as well.
_CARRIED: Final = {"exempt", "mode", "routes"}


class Guard:
    """
    Stands in front of one Flask application, as its ``wsgi_app``.

    Args:
        app: The application.
        settings: Its settings.
        sources: Where they come from.
        mount: What the server's path has in front of the application's.

    Thread safety: called from any thread.
    """

    def __init__(
        self, app: Flask, settings: Settings, sources: Mapping[str, Source], mount: str
    ) -> None:
        self.app = app
        self.settings = settings
        self.sources = sources
        self.mount = mount
        self._wsgi_app: WSGIApp = app.wsgi_app
        self._walk = Walk()
        self._gates: dict[int, AppGate | str] = {}  # by process; a text says why there is none
        self._behind: set[int] = set()  # processes in which somebody else decides
        self._outer: Gate | None = None  # who
        self._complained = False
        if settings.mode == "off":
            return
        app.wsgi_app = self  # type: ignore[method-assign]
        # First after the routing, and last before the response is called: hooks of the
        # application then see what is true. Signals would cost ten times as much.
        app.url_value_preprocessors[None].insert(0, self._routed)
        app.after_request_funcs[None].insert(0, self._finished)
        announce(self.rules)

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Let a request through that has been decided on, or decide."""
        process = os.getpid()
        if _DECISION in environ:
            self._outer = environ.get(_GATE, self._outer)
            if process not in self._behind:
                self._behind.add(process)
                self._stand_behind()
            return self._wsgi_app(environ, start_response)
        gate = self._gates.get(process) or self._open(process, environ)
        if isinstance(gate, str):
            return self._wsgi_app(environ, start_response)
        return gate(environ, start_response)

    def rules(self) -> list[RouteRule]:
        """Return what settings and views say now, for a gate in front of the application."""
        own = [evolve(r, pattern=below(self.mount, r.pattern)) for r in self.settings.rules]
        self._walk = walk(self.app, self.mount)
        # Settings have the last word, as far as they say something.
        said = self._walk.rules
        return [*own, *(rule for rule in said if not any(one.covers(rule) for one in own))]

    def limiter(self) -> Limiter | None:
        """Return who decides in this process; ``None`` before the first request and when off."""
        gate = self._gates.get(os.getpid(), self._outer)
        return gate.limiter if isinstance(gate, Gate) else None

    def _stand_behind(self) -> None:
        # Again, for views that were added after the classifier subscribed, or if none did.
        self._walk = walk(self.app, self.mount)
        announce(self.rules)
        unused = sorted(
            name
            for name, source in self.sources.items()
            if source.kind in OWN and name not in _CARRIED
        )
        if unused:
            _log.warning(
                "admission: the server's own settings hold for %r, so these are not used: %s",
                self.app.name,
                ", ".join(unused),
            )

    def _open(self, process: int, environ: dict[str, Any]) -> AppGate | str:
        if self.settings.threads is None and not environ.get("wsgi.multithread"):
            # Not remembered: this may be a test client in a process that will serve.
            quiet = self.app.testing or "SERVER_SOFTWARE" not in environ
            return self._off("the server runs one request at a time", quiet)
        self._walk = walk(self.app)
        rules = (*self._walk.rules, *self._of_webhooks())
        try:
            made = open_gate(self.app, self._wsgi_app, self.settings, rules, environ)
        except ConfigError as error:
            if self.app.debug or self.app.testing:
                raise
            made = str(error)
        gate = self._gates.setdefault(process, made)
        if isinstance(gate, str):
            return self._off(gate, False)
        if gate is made and not self.app.testing:
            gate.reporter = start_reporting(gate.limiter, gate.settings)
        return gate

    def _of_webhooks(self) -> list[RouteRule]:
        """Return what the sources of webhooks say; a gate further out has that from them."""
        intake = self.app.extensions.get("webhooks")
        return [] if intake is None else intake.receiver.rules()

    def _off(self, why: str, quiet: bool) -> str:
        if quiet:
            _log.debug("admission: off in %r: %s", self.app.name, why)
        elif not self._complained:
            self._complained = True
            _log.warning("admission: off in %r: %s", self.app.name, why)
        return why

    # -- inside a request ------------------------------------------------------------

    def _routed(self, endpoint: str | None, values: dict[str, Any] | None) -> None:
        """Count a request under the class of its view, where the path alone did not tell it."""
        try:
            gate = request.environ.get(_GATE)
            if gate is not None:
                self._reclassify(gate, request.environ)
        except Exception:
            if not self._complained:
                self._complained = True
                _log.exception("admission: a view was not classified; reported once")

    def _reclassify(self, gate: Gate, environ: dict[str, Any]) -> None:
        url_rule, method = request.url_rule, environ["REQUEST_METHOD"]
        rule = self._walk.intention(url_rule, method)
        if rule is None or rule.exempt:
            return  # what is exempt has its slot by now
        name, priority = rule.class_name, rule.priority
        if id(url_rule) not in self._walk.undecided:
            # Whoever runs the server may have said something else for this very path.
            mount = "" if isinstance(gate, AppGate) else self.mount
            found = gate.classifier.classify(method, mount + environ.get("PATH_INFO", ""))
            if found.exempt:
                return
            if found.rule is not None:
                name, priority = found.partition, found.priority
        if gate.settings.partition_by == "none":
            name = ALL
        if priority is None:
            priority = Priority.DEFAULT
        ticket = environ["gunicorn_admission.token"].ticket
        if ticket.partition.name != name or ticket.priority is not priority:
            gate.limiter.reclassify(ticket, name, priority)
            environ["gunicorn_admission.partition"] = name
            environ["gunicorn_admission.priority"] = priority.name.lower()

    def _finished(self, response: Response) -> Response:
        environ = request.environ
        if isinstance(environ.get(_GATE), AppGate):
            note_complete(environ, response)
        return response
