"""A WSGI application with one slow page; it knows nothing of admission."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer with the path; ``?seconds=2`` takes that long, as a slow database would."""
    seconds = environ["QUERY_STRING"].partition("seconds=")[2]
    time.sleep(min(float(seconds or 0), 30.0))
    body = f"{environ['PATH_INFO']}\n".encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
