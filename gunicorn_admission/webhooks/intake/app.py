"""
The intake as a WSGI application of its own.

``gunicorn -k gthread --threads 16 'gunicorn_admission.webhooks.intake.app:create()'`` serves
``POST /hooks/<source>`` for the sources of the store that ``GUNICORN_ADMISSION_STORE_URL`` names.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from typing import Any, Final

from gunicorn_admission.webhooks.intake.answer import Answer
from gunicorn_admission.webhooks.intake.receive import Receiver
from gunicorn_admission.webhooks.intake.source import Source
from gunicorn_admission.webhooks.reporting import start_webhook_reporting
from gunicorn_admission.webhooks.store import Store

__all__ = ["DEFAULT_URL", "Intake", "create", "store_url"]

_log = logging.getLogger("gunicorn_admission.intake")

#: The store where nothing else is said: a file in the working directory.
DEFAULT_URL: Final = "sqlite:///webhooks.db"
_HEALTH: Final = "/healthz"


class Intake:
    """
    Takes webhooks in, as a WSGI application: ``POST <prefix>/<source>``.

    ``GET /healthz`` answers 200 as long as the process runs. All else is 404.

    Args:
        store: Where events are kept, or its URL.
        sources: Configured in code; more may be in the store.
        prefix: Path in front of the source's name.
        options: Of :class:`~gunicorn_admission.webhooks.intake.receive.Receiver`.

    Raises:
        ConfigError: A source or secret cannot work.

    Thread safety: a WSGI callable; made before a fork or after.

    Example:
        ``app = Intake("sqlite:///webhooks.db", [Source("git", provider="github", ...)])``
    """

    def __init__(
        self,
        store: Store | str | None = None,
        sources: Iterable[Source] = (),
        *,
        prefix: str = "/hooks",
        **options: Any,
    ) -> None:
        opened = Store(store or store_url()) if store is None or isinstance(store, str) else store
        self.receiver = Receiver(opened, sources, prefix=prefix, **options)
        self._reports_in = 0

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer one request."""
        path = str(environ.get("PATH_INFO") or "/")
        if path == _HEALTH:
            start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "3")])
            return [b"" if environ["REQUEST_METHOD"] == "HEAD" else b"ok\n"]
        name = path.removeprefix(f"{self.receiver.prefix}/")
        # A path that is none of ours has no source of that name: names hold no slash.
        return respond(self.receive(name, environ), environ, start_response)

    def receive(
        self,
        name: str,
        environ: dict[str, Any],
        read: Callable[[int, float], bytes] | None = None,
    ) -> Answer:
        """Take one request in; see :meth:`Receiver.receive`, which it counts for reports."""
        if self._reports_in != os.getpid():
            self._reports_in = os.getpid()  # threads do not survive a fork
            try:
                start_webhook_reporting()
            except Exception:
                _log.exception("webhooks: no metrics are reported; events are taken all the same")
        return self.receiver.receive(name, environ, read)


def respond(
    answer: Answer, environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    """Give an answer to a WSGI server."""
    length = ("Content-Length", str(len(answer.body)))
    start_response(answer.status_line, [*answer.headers, length])
    return [b"" if environ["REQUEST_METHOD"] == "HEAD" else answer.body]


def store_url() -> str:
    """Return the URL of the store that the environment names, or the default one."""
    return os.environ.get("GUNICORN_ADMISSION_STORE_URL") or DEFAULT_URL


def create(url: str | None = None, **options: Any) -> Intake:
    """
    Make the application that serves the sources of a store.

    Args:
        url: Of the store; by default ``GUNICORN_ADMISSION_STORE_URL``, or ``webhooks.db``.
        options: Of :class:`Intake`.
    """
    return Intake(url, **options)
