"""The intake behind admission: class and priority of a source, and metrics on gunicorn's statsd."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.intake_calls import github_sent
from tests.integration.server import Gunicorn
from tests.integration.wire import PATIENCE

pytestmark = pytest.mark.integration

CONF = """
from gunicorn_admission.hooks import install
accesslog = "access.log"
access_log_format = "%(s)s %({gunicorn_admission.partition}e)s %({gunicorn_admission.priority}e)s"
install(globals(), statsd_interval=0.1)
"""


@pytest.fixture
def statsd() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as received:
        received.bind(("127.0.0.1", 0))
        received.settimeout(PATIENCE)
        yield received


def forget(statsd: socket.socket) -> None:
    """Throw away what was received, so that nothing is lost for want of room."""
    statsd.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while statsd.recv(65536):
            pass
    statsd.settimeout(PATIENCE)


def metric(statsd: socket.socket, name: str) -> str:
    """Wait for a metric; its value."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for line in statsd.recv(65536).decode().splitlines():
            if line.startswith(f"{name}:"):
                return line.removeprefix(f"{name}:")
    raise AssertionError(f"no {name}")


def test_class_priority_and_metrics(
    tmp_path: Path, sqlite_store_url: str, statsd: socket.socket
) -> None:
    host, port = statsd.getsockname()
    server = Gunicorn(
        "--threads=8",
        f"--statsd-host={host}:{port}",
        directory=tmp_path,
        app="tests.integration.apps_webhooks:application",
        conf=CONF,
        env={"TEST_STORE_URL": sqlite_store_url},
    )
    with server:
        server.get("/healthz", timeout=60)  # it imports much at its start
        forget(statsd)
        sent = github_sent(b"{}", "d-1")
        for path in ("/hooks/load", "/hooks/small", "/hooks/nothing"):
            server.get(path, method="POST", headers=sent.headers, body=sent.body)
        assert metric(statsd, "gunicorn.webhooks.intake_requests.load.stored").startswith("1|c")
        assert metric(statsd, "gunicorn.webhooks.commit").endswith("|ms")
    lines = (tmp_path / "access.log").read_text().splitlines()
    # Before the very first request: rules come with the application, not with its requests.
    expected = ["200 hooks/load high", "200 hooks/small low", "404 /hooks default"]
    assert lines[1:] == expected
