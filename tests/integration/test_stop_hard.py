"""Whatever a worker is busy with, it answers what it has accepted, and then it is gone."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from signal import SIGQUIT, SIGSTOP, SIGTERM

import pytest

from tests.integration.admission import (
    APP,
    Start,
    assert_balanced,
    assert_refused,
    configuration,
    hold,
    statistics,
    wait_statistics,
)
from tests.integration.ways import open_way
from tests.integration.wire import read_to_end

TWO = ("--threads", "2")


@pytest.mark.parametrize("name", ["tls", "proxy-v1"])
def test_every_accepted_connection_gets_an_answer(tmp_path: Path, name: str) -> None:
    conf = configuration(limit=2, max_queue=2)
    with open_way(name, tmp_path, *TWO, "--graceful-timeout", "30", conf=conf) as way:
        held = hold(way.server, 2)
        waiting = [way.send(f"/echo/{number}") for number in range(2)]  # a full queue
        wait_statistics(way.server, waiting=2)
        body = [way.send("/read/none", method="POST", body=b"x" * 200_000)]
        way.server.signal(SIGTERM)
        for exchange in waiting:
            assert_refused(exchange.response(), "stopping")
        assert_refused(body[0].response(), ("queue_full", "stopping"))
        held.release()
        assert way.server.wait_exit() == 0
        (last,) = way.server.records(event="exit")
        assert_balanced(last["statistics"])
        assert last["statistics"]["inflight"] == last["statistics"]["waiting"] == 0


@pytest.mark.parametrize("name", ["tls"])
def test_quitting_leaves_nobody_behind(tmp_path: Path, name: str) -> None:
    conf = configuration(limit=2, max_queue=4)
    args = (*TWO, "--workers", "2")
    with open_way(name, tmp_path, *args, conf=conf) as way, contextlib.ExitStack() as stack:
        gate = way.server.gate("held")
        for _ in range(8):  # threads and queues of both
            exchange = way.send("/block/held")
            stack.callback(exchange.close)
        stack.enter_context(way.connect()).sendall(b"GET /ec")
        way.server.wait_records(2, event="call", path="/block/held")
        way.server.signal(SIGQUIT)
        way.server.wait_exit()  # with the gate closed
        gate.open()
    # open_way has looked for processes that are left.


def test_a_worker_whose_main_loop_hangs_is_aborted_and_replaced(gunicorn: Start) -> None:
    server = gunicorn(*TWO, "--timeout", "1", app=APP, conf=configuration(limit=2))
    held = hold(server, 2)
    waiting = server.send("/echo/a")
    (victim,) = server.workers()
    wait_statistics(server, waiting=1)
    os.kill(victim, SIGSTOP)  # as good as a main loop that never comes back
    server.wait_log("WORKER TIMEOUT")
    server.wait_workers(lambda pids: bool(pids) and victim not in pids)
    for exchange in (*held.exchanges, waiting):
        with exchange.connection as connection:
            read_to_end(connection)
    assert statistics(server)["inflight"] == 0


@pytest.mark.parametrize("name", ["tcp", "tls"])
def test_threads_that_never_end_do_not_outlive_the_grace(tmp_path: Path, name: str) -> None:
    conf = configuration(limit=2)
    with open_way(name, tmp_path, *TWO, "--graceful-timeout", "1", conf=conf) as way:
        held = hold(way.server, 2)
        way.server.signal(SIGTERM)
        assert way.server.wait_exit() == 0  # with the gate closed
        for exchange in held.exchanges:
            with exchange.connection as connection:
                read_to_end(connection)
