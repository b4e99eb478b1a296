"""Answers what a request was understood to be, and nothing that differs from server to server."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tests.integration import apps_admission
from tests.integration.apps import answer

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

__all__ = ["application"]

_NAMES = ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "SERVER_PROTOCOL", "CONTENT_TYPE")


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Show a request as JSON; ``/admission`` and ``/block/...`` as elsewhere."""
    if environ["PATH_INFO"].startswith(("/admission", "/block/")):
        return apps_admission.application(environ, start_response)
    try:
        body = environ["wsgi.input"].read().decode("latin-1")
    except OSError as error:
        body = f"cannot be read: {type(error).__name__}"
    fields = sorted((name, value) for name, value in environ.items() if name.startswith("HTTP_"))
    told = [environ.get("REMOTE_ADDR", "")] if "HTTP_X_WHO" in environ else []
    shown = [*(environ.get(name, "") for name in _NAMES), *fields, body, *told]
    return answer(start_response, json.dumps(shown).encode(), "application/json")
