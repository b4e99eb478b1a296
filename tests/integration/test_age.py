"""A sync worker: requests that have waited too long are refused in front of the application."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from tests.integration.admission import (
    APP,
    Start,
    assert_refused,
    configuration,
    hold,
    settled,
    statistics,
)
from tests.integration.server import Gunicorn
from tests.integration.wire import PATIENCE, Exchange

CALM = {"max_wait": "100ms", "routes": {"/echo/high": "high", "/echo/low": "low"}}
_OLD = 0.2


def wait_for_age(exchange: Exchange, seconds: float) -> None:
    """Wait until the kernel says that nothing was sent for so long (``tcpi_last_data_sent``)."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        info = exchange.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 48)
        if int.from_bytes(info[44:], "little") >= seconds * 1000:
            return
        time.sleep(0.005)
    raise AssertionError("the kernel's clock stands still")


@pytest.fixture
def sync(gunicorn: Start) -> Start:
    """Start a sync worker on TCP, where the kernel knows how long a request has waited."""

    def start(*args: str, bind: str = "tcp", **settings: Any) -> Gunicorn:
        conf = configuration(**{**CALM, **settings})
        server = gunicorn(*args, app=APP, conf=conf, bind=bind)
        server.wait_log("admission: age, SyncWorker refuses what is older than 0.1 s")
        return server

    return start


def queued(server: Gunicorn, *paths: str, **request: Any) -> list[Exchange]:
    """Send requests behind one that blocks, and let them through once they are old."""
    held = hold(server, 1)
    exchanges = [server.send(path, **request) for path in paths]
    wait_for_age(exchanges[-1], _OLD)
    held.release()
    return exchanges


def test_what_is_too_old_never_reaches_the_application(sync: Start) -> None:
    server = sync()
    old = queued(server, "/echo/a", "/echo/b")
    for exchange in old:
        assert_refused(exchange.response(), "expired")
    assert server.get("/echo/c").status == 200
    assert [row["path"] for row in server.records(event="call")][1:] == ["/echo/c"]
    seen = settled(server)
    assert seen["installed"] == "age"
    assert seen["shed"] == {"default expired": 2}
    assert (seen["granted"], seen["nr"]) == (2, 3)  # refusals do not count; this one does


def test_priorities_and_health_have_their_own_patience(sync: Start) -> None:
    server = sync()
    high, low, health = queued(server, "/echo/high", "/echo/low", "/health")
    assert high.response().status == 200
    assert_refused(low.response(), "expired")
    assert health.response().status == 200


def test_a_deadline_counts_for_high_as_well(sync: Start) -> None:
    routes = {"/echo/late": {"priority": "high", "deadline": "100ms"}}
    server = sync(routes=routes)
    # The first one after a while is let through, to learn whether it is quick by now.
    (late,) = queued(server, "/echo/late")
    assert_refused(late.response(), "deadline")
    assert server.get("/echo/late").status == 200


def test_monitor_only_counts(sync: Start) -> None:
    server = sync(mode="monitor")
    (old,) = queued(server, "/echo/a")
    assert old.response().status == 200
    seen = settled(server)
    assert seen["would_shed"] == {"default expired": 1}
    assert seen["shed"] == {}


@pytest.mark.parametrize("size", [1 << 10, 200 << 10])
def test_a_refused_body_is_read(sync: Start, size: int) -> None:
    server = sync()
    (old,) = queued(server, "/read/none", method="POST", body=b"x" * size)
    assert_refused(old.response(), "expired")


def test_a_refused_client_that_stops_sending_does_not_stop_the_worker(sync: Start) -> None:
    server = sync(drain_timeout="100ms")
    headers = {"Content-Length": "1000"}
    (old,) = queued(server, "/read/none", method="POST", headers=headers, body=b"short")
    assert_refused(old.response(keep=True), "expired")
    try:
        assert server.get("/echo/high").status == 200  # gunicorn waits for the client to close
    finally:
        old.close()


def started(seconds_ago: float) -> dict[str, str]:
    return {"X-Request-Start": f"t={time.time() - seconds_ago:.3f}"}


@pytest.mark.parametrize("bind", ["tcp", "unix"])
def test_the_word_of_a_trusted_proxy_counts_on_every_kind_of_socket(sync: Start, bind: str) -> None:
    server = sync(bind=bind, trust_request_start=True)
    assert server.get("/echo/a", headers=started(0)).status == 200
    assert_refused(server.get("/echo/a", headers=started(5)), "expired")
    assert server.get("/echo/a", headers={"X-Request-Start": "yesterday"}).status == 200
    assert server.get("/echo/a").status == 200
    assert statistics(server)["shed"] == {"default expired": 1}


@pytest.mark.parametrize(
    ("args", "settings"),
    [
        (("--forwarded-allow-ips", "192.0.2.1"), {"trust_request_start": True}),
        ((), {"trust_request_start": False}),
    ],
    ids=["from somebody else", "by default"],
)
def test_nobody_else_is_believed(
    sync: Start, args: tuple[str, ...], settings: dict[str, Any]
) -> None:
    server = sync(*args, **settings)
    for seconds in (0, 5, -0.5, 5):  # a clock that is ahead would make all others late
        assert server.get("/echo/a", headers=started(seconds)).status == 200


def test_sizes_for_threaded_workers_do_not_matter(sync: Start) -> None:
    server = sync(limit=8, max_queue=4, cap=3, share={"/echo": 0.5}, min_limit=2)
    assert server.get("/echo/a").status == 200
    assert server.get("/decision").status == 200
