"""A refused client reads the whole 503, whatever it sends and whatever stands in between."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import gunicorn
import pytest

from tests.integration.admission import assert_refused, configuration, hold
from tests.integration.ways import DIRECT, PROXIED, Way, open_way
from tests.integration.wire import Exchange, read_to_end

CONF = configuration(limit=2, max_queue=0, drain_timeout="500ms", read_timeout="500ms")
KB, MB = 1 << 10, 1 << 20
GET = b"GET /echo/a HTTP/1.1\r\nHost: localhost\r\n\r\n"
GET_HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

#: Before 24 gunicorn's main loop takes no connection back that we have answered or let wait.
KEEPS_ALIVE = PARKS = gunicorn.version_info >= (24,)
#: Before 27 gunicorn forgets the request that it read ahead of, refused or not.
KEEPS_READ_AHEAD = gunicorn.version_info >= (27,)


@pytest.fixture(scope="module", params=[*DIRECT, *PROXIED])
def way(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    """A way to a server whose threads are all taken for as long as the tests last."""
    directory = tmp_path_factory.mktemp("way")
    with open_way(request.param, directory, "--threads", "2", conf=CONF) as way:
        held = hold(way.server, 2)
        yield way
        held.release()


def test_get(way: Way) -> None:
    assert_refused(way.get("/echo/a"), "queue_full")


def test_head(way: Way) -> None:
    assert_refused(way.get("/echo/a", method="HEAD"), "queue_full", with_body=False)


@pytest.mark.parametrize("size", [KB, 70 * KB, 200 * KB, 10 * MB])
def test_a_body_that_nobody_reads(way: Way, size: int) -> None:
    assert_refused(way.get("/read/none", method="POST", body=b"x" * size), "queue_full")


def test_http_1_0(way: Way) -> None:
    with way.connect() as connection:
        connection.sendall(b"GET /echo/a HTTP/1.0\r\nHost: localhost\r\n\r\n")
        response = Exchange(connection, "GET").response(keep=True)
        assert_refused(response, "queue_full")
        assert read_to_end(connection) == b""  # it is closed, as HTTP/1.0 expects


def test_the_connection_can_be_used_again(way: Way) -> None:
    with way.connect() as connection:
        for path in ("/echo/a", "/echo/b"):
            response = way.send(path, connection=connection).response(keep=True)
            assert_refused(response, "queue_full")
            if response.headers.get("connection") == "close":
                assert not KEEPS_ALIVE and way.name in ("tcp", "unix")
                return
        after = way.send("/health", connection=connection).response(keep=True)
        assert (after.status, after.text) == (200, "ok")


def test_requests_behind_a_refused_one(way: Way) -> None:
    with way.connect() as connection:
        connection.sendall(GET + GET_HEALTH)
        answers = read_to_end(connection)
    first, _, rest = answers.partition(b"}\n")  # the end of the problem details
    assert first.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"admission-reason: queue_full\r\n" in first.lower()
    if rest or KEEPS_READ_AHEAD:
        assert rest.startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_client_that_waits_to_be_asked_for_its_body(way: Way) -> None:
    with way.connect() as connection:
        connection.sendall(
            b"POST /read/none HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n"
        )
        assert read_head(connection).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"x" * 1000)
        assert_refused(Exchange(connection, "POST").response(keep=True), "queue_full")


def read_head(connection: socket.socket) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        assert byte, head
        head += byte
    return head


@pytest.mark.parametrize("size", [KB, 200 * KB])
def test_a_chunked_body(way: Way, size: int) -> None:
    chunk = b"%x\r\n%s\r\n" % (KB, b"x" * KB)
    body = chunk * (size // KB) + b"0\r\n\r\n"
    with way.connect() as connection:
        connection.sendall(
            b"POST /read/none HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        connection.sendall(body)
        assert_refused(Exchange(connection, "POST").response(keep=True), "queue_full")


def test_a_client_that_stops_in_the_middle_of_its_body(way: Way) -> None:
    if way.name == "nginx":
        return  # it waits for the whole body before it asks gunicorn
    with way.connect() as connection:
        connection.sendall(
            b"POST /read/none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
        )
        connection.sendall(b"x" * 500)
        response = Exchange(connection, "POST").response(keep=True)
    if response.status != 408:
        assert_refused(response, "queue_full")
    else:  # on plain TCP it is asked for first what it wants in full
        assert PARKS and way.name not in ("tls", "nginx")


@pytest.fixture(scope="module", params=["tcp", "unix", "tls"])
def queue(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Way]:
    """A way to a server that lets requests wait for a moment, and always in vain."""
    directory = tmp_path_factory.mktemp("queue")
    conf = configuration(limit=2, max_queue=8, max_wait="100ms")
    with open_way(request.param, directory, "--threads", "2", conf=conf) as way:
        held = hold(way.server, 2)
        yield way
        held.release()


@pytest.mark.parametrize("size", [0, KB, 200 * KB, 10 * MB])
def test_a_request_that_waited_in_vain(queue: Way, size: int) -> None:
    method = "POST" if size else "GET"
    response = queue.get("/read/none", method=method, body=b"x" * size)
    # Reading the head of a TLS request may already have taken as long as it may wait.
    assert_refused(response, ("expired", "predicted_wait"))


def test_requests_behind_one_that_waited_in_vain(queue: Way) -> None:
    with queue.connect() as connection:
        connection.sendall(GET + GET_HEALTH)
        answers = b""
        while data := connection.recv(65536):  # a reset would be an error here
            answers += data
    assert answers.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"\r\nAdmission-Reason: expired\r\n" in answers
