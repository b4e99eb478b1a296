"""Bodies of every kind through a real gunicorn, directly and behind nginx: kept byte for byte."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gunicorn_admission.webhooks.store import Store
from tests.intake_calls import github_sent, rows
from tests.integration.proxies import nginx
from tests.integration.server import Gunicorn
from tests.integration.wire import PATIENCE, Exchange, Response
from tests.senders import Sent

pytestmark = pytest.mark.integration

MIB = 1024 * 1024
EMOJI = '{"text": "10 €, 🎉 \\ud83c\\udf89", "raw": "\u2028"}'.encode()
LARGEST = b'{"pad": "' + b"x" * (25 * MIB - 11) + b'"}'
Connect = Callable[[], socket.socket]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gunicorn, Store]]:
    directory: Path = tmp_path_factory.mktemp("bodies")
    url = f"sqlite:///{directory}/webhooks.db"
    with Store(url) as store:
        store.upgrade()
        server = Gunicorn(
            "--threads=4",
            directory=directory,
            app="tests.integration.apps_webhooks:application",
            env={"TEST_STORE_URL": url},
            bind="tcp",
        )
        with server:
            server.get("/healthz", timeout=60)  # it imports much at its start
            yield server, store


@pytest.fixture(params=["direct", "buffered", "unbuffered"])
def connect(
    request: pytest.FixtureRequest, served: tuple[Gunicorn, Store], tmp_path: Path
) -> Iterator[Connect]:
    """Opens a connection to gunicorn, or to an nginx in front of it."""
    server, _ = served
    if request.param == "direct":
        yield server.connect
        return
    with server.connect() as connection:
        address = connection.getpeername()
    with nginx(tmp_path, address, buffering=request.param == "buffered") as port:
        yield lambda: socket.create_connection(("127.0.0.1", port), PATIENCE)


@pytest.fixture
def event_id(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


def head(sent: Sent, *lines: str, source: str = "load") -> bytes:
    headers = [f"{name}: {value}" for name, value in sent.headers.items()]
    first = f"POST /hooks/{source} HTTP/1.1"
    return "\r\n".join([first, "Host: hooks.test", *headers, *lines, "", ""]).encode()


def chunked(body: bytes, size: int) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in (*pieces, b""))


def exchange(connect: Connect, *data: bytes) -> Response:
    """Send all, and read the answer even where the server stopped reading."""
    connection = connect()
    connection.settimeout(PATIENCE)
    for piece in data:
        connection.sendall(piece)
    return Exchange(connection, "POST").response()


def kept(served: tuple[Gunicorn, Store], event_id: str) -> list[bytes]:
    return [row.body for row in rows(served[1]) if row.event_id == event_id]


def test_emoji(connect: Connect, served: tuple[Gunicorn, Store], event_id: str) -> None:
    sent = github_sent(EMOJI, event_id)
    assert exchange(connect, head(sent, f"Content-Length: {len(EMOJI)}"), EMOJI).status == 200
    assert kept(served, event_id) == [EMOJI]


def test_chunked(connect: Connect, served: tuple[Gunicorn, Store], event_id: str) -> None:
    sent = github_sent(EMOJI, event_id)
    # Seven bytes a chunk, so that characters are cut in the middle.
    data = head(sent, "Transfer-Encoding: chunked"), chunked(EMOJI, 7)
    assert exchange(connect, *data).status == 200
    assert kept(served, event_id) == [EMOJI]


def test_largest(connect: Connect, served: tuple[Gunicorn, Store], event_id: str) -> None:
    assert len(LARGEST) == 25 * MIB
    sent = github_sent(LARGEST, event_id)
    answer = exchange(connect, head(sent, f"Content-Length: {len(LARGEST)}"), LARGEST)
    assert answer.status == 200, answer.text
    assert kept(served, event_id) == [LARGEST]


def test_a_byte_too_large(connect: Connect, served: tuple[Gunicorn, Store], event_id: str) -> None:
    body = LARGEST + b" "
    sent = github_sent(body, event_id)
    assert exchange(connect, head(sent, f"Content-Length: {len(body)}"), body).status == 413
    assert (
        exchange(connect, head(sent, "Transfer-Encoding: chunked"), chunked(body, MIB)).status
        == 413
    )
    assert kept(served, event_id) == []


def test_a_bound_of_the_source(
    connect: Connect, served: tuple[Gunicorn, Store], event_id: str
) -> None:
    body = b"x" * 1001
    sent = github_sent(body, event_id)
    lines = {"Transfer-Encoding: chunked": chunked(body, 100), "Content-Length: 1001": body}
    for line, data in lines.items():
        assert exchange(connect, head(sent, line, source="small"), data).status == 413
    assert kept(served, event_id) == []


def test_content_length_that_promises_more(served: tuple[Gunicorn, Store], event_id: str) -> None:
    """The client stays and is silent: the thread is free again after the sender's deadline."""
    server, _ = served
    sent = github_sent(EMOJI, event_id)
    data = head(sent, f"Content-Length: {len(EMOJI) + 1}", source="hurried"), EMOJI
    answer = exchange(server.connect, *data)
    assert answer.status == 503
    assert int(answer.headers["retry-after"]) > 0
    huge = head(sent, "Content-Length: 99999999999"), EMOJI
    assert exchange(server.connect, *huge).status == 413
    assert kept(served, event_id) == []


def test_content_length_that_promises_less(
    connect: Connect, served: tuple[Gunicorn, Store], event_id: str
) -> None:
    sent = github_sent(EMOJI, event_id)
    data = head(sent, f"Content-Length: {len(EMOJI) - 1}", "Connection: close"), EMOJI
    assert exchange(connect, *data).status == 401
    assert kept(served, event_id) == []


def test_client_that_leaves_in_the_middle(
    connect: Connect, served: tuple[Gunicorn, Store], event_id: str
) -> None:
    sent = github_sent(EMOJI, event_id)
    with connect() as connection:
        connection.sendall(head(sent, f"Content-Length: {len(EMOJI)}") + EMOJI[:-1])
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(PATIENCE)
        while connection.recv(65536):
            pass
    data = head(sent, f"Content-Length: {len(EMOJI)}"), EMOJI
    assert exchange(connect, *data).json() == {"result": "stored"}


def test_expect_continue(served: tuple[Gunicorn, Store], event_id: str) -> None:
    server, _ = served
    sent = github_sent(EMOJI, event_id)
    lines = f"Content-Length: {len(EMOJI)}", "Expect: 100-continue"
    with server.connect() as connection:
        connection.sendall(head(sent, *lines))
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(EMOJI)
        assert Exchange(connection, "POST").response().status == 200
    assert kept(served, event_id) == [EMOJI]


def test_broken_chunks(served: tuple[Gunicorn, Store], event_id: str) -> None:
    server, _ = served
    sent = github_sent(EMOJI, event_id)
    for data in (
        b"zz\r\nabc\r\n0\r\n\r\n",
        b"5\r\nabcdefgh\r\n0\r\n\r\n",
        b"ffffffffffffffff\r\nabc",
    ):
        with server.connect() as connection:
            connection.sendall(head(sent, "Transfer-Encoding: chunked", source="hurried") + data)
            status = Exchange(connection, "POST").response().status
        assert status in (400, 413, 503)
    assert kept(served, event_id) == []
    assert server.get("/healthz").status == 200
