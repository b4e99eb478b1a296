"""PayPal's certificates with real threads and a real server on loopback in PayPal's place."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from gunicorn_admission.webhooks.providers.paypal_certificates import Certificates, fetch

pytestmark = pytest.mark.integration

BASE = "https://api.paypal.com/v1/notifications/certs/"
URL = BASE + "A"


def test_what_is_known_does_not_wait_for_a_fetch() -> None:
    began, go_on = threading.Event(), threading.Event()

    def slow(url: str) -> bytes | None:
        if url == URL:
            return b"known"
        began.set()
        go_on.wait(30)
        return b"late"

    certificates = Certificates(slow)
    certificates(URL)
    results: list[bytes | None] = []
    thread = threading.Thread(target=lambda: results.append(certificates(BASE + "B")))
    thread.start()
    try:
        assert began.wait(30)
        assert certificates(URL) == b"known"
        assert results == []
    finally:
        go_on.set()
        thread.join(30)
    assert results == [b"late"]


def test_many_first_requests_cause_one_fetch() -> None:
    asked: list[str] = []
    barrier = threading.Barrier(8)
    results: list[bytes | None] = []

    def get(url: str) -> bytes:
        asked.append(url)
        return b"pem"

    certificates = Certificates(get)

    def ask() -> None:
        barrier.wait(30)
        results.append(certificates(URL))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == [b"pem"] * 8
    assert asked == [URL]


class Answers(BaseHTTPRequestHandler):
    """Answers by path; on loopback, in place of PayPal."""

    def do_GET(self) -> None:
        body = b"x" * 70_000 if self.path == "/large" else b"pem"
        status = {"/missing": 404, "/moved": 302}.get(self.path, 200)
        self.send_response(status)
        self.send_header("Location", "/good")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        base = f"http://127.0.0.1:{server.server_port}"
        try:
            paths = ("/good", "/missing", "/moved", "/large")
            assert [fetch(base + path) for path in paths] == [b"pem", None, None, None]
        finally:
            server.shutdown()
            thread.join(30)
    assert fetch(base + "/good") is None
