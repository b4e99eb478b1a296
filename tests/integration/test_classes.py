"""What a request is decides what it gets, on every way on which it may come."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gunicorn
import pytest

from tests.integration.admission import (
    assert_refused,
    configuration,
    hold,
    settled,
    statistics,
    wait_statistics,
)
from tests.integration.ways import DIRECT, Way, open_way
from tests.integration.wire import read_to_end

Open = Callable[..., Way]

#: HTTP/1 that can be read in front of the parser, and one that cannot.
ALIKE = ("tcp", "tls")
#: Since 24 gunicorn's main loop can wait for the rest of a request.
PARKS = gunicorn.version_info >= (24,)
ROUTES = {"/echo/high": "high", "/echo/low": "low"}


@pytest.fixture
def way_to(tmp_path: Path) -> Iterator[Open]:
    """Start a server: ``way_to("tls", threads=2, limit=1)``, settings as keywords."""
    with contextlib.ExitStack() as stack:

        def start(name: str, *, threads: int = 2, **settings: Any) -> Way:
            conf = configuration(**settings)
            way = open_way(name, tmp_path, "--threads", str(threads), conf=conf)
            return stack.enter_context(way)

        yield start


@pytest.mark.parametrize("name", DIRECT)
def test_health_is_answered_at_once_while_all_threads_are_blocked(way_to: Open, name: str) -> None:
    way = way_to(name, limit=2)
    held = hold(way.server, 2)
    waiting = way.send("/echo/a")
    wait_statistics(way.server, waiting=1)
    # Others wait for half a minute here.
    for _ in range(3):
        assert way.get("/health").text == "ok"
    assert wait_statistics(way.server, waiting=1)["shed"] == {}
    held.release()
    assert waiting.response().status == 200


@pytest.mark.parametrize("name", DIRECT)
def test_the_queue_is_served_by_priority(way_to: Open, name: str) -> None:
    way = way_to(name, limit=1, low_max_wait=30, routes=ROUTES)
    held = hold(way.server, 1)
    waiting = []
    for place, priority in enumerate(("low", "default", "high"), 1):
        waiting.append(way.send(f"/echo/{priority}"))
        wait_statistics(way.server, waiting=place)
    held.release()
    assert [exchange.response().status for exchange in waiting] == [200] * 3
    served = [row["path"] for row in way.server.records(event="call")]
    assert served == ["/block/held", "/echo/high", "/echo/default", "/echo/low"]


@pytest.mark.parametrize("name", ALIKE)
def test_low_priority_is_refused_at_once_where_others_wait(way_to: Open, name: str) -> None:
    way = way_to(name, limit=1, routes=ROUTES)
    held = hold(way.server, 1)
    waiting = way.send("/echo/default")
    wait_statistics(way.server, waiting=1)
    assert_refused(way.get("/echo/low"), "overloaded")
    assert settled_shed(way) == {"low overloaded": 1}
    held.release()
    assert waiting.response().status == 200


def settled_shed(way: Way) -> dict[str, int]:
    shed: dict[str, int] = statistics(way.server)["shed"]
    return shed


@pytest.mark.parametrize("name", ALIKE)
def test_high_priority_takes_the_place_of_another_in_a_full_queue(way_to: Open, name: str) -> None:
    way = way_to(name, limit=1, max_queue=1, routes=ROUTES)
    held = hold(way.server, 1)
    default = way.send("/echo/default")
    wait_statistics(way.server, waiting=1)
    high = way.send("/echo/high")
    assert_refused(default.response(), "evicted")
    held.release()
    assert high.response().status == 200


@pytest.mark.parametrize("name", ALIKE)
def test_a_class_that_hangs_leaves_the_others_served(way_to: Open, name: str) -> None:
    way = way_to(name, threads=4, limit=4, cap=3)
    held = hold(way.server, 3)  # all that one class may hold of four
    fourth = way.send("/block/held")
    wait_statistics(way.server, waiting=1)
    for _ in range(3):
        assert way.get("/echo/a").status == 200
    assert statistics(way.server)["partitions"]["/block"]["inflight"] == 3
    held.release()
    assert fourth.response().status == 200
    settled(way.server)


@pytest.mark.parametrize("name", DIRECT)
def test_a_request_learns_its_class(way_to: Open, name: str) -> None:
    way = way_to(name, limit=2, routes={"/decision/pay": "high"})
    seen = way.get("/decision/pay").json()
    assert (seen["decision"], seen["priority"]) == ("admitted", "high")
    assert seen["partition"] == "/decision/pay"
    seen = way.get("/decision/other").json()
    assert (seen["priority"], seen["partition"]) == ("default", "/decision")
    classes = settled(way.server)["partitions"]
    assert classes["/decision/pay"]["granted"] == classes["/decision"]["granted"] == 1


@pytest.mark.parametrize("name", ALIKE)
def test_clients_that_say_nothing_cost_no_thread(way_to: Open, name: str) -> None:
    way = way_to(name, limit=2)
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(silent(way))  # has never sent anything
            stack.enter_context(way.connect())  # has shaken hands, where that is done
        for _ in range(2):  # and one that is kept alive
            kept = stack.enter_context(way.connect())
            assert way.send("/echo/a", connection=kept).response(keep=True).status == 200
        held = hold(way.server, 2)  # there are two threads for them
        held.release()
        settled(way.server)


@contextlib.contextmanager
def silent(way: Way) -> Iterator[None]:
    """A connection on which nothing is sent, not even the start of TLS."""
    with way.server.connect() as connection:
        peer = connection.getpeername()
    with socket.create_connection(peer):
        yield


@pytest.mark.parametrize("name", ["tcp", "unix", "tls"])
def test_the_time_a_client_thinks_is_no_queue_delay(way_to: Open, name: str) -> None:
    way = way_to(name, limit=2)
    assert way.get("/health").status == 200  # what waits for a worker to boot has waited
    with way.connect() as connection:
        for _ in range(2):
            thought = time.monotonic() + 0.1
            while time.monotonic() < thought:
                assert way.get("/health").status == 200
            began = time.monotonic()
            response = way.send("/decision", connection=connection).response(keep=True)
            taken = time.monotonic() - began
            # The kernel counts in steps of some milliseconds.
            assert response.json()["queue_delay"] <= taken + 0.01


@pytest.mark.parametrize("name", ["tcp", "unix", "tls"])
def test_clients_that_never_close_do_not_stop_the_worker(way_to: Open, name: str) -> None:
    way = way_to(name, limit=2)
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(way.connect()) for _ in range(8)]
        exchanges = [
            way.send(path, connection=connection, headers={"Connection": "close"})
            for path, connection in zip(("/echo/a", "/health") * 4, connections, strict=True)
        ]
        # gunicorn would wait for them one after another, for two seconds each.
        assert [one.response(keep=True).status for one in exchanges] == [200] * 8
        settled(way.server)


STALLED = {
    "nothing but the start of a line": b"GET /ec",
    "half of the headers": b"GET /echo/a HTTP/1.1\r\nHost: lo",
    "half of the body": b"POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nshort",
}


@pytest.mark.parametrize("name", DIRECT)
@pytest.mark.parametrize("sent", STALLED.values(), ids=STALLED)
def test_a_client_that_stops_sending_keeps_no_thread(way_to: Open, name: str, sent: bytes) -> None:
    way = way_to(name, limit=2, read_timeout="300ms")
    parked = name != "tls" and PARKS
    unread = name not in ("tcp", "unix") and not sent.startswith(b"POST")  # no slot without a head
    with contextlib.ExitStack() as stack:
        stalled = [stack.enter_context(way.connect()) for _ in range(2)]
        for connection in stalled:
            connection.sendall(sent)
        inflight = 0 if parked or unread else 2
        reading = 2 if PARKS and (parked or unread) else 0
        wait_statistics(way.server, inflight=inflight, reading=reading)
        assert way.get("/echo/a").status == 200  # at once, or when they are cut off
        for connection in stalled:
            answer = read_to_end(connection)
            assert answer[:12] == (b"HTTP/1.1 408" if parked else b"")
    settled(way.server)
    assert "Traceback" not in way.server.log
