"""A page reaches a real Alertmanager, and from there whoever it notifies, with all in the text."""

from __future__ import annotations

import json
import queue
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from gunicorn_admission.webhooks.pages import (
    CeilingReached,
    Condition,
    Page,
    Pager,
    Severity,
    choose_channels,
    raise_page,
    resolve_page,
)
from gunicorn_admission.webhooks.store import Store

pytestmark = pytest.mark.integration

PATIENCE = 30.0

CONFIG = """
route:
  receiver: test
  group_by: [page]
  group_wait: 0s
  group_interval: 1s
receivers:
  - name: test
    webhook_configs:
      - url: {url}
        send_resolved: true
"""

PAGE = Page(
    key="usage-analytics/day/2026-11-30/deferred",
    condition=Condition.DEFERRED,
    severity=Severity.CRITICAL,
    consumer="usage-analytics",
    source="stripe",
    event_id="evt_01892",
    ceiling=CeilingReached(unit="requests", used=500, hard=500, window="day America/New_York"),
)


@pytest.fixture
def notified() -> Iterator[tuple[str, queue.Queue[dict[str, Any]]]]:
    """A receiver of Alertmanager's notifications, and what it got."""
    got: queue.Queue[dict[str, Any]] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", got
        server.shutdown()
        thread.join()


@pytest.fixture
def alertmanager(
    tmp_path: Path, notified: tuple[str, queue.Queue[dict[str, Any]]]
) -> Iterator[str]:
    program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    assert program, "prometheus-alertmanager is not installed"
    config = tmp_path / "alertmanager.yml"
    config.write_text(CONFIG.format(url=notified[0]))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (tmp_path / "alertmanager.log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={config}",
                f"--storage.path={tmp_path}/data",
                f"--web.listen-address=127.0.0.1:{port}",
                "--cluster.listen-address=",
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _until_ready(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(PATIENCE)
        print((tmp_path / "alertmanager.log").read_text())


def _until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends and process.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/-/ready", timeout=1).close()
            return
        except (OSError, urllib.error.URLError):
            time.sleep(0.05)  # it says nowhere but there that it is up
    raise AssertionError("the Alertmanager did not start")


def test_a_page_fires_once_and_is_resolved(
    tmp_path: Path, alertmanager: str, notified: tuple[str, queue.Queue[dict[str, Any]]]
) -> None:
    store = Store(f"sqlite:///{tmp_path}/pages.db")
    store.upgrade()
    pager = Pager(store, choose_channels([f"alertmanager:{alertmanager}"]))
    store.write(lambda connection: raise_page(connection, PAGE, store.now()))
    assert pager.tick() == 1

    firing = notified[1].get(timeout=PATIENCE)
    (alert,) = firing["alerts"]
    assert (firing["status"], alert["labels"]["consumer"]) == ("firing", "usage-analytics")
    summary = alert["annotations"]["summary"]
    for named in ("usage-analytics", "stripe/evt_01892", "500/500 requests", "DEFERRED"):
        assert named in summary
    assert "evt_01892" not in json.dumps(alert["labels"])

    store.write(lambda connection: resolve_page(connection, PAGE.key, store.now()))
    assert pager.tick() == 1
    resolved = notified[1].get(timeout=PATIENCE)
    assert (resolved["status"], len(resolved["alerts"])) == ("resolved", 1)
    store.close()
