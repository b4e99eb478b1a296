"""
``Rejected`` raised inside a view: the same honest 503 that the gate gives.

A handler of the application for ``Rejected``, or else one for the HTTP error, has the last word.
"""

from __future__ import annotations

import math
from collections.abc import MutableMapping
from datetime import datetime
from typing import Any

from flask import Flask, current_app, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException, ServiceUnavailable, TooManyRequests

from flask_ext.signals import request_shed, send
from gunicorn_admission.answer import answer
from gunicorn_admission.core.policy import SECOND
from gunicorn_admission.errors import Rejected

__all__ = ["handle_rejections", "note_refusal"]


class _Refused(HTTPException):
    """An HTTP error with our headers and body; ``rejected`` says more to handlers."""

    retry_after: datetime | int | None

    def __init__(self, rejected: Rejected) -> None:
        super().__init__()
        self.rejected = rejected
        self.retry_after = math.ceil(rejected.retry_after)
        made = answer(rejected.reason, round(rejected.retry_after * SECOND), self.code or 503)
        self._headers, self._body = made.headers, made.body.decode()

    def get_body(self, *args: Any, **kwargs: Any) -> str:
        """Return the problem details."""
        return self._body

    def get_headers(self, *args: Any, **kwargs: Any) -> list[tuple[str, str]]:
        """Return our headers, less the length: a handler may replace the body."""
        return [(name, value) for name, value in self._headers if name != "Content-Length"]


class _Unavailable(_Refused, ServiceUnavailable):
    """A class for each status, since Flask finds handlers by the status of the class."""


class _TooMany(_Refused, TooManyRequests):
    """The same with 429."""


def handle_rejections(app: Flask, status: int) -> None:
    """
    Let an application answer ``Rejected``, unless it has a handler for that already.

    Args:
        app: Gets the handler; one that it registers later takes its place.
        status: 503 or 429.
    """
    refused = _TooMany if status == 429 else _Unavailable

    def handle(rejected: Rejected) -> ResponseReturnValue:
        note_refusal(request.environ, rejected)
        sender = current_app._get_current_object()  # type: ignore[attr-defined]
        shed = {"priority": rejected.priority, "partition": rejected.partition}
        send(request_shed, sender, reason=rejected.reason, **shed)
        # Asks for a handler of the application; without one this is the error itself,
        # which is a response.
        return app.handle_http_exception(refused(rejected))

    app.error_handler_spec[None][None].setdefault(Rejected, handle)


def note_refusal(environ: MutableMapping[str, Any], rejected: Rejected) -> None:
    """
    Note in a request's environ that its answer is our own doing.

    Our own 503 is not a sign of overload further down, and must not be taken for one.
    """
    environ["gunicorn_admission.reason"] = rejected.reason.value
    exchange = environ.get("gunicorn_admission.token")
    if exchange is not None:
        exchange.own_refusal = True
