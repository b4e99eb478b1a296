"""``AdmissionMiddleware`` in threads of other servers."""

from __future__ import annotations

import contextlib
import socketserver
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest

from gunicorn_admission.wsgi import AdmissionMiddleware
from tests.integration import wire
from tests.integration.admission import assert_refused
from tests.integration.flask_servers import waitress, werkzeug
from tests.integration.wire import PATIENCE, Exchange, Response

THREADS = 4  # two may run, one may wait, one is left to refuse


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class _Threaded(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True


@contextlib.contextmanager
def wsgiref(app: Any, threads: int) -> Iterator[int]:
    """The standard library's server, a thread for each connection; its port."""
    server = make_server("127.0.0.1", 0, app, _Threaded, _Silent)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


SERVERS: dict[str, Callable[..., contextlib.AbstractContextManager[int]]] = {
    "wsgiref": wsgiref,
    "werkzeug": werkzeug,
    "waitress": waitress,
}


class Site:
    """
    An application behind the middleware, and how to reach it.

    Attributes:
        gate: The middleware.
        open: Lets handlers of ``/block`` and ``/stream`` go on.
    """

    def __init__(self) -> None:
        self.open = threading.Event()
        self.port = 0
        self._entered = threading.Semaphore(0)
        self.gate = AdmissionMiddleware(
            self._application, threads=THREADS, limit=2, max_wait=30, interval=60, stall_after=3600
        )

    def _application(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/block":
            self._wait()
        start_response("200 OK", [("Content-Type", "text/plain")])
        if path == "/stream":
            return self._stream()
        return [environ["gunicorn_admission.decision"].encode()]

    def _stream(self) -> Iterator[bytes]:
        yield b"head\n"
        self._wait()
        for _ in range(1000):
            yield b"tail\n" * 1000

    def _wait(self) -> None:
        self._entered.release()
        assert self.open.wait(PATIENCE)

    def entered(self, count: int) -> None:
        """Return when so many handlers wait."""
        for _ in range(count):
            assert self._entered.acquire(timeout=PATIENCE)

    def send(self, path: str, method: str = "GET", body: bytes = b"") -> Exchange:
        """Send a request."""
        connection = wire.socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        return wire.send(connection, method, path, {"Connection": "close"}, body)

    def get(self, path: str, **request: Any) -> Response:
        """Send a request and read the answer."""
        return self.send(path, **request).response()

    def wait(self, **fields: int) -> None:
        """Wait until the statistics show these values."""
        deadline = time.monotonic() + PATIENCE
        while any(getattr(self.gate.limiter.statistics(), n) != v for n, v in fields.items()):
            assert time.monotonic() < deadline, self.gate.limiter.statistics()
            time.sleep(0.005)


@pytest.fixture(params=SERVERS)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """A site under each server in turn; afterwards every slot must be free."""
    site = Site()
    with SERVERS[request.param](site.gate, THREADS) as site.port:
        try:
            yield site
        finally:
            site.open.set()
        site.wait(inflight=0, waiting=0, leaked=0, released_twice=0)


def test_wait_refuse_and_answer_health(site: Site) -> None:
    held = [site.send("/block") for _ in range(2)]
    site.entered(2)
    waiting = site.send("/a")
    site.wait(waiting=1)
    for _ in range(2):
        assert_refused(site.get("/a"), "queue_full")
        assert_refused(site.get("/a", method="HEAD"), "queue_full", with_body=False)
        assert_refused(site.get("/a", method="POST", body=b"x" * 200_000), "queue_full")
        assert site.get("/health").text == "exempt"
    site.open.set()
    assert [exchange.response().status for exchange in held] == [200, 200]
    assert waiting.response().text == "admitted"


def test_a_stream_holds_its_slot_until_its_client_is_gone(site: Site) -> None:
    stream = site.send("/stream")
    assert stream.head() == 200
    site.entered(1)
    site.wait(inflight=1)
    stream.close()
    site.open.set()
    site.wait(inflight=0)
