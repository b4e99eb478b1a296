"""
Health checks answer soon, on every way, whatever happens to all other requests.

Soon is judged against plain gunicorn under the same load at the same time: the worst of our
answers is there before its usual one.
"""

from __future__ import annotations

import contextlib
import socket
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.admission import configuration, hold, settled, wait_statistics
from tests.integration.crowd import Address, crowd
from tests.integration.ways import DIRECT, PROXY_V1, Way, open_way

CLIENTS = 24
PROBES = 40
#: The application takes 50 ms, on two threads: forty requests a second.
WORK = "/work/0.05"
ARGS = ("--threads", "2", "--keep-alive", "2")
WAYS = [name for name in DIRECT if name != "proxy-v2"]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Way]:
    conf = configuration(limit=2, interval="100ms", max_wait="100ms")
    with open_way(request.param, tmp_path, *ARGS, conf=conf) as way:
        assert way.get("/healthz").status == 200
        yield way


def probe(way: Way, count: int) -> list[float]:
    """Ask for the health check so often; how long each answer took, the fastest first."""
    taken = []
    for _ in range(count):
        began = time.monotonic()
        assert way.get("/healthz").text == "ok"
        taken.append(time.monotonic() - began)
    return sorted(taken)


def address(way: Way) -> Address:
    with way.server.connect() as connection:
        peer = connection.getpeername()
    return Address(
        path=peer if isinstance(peer, str) else "",
        port=0 if isinstance(peer, str) else peer[1],
        certificate=str(way.server.directory / "cert.pem") if way.name == "tls" else "",
        preamble=PROXY_V1.decode() if way.name == "proxy-v1" else "",
    )


def test_while_every_thread_hangs_and_clients_pile_up(way: Way) -> None:
    held = hold(way.server, 2)
    with contextlib.ExitStack() as stack:
        for _ in range(20):  # who shakes hands and then waits, or stops in the middle of a line
            stack.enter_context(way.connect())
            stack.enter_context(way.connect()).sendall(b"GET /echo/a HT")
            if way.name == "tls":
                hello = socket.create_connection(("127.0.0.1", address(way).port))
                stack.enter_context(hello).sendall(b"\x16\x03\x01\x02\0\x01")
        with crowd(address(way), CLIENTS, WORK) as clients:
            taken = probe(way, PROBES)
        # All others are refused, some after they have waited for 100 ms.
        assert clients.statuses[503] and set(clients.statuses) == {503}
        assert taken[-1] < 5  # what is not exempt has no thread until the end of the test
    held.release()
    settled(way.server)


def test_at_ten_times_the_load(way: Way, tmp_path: Path) -> None:
    plain_directory = tmp_path / "plain"
    plain_directory.mkdir()
    with open_way(way.name, plain_directory, *ARGS, conf="") as plain:
        with crowd(address(way), CLIENTS, WORK), crowd(address(plain), CLIENTS, WORK):
            wait_statistics(way.server, inflight=2)
            ours, theirs = [], []
            for _ in range(5):
                theirs += probe(plain, 1)
                ours += probe(way, PROBES // 5)
        assert sorted(ours)[-2] < statistics.median(theirs)
    seen = settled(way.server)
    if way.name != "tls":  # there handshakes bound what so few clients can ask for
        assert seen["arrivals"] > 3 * seen["granted"]
