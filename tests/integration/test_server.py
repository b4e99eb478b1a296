"""The harness itself: it must notice what goes wrong, or tests built on it prove nothing."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.server import Gunicorn

Start = Callable[..., Gunicorn]


def test_blocked_requests_hold_threads_until_their_gate_opens(gunicorn: Start) -> None:
    server = gunicorn("--threads", "2")
    gate = server.gate("db")
    held = [server.send("/block/db") for _ in range(2)]
    server.wait_records(2, event="call", path="/block/db")
    probe = server.send("/health")
    gate.open()
    assert [exchange.response().status for exchange in held] == [200, 200]
    assert probe.response().text == "ok"
    assert server.records(event="call")[-1]["path"] == "/health"  # it waited for a thread


def test_stream_that_is_abandoned_is_closed(gunicorn: Start) -> None:
    server = gunicorn("--threads", "2")
    gate = server.gate("feed")
    exchange = server.send("/stream/feed?tail=10000")
    assert exchange.head() == 200
    assert exchange.read(5) == b"head\n"
    exchange.close()
    gate.open()
    server.wait_records(event="close", path="/stream/feed")


@pytest.mark.parametrize("bind", ["unix", "tcp"])
def test_handlers_answer(gunicorn: Start, bind: str) -> None:
    server = gunicorn("--threads", "2", bind=bind)
    echoed = server.get("/echo/a?b=c", method="POST", body=b"hello").json()
    assert (echoed["method"], echoed["query"], echoed["body"]) == ("POST", "b=c", "hello")
    assert [server.get(f"/file/{kind}").body for kind in ("real", "memory")] == [
        Path(__file__).with_name("apps.py").read_bytes()
    ] * 2
    assert server.get("/generator/none").text == "head\ntail\n"
    assert len(server.get("/large/100000").body) == 100_000
    assert server.get("/fail/before").status == 500
    assert server.get("/status/418").status == 418
    assert int(server.get("/pid").text) in server.workers()


def test_a_connection_can_be_kept(gunicorn: Start) -> None:
    server = gunicorn("--threads", "2")
    with server.connect() as connection:
        for _ in range(2):
            kept = server.send("/health", connection=connection).response(keep=True)
            assert kept.status == 200
    raw = server.raw(b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert raw.startswith(b"HTTP/1.1 200 OK\r\n")
    assert raw.endswith(b"ok")


def test_reload_replaces_every_worker(gunicorn: Start) -> None:
    server = gunicorn("--threads", "2", "--workers", "2")
    before = server.wait_workers(lambda pids: len(pids) == 2)
    server.reload()
    assert not set(before) & set(server.workers())
    assert server.get("/health").status == 200


def test_a_server_that_dies_at_start_fails_at_once_with_its_log(tmp_path: Path) -> None:
    server = Gunicorn(directory=tmp_path, conf="raise RuntimeError('no such conf')")
    with pytest.raises(AssertionError, match=r"(?s)gunicorn is dead.*no such conf"), server:
        pass


def test_processes_left_behind_fail_the_test(tmp_path: Path) -> None:
    conf = """
import signal, subprocess, sys
def when_ready(server):
    subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
"""
    server = Gunicorn("--threads", "2", directory=tmp_path, conf=conf)
    with server, pytest.raises(AssertionError, match=r"left .* behind"):
        server.stop(timeout=5.0)


def test_signals_reach_one_worker(gunicorn: Start) -> None:
    server = gunicorn("--threads", "2")
    (victim,) = server.workers()
    server.signal(signal.SIGKILL, victim)
    server.wait_workers(lambda pids: bool(pids) and victim not in pids)
    assert server.get("/health").status == 200


def test_a_run_that_ends_gives_its_output(
    gunicorn_run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    assert gunicorn_run("--check-config").returncode == 0
    bad = gunicorn_run("--check-config", conf="threads = 'many'")
    assert bad.returncode == 1
    assert "Invalid value for threads" in bad.stdout
