"""The gate in a Flask application under Werkzeug's server and waitress."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration import wire
from tests.integration.admission import assert_refused
from tests.integration.flask_servers import SERVERS, Shop
from tests.integration.wire import Exchange, Response

THREADS = 8  # so the limit is 5, two may wait, and one thread is left to refuse


class Client:
    """Sends requests to a port, each on a connection of its own."""

    def __init__(self, port: int) -> None:
        self._port = port

    def send(self, path: str, **request: Any) -> Exchange:
        """Send a request and do not wait for the answer."""
        connection = socket.create_connection(("127.0.0.1", self._port), wire.PATIENCE)
        method, body = request.get("method", "GET"), request.get("body", b"")
        headers = {"Connection": "close", **request.get("headers", {})}
        return wire.send(connection, method, path, headers, body)

    def get(self, path: str, **request: Any) -> Response:
        """Send a request and read its answer."""
        return self.send(path, **request).response()


Serve = Callable[[Shop], Client]


@pytest.fixture(params=sorted(SERVERS))
def serve(request: pytest.FixtureRequest) -> Iterator[Serve]:
    """Serve an application by each server in turn; afterwards every slot must be free."""
    shops: list[Shop] = []
    with contextlib.ExitStack() as stack:

        def start(shop: Shop) -> Client:
            shops.append(shop)
            stack.callback(shop.open.set)
            return Client(stack.enter_context(SERVERS[request.param](shop.app, THREADS)))

        yield start
        for shop in shops:
            shop.open.set()
    for shop in shops:
        statistics = shop.limiter.statistics()
        assert (statistics.inflight, statistics.waiting) == (0, 0)
        assert (statistics.leaked, statistics.released_twice) == (0, 0)


def calm(**config: Any) -> Shop:
    """A shop in which nothing happens by time."""
    times = {"ADMISSION_MAX_WAIT": 30, "ADMISSION_STALL_AFTER": 3600}
    return Shop(ADMISSION_THREADS=THREADS, **{**times, **config})


def test_admitted_and_classified(serve: Serve) -> None:
    client = serve(calm())
    seen = client.get("/low").json()
    assert (seen["decision"], seen["partition"], seen["priority"]) == ("admitted", "low", "low")
    assert client.get("/alive").json() == {"decision": "exempt"}
    assert client.get("/missing").status == 404


def test_full(serve: Serve) -> None:
    shop = calm(ADMISSION_LIMIT=5, ADMISSION_CAP=5, ADMISSION_MAX_QUEUE=0)
    client = serve(shop)
    held = [client.send("/block") for _ in range(5)]
    shop.entered(5)
    assert_refused(client.get("/low"), "overloaded")
    assert_refused(client.get("/x"), "queue_full")
    assert client.get("/alive").status == 200
    assert client.get("/low", method="HEAD").status == 503
    shop.open.set()
    assert [one.response().status for one in held] == [200] * 5
    assert shop.limiter.statistics().granted == 5


def test_who_waits_is_served(serve: Serve) -> None:
    shop = calm(ADMISSION_CAP=5)
    client = serve(shop)
    held = [client.send("/block") for _ in range(7)]
    shop.entered(5)
    shop.open.set()
    shop.entered(2)
    assert {one.response().status for one in held} == {200}


def test_the_hung_class_leaves_room(serve: Serve) -> None:
    shop = calm(ADMISSION_MAX_WAIT=0)
    client = serve(shop)
    held = [client.send("/block") for _ in range(4)]
    shop.entered(4)
    assert client.get("/block").status == 503
    assert client.get("/x").status == 200
    shop.open.set()
    assert {one.response().status for one in held} == {200}


def test_a_refused_body_does_not_hide_the_answer(serve: Serve) -> None:
    shop = calm(ADMISSION_MAX_WAIT=0)
    client = serve(shop)
    held = [client.send("/block") for _ in range(4)]
    shop.entered(4)
    refused = client.get("/block", method="POST", body=b"x" * 500_000)
    assert_refused(refused)
    shop.open.set()
    assert {one.response().status for one in held} == {200}


def test_a_stream_keeps_its_slot(serve: Serve) -> None:
    shop = calm()
    client = serve(shop)
    exchange = client.send("/stream")
    shop.entered()
    assert shop.limiter.statistics().partitions["stream"].inflight == 1
    shop.open.set()
    assert exchange.response().body == b"head\ntail\n"


def test_a_stream_whose_client_leaves(serve: Serve) -> None:
    shop = calm()
    client = serve(shop)
    exchange = client.send("/stream")
    shop.entered()
    exchange.close()


def test_a_file(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x" * 300_000)
    shop = calm()
    shop.app.static_folder = str(tmp_path)
    assert len(serve(shop).get("/file").body) == 300_000


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("config", [{}, {"PROPAGATE_EXCEPTIONS": True}])
def test_a_bug(serve: Serve, config: dict[str, Any]) -> None:
    shop = calm(**config)

    def fail() -> str:
        raise ValueError("a bug")

    shop.app.add_url_rule("/fail", "fail", fail)
    assert serve(shop).get("/fail").status == 500
