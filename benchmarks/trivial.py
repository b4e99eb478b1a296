"""The least that an application can do, so that what is left is the server's cost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["application"]

_OK = [("Content-Type", "text/plain"), ("Content-Length", "2")]
_HELD_SECONDS = 120.0


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer ``ok``; on ``/hold`` not before the server ends, so that the slot stays taken."""
    if environ["PATH_INFO"] == "/hold":
        threading.Event().wait(_HELD_SECONDS)
    start_response("200 OK", _OK)
    return [b"ok"]
