"""Werkzeug's server and waitress in threads of the test process, with a free port each."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from flask import Flask, Response, stream_with_context
from waitress.server import create_server  # type: ignore[import-untyped]
from werkzeug.serving import make_server

from flask_ext import Admission
from gunicorn_admission.limiter import Limiter
from tests.flask_apps import guard_of, told
from tests.integration.wire import PATIENCE

__all__ = ["SERVERS", "Shop"]


@contextlib.contextmanager
def werkzeug(app: Flask, threads: int) -> Iterator[int]:
    """Werkzeug's development server, a thread for each connection; its port."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    server.daemon_threads = True  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def waitress(app: Flask, threads: int) -> Iterator[int]:
    """Waitress with so many threads; its port."""
    server: Any = create_server(app, host="127.0.0.1", port=0, threads=threads)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server.effective_port
    finally:
        # Its loop may be awake for another reason, and close the pipe before it is written to.
        with contextlib.suppress(OSError):
            server.trigger.pull_trigger(server.close)
        thread.join(PATIENCE)


SERVERS: dict[str, Callable[[Flask, int], contextlib.AbstractContextManager[int]]] = {
    "werkzeug": werkzeug,
    "waitress": waitress,
}


class Shop:
    """
    An application whose views wait until the test lets them go.

    Attributes:
        app, admission: The application and its extension.
        open: Lets all views of ``/block`` and ``/stream`` go on.
    """

    def __init__(self, **config: Any) -> None:
        self.open = threading.Event()
        self._entered = threading.Semaphore(0)
        self.app = app = Flask("shop")
        app.config.from_mapping(config)
        self.admission = admission = Admission(app)
        for path in ("/", "/x"):
            app.add_url_rule(path, f"told{path[1:]}", told)
        app.add_url_rule("/low", "low", admission.priority("low")(lambda: told()))
        app.add_url_rule("/alive", "alive", admission.exempt(lambda: told()))
        app.add_url_rule("/block", "block", self.block, methods=["GET", "POST"])
        app.add_url_rule("/stream", "stream", admission.stream(self.stream))
        app.add_url_rule("/file", "file", lambda: app.send_static_file("x"))

    def block(self) -> dict[str, Any]:
        """Wait."""
        self.wait()
        return told()

    def stream(self) -> Response:
        """Send something, wait, send the rest."""

        def chunks() -> Iterator[str]:
            yield "head\n"
            self.wait()
            yield "tail\n"

        return Response(stream_with_context(chunks()), headers={"Content-Length": "10"})

    def wait(self) -> None:
        """In a view: tell the test and wait for it."""
        self._entered.release()
        assert self.open.wait(PATIENCE)

    def entered(self, count: int = 1) -> None:
        """Return when so many views have begun to wait."""
        for _ in range(count):
            assert self._entered.acquire(timeout=PATIENCE)

    @property
    def limiter(self) -> Limiter:
        """The limiter of its gate, after a first request."""
        limiter = guard_of(self.app).limiter()
        assert limiter is not None
        return limiter
