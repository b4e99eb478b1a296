"""Posting to an intake in tests, over WSGI or over a socket."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from sqlalchemy import Row, select

from gunicorn_admission.webhooks.metrics import Metrics
from gunicorn_admission.webhooks.store import Store, schema
from tests.senders import Sent, hexed

__all__ = ["Answered", "counted", "environ_of", "github_sent", "path_of", "post", "rows"]

SECRET = "It's a Secret to Everybody"


class Answered(NamedTuple):
    """An answer over WSGI; header names are lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def github_sent(body: bytes, event_id: str, secret: str = SECRET) -> Sent:
    """A delivery of GitHub's with an id."""
    return Sent(
        body,
        {
            "X-GitHub-Event": "push",
            "X-GitHub-Delivery": event_id,
            "X-Hub-Signature-256": "sha256=" + hexed(secret, body),
        },
    )


def path_of(source: str, sent: Sent, prefix: str = "/hooks") -> str:
    """The path with the query string that the sender's URL has."""
    query = urlsplit(sent.url).query
    return f"{prefix}/{source}" + (f"?{query}" if query else "")


def environ_of(
    source: str,
    body: bytes,
    headers: Mapping[str, str],
    query: str = "",
    **changes: Any,
) -> dict[str, Any]:
    """The environ that a WSGI server makes of a request."""
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": f"/hooks/{source}",
        "QUERY_STRING": query,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "wsgi.url_scheme": "http",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
    }
    for name, value in headers.items():
        key = name.upper().replace("-", "_")
        environ[key if key == "CONTENT_TYPE" else f"HTTP_{key}"] = value
    environ.update(changes)
    return {key: value for key, value in environ.items() if value is not None}


def post(app: Callable[..., Any], source: str, sent: Sent, **changes: Any) -> Answered:
    """Send one request to a WSGI application."""
    query = urlsplit(sent.url).query
    environ = environ_of(source, sent.body, sent.headers, query, **changes)
    begun: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, headers: list[tuple[str, str]]) -> None:
        begun.append((status, headers))

    body = b"".join(app(environ, start_response))
    status, headers = begun[0]
    found = {name.lower(): value for name, value in headers}
    assert int(found["content-length"]) == len(body) or environ["REQUEST_METHOD"] == "HEAD"
    return Answered(int(status.split()[0]), found, body)


def counted(metrics: Metrics, key: str = "intake_requests") -> dict[tuple[str, ...], float]:
    """Counts of one metric by its labels."""
    counters = metrics.measured().counters
    return {labels: n for (name, labels), n in counters.items() if name == key}


def rows(store: Store, source: str | None = None) -> list[Row[Any]]:
    """The stored events, oldest first."""
    statement = select(schema.events).order_by(schema.events.c.seq)
    if source is not None:
        statement = statement.where(schema.events.c.source == source)
    with store.read() as connection:
        return list(connection.execute(statement).all())
