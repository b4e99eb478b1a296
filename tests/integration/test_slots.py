"""A slot is taken for each request and given back once, however the request ends."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration import apps
from tests.integration.admission import (
    configuration,
    hold,
    running,
    settled,
    statistics,
    wait_age,
    wait_statistics,
)
from tests.integration.server import Gunicorn
from tests.integration.wire import read_to_end

CONF = configuration(
    "from tests.integration.apps_admission import note_sendfile\nnote_sendfile()",
    limit=2,
    gone_check=True,
    routes={"/stream": {"release_on": "first_byte", "stream": True}},
)
_numbers = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gunicorn]:
    """One server for all: a slot that one test loses is found missing by the next."""
    directory = tmp_path_factory.mktemp("slots")
    with running(directory, "--threads", "2", conf=CONF) as server:
        yield server


@pytest.fixture
def name() -> str:
    """A name that no other test uses, for a gate."""
    return f"g{next(_numbers)}"


@pytest.fixture(autouse=True)
def nothing_is_lost(server: Gunicorn) -> Iterator[None]:
    yield
    settled(server)
    wait_statistics(server, limit=2)  # less while a thread is busy with a stream


def test_a_list_ends_its_slot(server: Gunicorn) -> None:
    before = statistics(server)
    assert server.get("/echo/a").status == 200
    after = settled(server)
    assert after["granted"] == before["granted"] + 1
    assert after["rtt_seconds"] > 0


def test_a_body_that_is_generated_holds_its_slot_until_it_is_closed(
    server: Gunicorn, name: str
) -> None:
    gate = server.gate(name)
    exchange = server.send(f"/generator/{name}")
    assert exchange.head() == 200
    assert exchange.read(5) == b"head\n"
    assert statistics(server)["partitions"]["/generator"]["inflight"] == 1
    gate.open()
    assert exchange.response().body == b"tail\n"
    settled(server)
    assert len(server.records(event="close", path=f"/generator/{name}")) == 1


def test_a_client_that_leaves_in_the_middle_of_a_body(server: Gunicorn, name: str) -> None:
    gate = server.gate(name)
    exchange = server.send(f"/generator/{name}")
    assert exchange.head() == 200
    exchange.close()
    gate.open()
    server.wait_records(event="close", path=f"/generator/{name}")
    settled(server)
    assert len(server.records(event="close", path=f"/generator/{name}")) == 1


def test_a_client_that_leaves_while_it_waits_is_never_served(server: Gunicorn, name: str) -> None:
    held = hold(server, 2, name)
    gone = server.send(f"/echo/gone-{name}")
    patient = server.send(f"/echo/patient-{name}")
    before = wait_statistics(server, waiting=2)
    gone.close()
    # One that has just arrived is believed to be there still.
    wait_age(server, "/block", before["partitions"]["/block"]["oldest_seconds"] + 0.01)
    held.release()
    assert patient.response().status == 200
    after = settled(server)
    assert after["abandoned"] == before["abandoned"] + 1
    assert server.records(path=f"/echo/patient-{name}")
    assert not server.records(path=f"/echo/gone-{name}")


@pytest.mark.parametrize("where", ["handler", "started", "first"])
def test_an_exception_before_the_first_byte_is_a_500(server: Gunicorn, where: str) -> None:
    assert server.get(f"/raise/bug/{where}").status == 500


@pytest.mark.parametrize("where", ["later", "close"])
def test_an_exception_after_the_first_byte_ends_the_connection(
    server: Gunicorn, where: str
) -> None:
    answer = b""
    with server.connect() as connection:
        server.send(f"/raise/bug/{where}", connection=connection)
        answer = read_to_end(connection)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    # The last chunk tells the client that nothing is missing.
    assert answer.endswith(b"0\r\n\r\n") is (where == "close")


@pytest.mark.parametrize("kind", ["real", "memory"])
def test_a_file_is_sent_as_without_us_and_closed_once(server: Gunicorn, kind: str) -> None:
    before = len(server.records(event="sendfile"))
    closed = len(server.records(event="close", path="/file/memory"))
    expected = Path(apps.__file__).read_bytes()
    assert server.get(f"/file/{kind}").body == expected
    (call,) = server.wait_records(before + 1, event="sendfile")[before:]
    assert call["done"] is (kind == "real")  # sendfile needs a descriptor
    settled(server)
    calls = len(server.records(event="close", path="/file/memory")) - closed
    assert calls == (kind == "memory")  # a real file does not record its close


@pytest.mark.parametrize("path", ["/echo/a", "/generator/none", "/stream/none", "/file/real"])
def test_head(server: Gunicorn, path: str) -> None:
    response = server.get(path, method="HEAD")
    assert (response.status, response.body) == (200, b"")


def test_a_stream_may_give_its_slot_back_at_the_first_byte(server: Gunicorn, name: str) -> None:
    gate = server.gate(name)
    exchange = server.send(f"/stream/{name}")
    assert exchange.head() == 200
    assert exchange.read(5) == b"head\n"
    # No slot, but it still has one of the two threads, so only one more may run.
    seen = wait_statistics(server, inflight=0)
    assert seen["limit"] == 1
    assert server.get("/echo/a").status == 200
    gate.open()
    assert exchange.response().body == b"tail\n"
    wait_statistics(server, limit=2)


def test_a_stream_whose_client_leaves_gives_its_thread_back(server: Gunicorn, name: str) -> None:
    gate = server.gate(name)
    exchange = server.send(f"/stream/{name}?tail=10000")
    assert exchange.head() == 200
    wait_statistics(server, inflight=0, limit=1)
    exchange.close()
    gate.open()
    server.wait_records(event="close", path=f"/stream/{name}")
    wait_statistics(server, limit=2)


@pytest.mark.parametrize("error", ["exit", "interrupt", "generator-exit", "bomb"])
@pytest.mark.parametrize("where", ["handler", "first", "later", "close"])
def test_what_is_not_an_exception_ends_its_connection_and_nothing_else(
    server: Gunicorn, name: str, error: str, where: str
) -> None:
    workers = server.workers()
    other = hold(server, 1, name)
    with server.connect() as connection:
        server.send(f"/raise/{error}/{where}", connection=connection)
        read_to_end(connection)  # it ends, rather than hang
    other.release()
    assert server.get("/echo/a").status == 200
    assert server.workers() == workers
