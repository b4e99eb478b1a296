"""Stopping, reloading, recycling and dying workers: nobody hangs, no slot is lost."""

from __future__ import annotations

import contextlib
import http.client
import threading
from pathlib import Path
from signal import SIGABRT, SIGHUP, SIGKILL, SIGQUIT, SIGTERM

import pytest

from tests.integration.admission import (
    APP,
    Start,
    assert_balanced,
    assert_refused,
    configuration,
    hold,
    settled,
    statistics,
    wait_statistics,
)
from tests.integration.wire import read_to_end

TWO = ("--threads", "2")
#: Makes a request that is refused by gunicorn's own code, in a thread.
UNUSUAL = {"headers": {"Upgrade": "something"}}


@pytest.mark.parametrize("bind", ["tcp", "unix"])
def test_stopping_answers_the_queue_and_finishes_what_runs(gunicorn: Start, bind: str) -> None:
    server = gunicorn(*TWO, app=APP, conf=configuration(limit=2), bind=bind)
    held = hold(server, 2)
    waiting = [server.send(f"/echo/{number}") for number in range(3)]
    wait_statistics(server, waiting=3)
    server.signal(SIGTERM)
    for exchange in waiting:  # answered while the threads are still taken
        response = exchange.response()
        assert_refused(response, "stopping")
        assert response.headers["connection"] == "close"
    held.release()
    assert server.wait_exit() == 0
    assert not server.records(path="/echo/0")
    (last,) = server.records(event="exit")
    assert_balanced(last["statistics"])
    assert last["statistics"]["inflight"] == last["statistics"]["waiting"] == 0


def test_quitting_does_not_wait_for_threads_that_are_blocked(gunicorn: Start) -> None:
    server = gunicorn(*TWO, app=APP, conf=configuration(limit=2))
    held = hold(server, 2)
    waiting = server.send("/echo/a")
    wait_statistics(server, waiting=1)
    server.signal(SIGQUIT)
    server.wait_exit()  # with the gate closed: an ordinary pool would be joined for ever
    for exchange in (*held.exchanges, waiting):
        with exchange.connection as connection:
            read_to_end(connection)


@pytest.mark.parametrize("number", [SIGABRT, SIGKILL])
def test_a_worker_that_is_killed_is_replaced_by_one_with_all_its_slots(
    gunicorn: Start, number: int
) -> None:
    server = gunicorn(*TWO, app=APP, conf=configuration(limit=2))
    held = hold(server, 2)
    (victim,) = server.workers()
    server.signal(number, victim)  # type: ignore[arg-type]
    server.wait_workers(lambda pids: bool(pids) and victim not in pids)
    for exchange in held.exchanges:
        with exchange.connection as connection:
            read_to_end(connection)
    seen = statistics(server)
    assert (seen["inflight"], seen["waiting"], seen["limit"]) == (0, 0, 2)
    hold(server, 2, "again").release()


def test_refusals_do_not_recycle_workers_but_requests_do(gunicorn: Start) -> None:
    conf = configuration(limit=2, max_queue=0)
    server = gunicorn(*TWO, "--max-requests", "20", app=APP, conf=conf)
    workers = server.workers()
    held = hold(server, 2)
    for _ in range(15):
        assert_refused(server.get("/echo/a"), "queue_full")
        assert_refused(server.get("/echo/a", **UNUSUAL), "queue_full")  # through gunicorn
    assert statistics(server)["nr"] == 3  # the two that are held, and this one
    for number in range(4, 20):
        assert statistics(server)["nr"] == number
    # One more request would be the last of this worker, so a refusal must not be it.
    assert_refused(server.get("/echo/a"), "queue_full")
    assert_refused(server.get("/echo/a", **UNUSUAL), "queue_full")
    assert server.workers() == workers
    assert "Autorestarting" not in server.log
    held.release()
    assert server.get("/echo/a").status == 200
    server.wait_workers(lambda pids: bool(pids) and workers[0] not in pids)
    settled(server)


def test_a_preloaded_application_has_a_limiter_a_worker(gunicorn: Start) -> None:
    server = gunicorn(*TWO, "--preload", "--workers", "2", app=APP, conf=configuration(limit=2))
    server.wait_log("admission: executor", count=2)
    held = hold(server, 1)
    server.get("/echo/a")
    held.release()
    server.stop()
    last = server.records(event="exit")
    assert len(last) == 2
    for row in last:
        assert_balanced(row["statistics"])
        assert row["statistics"]["inflight"] == 0
    assert sum(row["statistics"]["granted"] for row in last) == 2


def test_a_reload_under_load_loses_no_slot_and_reads_the_settings_again(
    gunicorn: Start, tmp_path: Path
) -> None:
    server = gunicorn(*TWO, app=APP, conf=configuration(limit=2))
    gate = server.gate("old")
    old = server.send("/block/old")
    server.wait_records(event="call", path="/block/old")
    (tmp_path / "gunicorn.conf.py").write_text(configuration(limit=1, max_queue=5))
    stop = threading.Event()
    statuses: list[int] = []

    def visit() -> None:
        while not stop.is_set():
            # gunicorn itself resets connections that it has not accepted when it stops.
            with contextlib.suppress(OSError, http.client.HTTPException):
                statuses.append(server.get("/echo/a").status)

    visitors = [threading.Thread(target=visit) for _ in range(3)]
    for visitor in visitors:
        visitor.start()
    before = server.workers()
    server.signal(SIGHUP)
    server.wait_log("admission: executor", count=2)
    gate.open()
    assert old.response().status == 200
    server.wait_workers(lambda pids: bool(pids) and before[0] not in pids)
    stop.set()
    for visitor in visitors:
        visitor.join()
    assert set(statuses) <= {200, 503}
    assert 200 in statuses
    assert settled(server)["limit"] == 1
    (last,) = server.records(event="exit")
    assert_balanced(last["statistics"])
    assert last["statistics"]["inflight"] == last["statistics"]["waiting"] == 0
