"""Refused requests show: in the statistics, in the access log and in statsd."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from tests.integration.admission import APP, Start, assert_refused, configuration, hold, statistics
from tests.integration.wire import PATIENCE

TWO = ("--threads", "2")
#: Makes a request that is refused by gunicorn's own code, in a thread.
UNUSUAL = {"headers": {"Upgrade": "something"}}


class Statsd:
    """A statsd server that keeps what it gets."""

    def __init__(self, port: socket.socket) -> None:
        self._socket = port
        self._socket.settimeout(0.1)
        self._lines: list[str] = []

    @property
    def address(self) -> str:
        """For ``--statsd-host``."""
        host, port = self._socket.getsockname()
        return f"{host}:{port}"

    def wait(self, start: str) -> str:
        """Wait for a line that starts so; that line."""
        deadline = time.monotonic() + PATIENCE
        while True:
            for line in self._lines:
                if line.startswith(start):
                    return line
            assert time.monotonic() < deadline, f"no {start} in {self._lines}"
            try:
                self._lines += self._socket.recv(65536).decode().splitlines()
            except TimeoutError:
                continue


@pytest.fixture
def statsd() -> Iterator[Statsd]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
        port.bind(("127.0.0.1", 0))
        yield Statsd(port)


def test_refused_through_gunicorn_or_before_it(gunicorn: Start, statsd: Statsd) -> None:
    conf = configuration(limit=2, max_queue=0, statsd_interval="100ms")
    log = ("--access-logfile", "-", "--access-logformat", "access %(U)s %(s)s")
    server = gunicorn(*TWO, *log, "--statsd-host", statsd.address, app=APP, conf=conf)
    held = hold(server, 2)
    assert_refused(server.get("/echo/early"), "queue_full")
    assert_refused(server.get("/echo/lane", **UNUSUAL), "queue_full")
    seen = statistics(server)
    assert seen["shed"] == {"default queue_full": 2}
    assert seen["partitions"]["/echo"]["shed"] == 2
    server.wait_log("access /echo/lane 503")
    assert statsd.wait("gunicorn.request.status.503:") == "gunicorn.request.status.503:1|c|@1.0"
    assert "access /echo/early" not in server.log  # it never got as far as gunicorn's parser
    assert statsd.wait("gunicorn.admission.shed")
    held.release()
    server.wait_log("access /block/held 200", count=2)


def test_the_log_says_when_overload_begins_and_ends(gunicorn: Start) -> None:
    conf = configuration(limit=2, max_queue=8, interval="20ms")
    server = gunicorn(*TWO, app=APP, conf=conf)
    held = hold(server, 2)
    waiting = [server.send("/echo/a") for _ in range(4)]
    server.wait_log("admission: overloaded")
    held.release()
    server.wait_log("admission: recovered")
    for exchange in waiting:
        assert exchange.response().status in (200, 503)
