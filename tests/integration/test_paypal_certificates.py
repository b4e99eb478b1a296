"""PayPal's certificates with real threads and a real server on loopback in PayPal's place."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from gunicorn_admission.webhooks.providers import paypal_certificates
from gunicorn_admission.webhooks.providers.paypal_certificates import Certificates, fetch

pytestmark = pytest.mark.integration

BASE = "https://api.paypal.com/v1/notifications/certs/"
URL = BASE + "A"


class Asked(dict[str, bytes]):
    """A table that tells when as many as expected have looked in vain."""

    def __init__(self, expected: int) -> None:
        super().__init__()
        self._expected = threading.Semaphore(0)
        self._number = expected

    def get(self, key: str, default: object = None) -> bytes | None:  # type: ignore[override]
        found = super().get(key)
        self._expected.release()
        return found

    def wait(self) -> None:
        for _ in range(self._number):
            assert self._expected.acquire(timeout=30)


def test_many_first_requests_cause_one_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paypal_certificates, "_TIMEOUT", 30.0)
    asked: list[str] = []
    results: list[bytes | None] = []
    table = Asked(9)  # eight of the threads, and the second look of the one that fetches

    def get(url: str) -> bytes:
        asked.append(url)
        table.wait()
        return b"pem"

    certificates = Certificates(get)
    certificates._kept = table
    threads = [threading.Thread(target=lambda: results.append(certificates(URL))) for _ in range(8)]
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
