"""Workers without a pool that could be replaced: the gate where it helps, else off and said so."""

from __future__ import annotations

from pathlib import Path
from signal import SIGTERM

import pytest
from gunicorn.workers import SUPPORTED_WORKERS

from tests.integration.admission import (
    APP,
    Start,
    assert_refused,
    configuration,
    hold,
    settled,
    wait_statistics,
)
from tests.integration.server import Gunicorn

GEVENT = ("-k", "gevent", "--worker-connections", "8")
UNUSUAL = {"headers": {"Upgrade": "something"}}


@pytest.fixture
def gevent(gunicorn: Start) -> Gunicorn:
    """A server whose requests run in greenlets: two of eight may run, one may wait."""
    server = gunicorn(*GEVENT, app=APP, conf=configuration(limit=2, max_queue=1))
    server.wait_log("admission: gate, limit 2 of 8 threads")
    return server


def test_greenlets_wait_and_are_refused_in_the_gate(gevent: Gunicorn) -> None:
    held = hold(gevent, 2, handler="hold")
    waiting = gevent.send("/echo/a")
    wait_statistics(gevent, waiting=1)
    for _ in range(2):
        assert_refused(gevent.get("/echo/b"), "queue_full")
        assert_refused(gevent.get("/read/none", method="POST", body=b"x" * 200_000), "queue_full")
        assert gevent.get("/health").status == 200
    held.release()
    assert waiting.response().status == 200
    assert not gevent.records(path="/echo/b")
    seen = settled(gevent)
    assert (seen["installed"], seen["granted"]) == ("gate", 3)


@pytest.mark.parametrize("where", ["handler", "first", "later", "close"])
def test_a_bug_gives_the_slot_of_a_greenlet_back(gevent: Gunicorn, where: str) -> None:
    with gevent.connect() as connection:
        gevent.send(f"/raise/bug/{where}", connection=connection)
        connection.recv(1)
    assert settled(gevent)["granted"] == 1


def test_a_stopping_worker_answers_greenlets_that_wait(gevent: Gunicorn) -> None:
    held = hold(gevent, 2, handler="hold")
    waiting = gevent.send("/echo/a")
    wait_statistics(gevent, waiting=1)
    gevent.signal(SIGTERM)
    assert_refused(waiting.response(), "stopping")
    held.release()
    assert gevent.wait_exit() == 0


def test_refused_greenlets_do_not_use_up_max_requests(gunicorn: Start) -> None:
    conf = configuration(limit=2, max_queue=0)
    server = gunicorn(*GEVENT, "--max-requests", "20", app=APP, conf=conf)
    workers = server.workers()
    held = hold(server, 2, handler="hold")
    for _ in range(30):
        assert_refused(server.get("/echo/a"), "queue_full")
    held.release()
    assert server.workers() == workers
    assert "Autorestarting" not in server.log


@pytest.mark.skipif("asgi" not in SUPPORTED_WORKERS, reason="this gunicorn knows no ASGI")
def test_asgi_workers_boot_and_are_left_alone(gunicorn: Start) -> None:
    app = "tests.integration.apps_admission:asgi"
    server = gunicorn("-k", "asgi", app=app, conf=configuration())
    server.wait_log("admission: off: ASGIWorker does not serve WSGI")
    assert server.get("/").text == "ok"
    assert "Traceback" not in server.log


def test_a_pool_of_another_shape_gets_the_gate(gunicorn: Start, tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(
        """
from gunicorn.workers.gthread import ThreadWorker

class Worker(ThreadWorker):
    def init_process(self):
        self.enqueue = self.enqueue_req
        super().init_process()

    def __getattribute__(self, name):
        if name == "handle":
            raise AttributeError(name)
        return super().__getattribute__(name)
"""
    )
    server = gunicorn("-k", "theirs.Worker", "--threads", "4", app=APP, conf=configuration())
    server.wait_log("admission: gate, .*; Worker has no thread pool of a known shape")
