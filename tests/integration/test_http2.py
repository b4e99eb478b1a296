"""HTTP/2: each stream is decided on, and refused connections let go of the threads that refuse."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import gunicorn
import h2.config
import h2.connection
import h2.events
import pytest

from tests.integration.admission import (
    configuration,
    hold,
    running,
    settled,
    statistics,
    wait_statistics,
)
from tests.integration.certificate import make_certificate
from tests.integration.server import Gunicorn
from tests.integration.wire import PATIENCE

pytestmark = pytest.mark.skipif(
    gunicorn.version_info < (27,), reason="its HTTP/2 waits for idle clients without a bound"
)


class Client:
    """A client of one HTTP/2 connection that sends one request after another."""

    def __init__(self, server: Gunicorn, context: ssl.SSLContext) -> None:
        with server.connect() as probe:
            address = probe.getpeername()
        plain = socket.create_connection(address, PATIENCE)
        self._socket = context.wrap_socket(plain, server_hostname="localhost")
        assert self._socket.selected_alpn_protocol() == "h2"
        config = h2.config.H2Configuration(header_encoding="utf-8")
        self._connection = h2.connection.H2Connection(config)
        self._connection.initiate_connection()
        self._flush()

    def _flush(self) -> None:
        self._socket.sendall(self._connection.data_to_send())

    def get(self, path: str) -> tuple[int, dict[str, str]]:
        """Send a request and read its answer: status and headers."""
        stream = self._connection.get_next_available_stream_id()
        fields = {":method": "GET", ":path": path, ":scheme": "https", ":authority": "localhost"}
        self._connection.send_headers(stream, list(fields.items()), end_stream=True)
        self._flush()
        headers: dict[str, str] = {}
        while data := self._socket.recv(65536):
            for event in self._connection.receive_data(data):
                if isinstance(event, h2.events.ResponseReceived):
                    headers = dict(event.headers)
                elif isinstance(event, h2.events.StreamEnded):
                    return int(headers[":status"]), headers
            self._flush()
        raise AssertionError("closed without an answer")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gunicorn]:
    """A server that prefers HTTP/2 and keeps idle connections for longer than a test takes."""
    directory = tmp_path_factory.mktemp("h2")
    certificate = make_certificate(directory)
    args = ("--threads", "2", "--keep-alive", "60", "--http-protocols", "h2,h1")
    conf = configuration(limit=2, max_queue=0)
    tls = certificate.context()
    with running(directory, *args, *certificate.arguments, conf=conf, bind="tcp", tls=tls) as one:
        yield one


@pytest.fixture
def context(server: Gunicorn) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(server.directory / "cert.pem"))
    context.set_alpn_protocols(["h2"])
    return context


def test_every_stream_has_a_slot_of_its_own(server: Gunicorn, context: ssl.SSLContext) -> None:
    before = settled(server)
    with Client(server, context) as client:
        for _ in range(3):
            assert client.get("/decision/a")[0] == 200
        # The thread is the connection's, but no slot is.
        assert settled(server)["released_twice"] == before["released_twice"]


def test_idle_connections_give_their_threads_back(
    server: Gunicorn, context: ssl.SSLContext
) -> None:
    server.wait_log("admission: with HTTP/2 each connection holds one of the 2 threads")
    with contextlib.ExitStack() as stack:
        for _ in range(2):  # there are two threads, and these stay for a minute if they may
            assert stack.enter_context(Client(server, context)).get("/echo/a")[0] == 200
        assert stack.enter_context(Client(server, context)).get("/echo/b")[0] == 200


def test_refused_streams_do_not_count_for_max_requests(
    server: Gunicorn, context: ssl.SSLContext
) -> None:
    with Client(server, context) as client:
        assert client.get("/echo/a")[0] == 200  # its thread is there, and stays
        held = hold(server, 1, "nr")
        other = server.send("/block/nr")  # granted, and waits for that thread
        before = wait_statistics(server, inflight=2)["nr"]
        assert client.get("/echo/b")[0] == 503
        assert statistics(server)["nr"] == before + 1  # that one
    held.release()
    assert other.response().status == 200
    settled(server)


def test_refused_connections_do_not_keep_the_threads_that_refuse(
    server: Gunicorn, context: ssl.SSLContext
) -> None:
    held = hold(server, 2, "h2")
    clients = []
    for _ in range(5):  # there are two such threads
        clients.append(Client(server, context))
        status, headers = clients[-1].get("/echo/a")
        assert (status, headers["admission-reason"]) == (503, "queue_full")
        assert int(headers["retry-after"]) >= 1
    for _ in range(5):
        clients.append(Client(server, context))
        assert clients[-1].get("/health")[0] == 200
    held.release()
    for client in clients:
        client.__exit__(None, None, None)
    settled(server)
