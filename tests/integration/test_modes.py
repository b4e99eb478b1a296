"""What is enforced, only counted, switched off or refused as a setting; and how it got in."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from tests.integration.admission import (
    APP,
    Start,
    assert_refused,
    configuration,
    hold,
    settled,
    statistics,
    wait_statistics,
)

Run = Callable[..., subprocess.CompletedProcess[str]]

TWO = ("--threads", "2")
WORKER = ("-k", "gunicorn_admission.worker.AdmissionWorker")


def test_monitor_refuses_nothing_and_counts_what_it_would_refuse(gunicorn: Start) -> None:
    conf = configuration(mode="monitor", limit=1, max_queue=0, routes={"/echo/low": "low"})
    server = gunicorn(*TWO, app=APP, conf=conf)
    server.wait_log("admission: executor, .*, monitor")
    held = hold(server, 2)
    low = server.send("/echo/low")
    seen = wait_statistics(server, arrivals=3)
    assert seen["would_shed"] == {"default queue_full": 1, "low overloaded": 1}
    assert (seen["inflight"], seen["shed"]) == (3, {})
    held.release()
    assert low.response().status == 200
    settled(server)


def test_off_leaves_gunicorn_alone(gunicorn: Start) -> None:
    server = gunicorn(*TWO, app=APP, conf=configuration(mode="off"))
    server.wait_log("admission: off: mode = off")
    assert server.get("/echo/a").status == 200
    assert statistics(server)["installed"] == "off"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"limit": 3}, "limit = 3"),
        ({"max_wait": "soon"}, "max_wait = 'soon'"),
        ({"limt": 3}, "limt"),
    ],
)
def test_a_setting_that_cannot_work_stops_the_start(
    gunicorn_run: Run, settings: dict[str, object], message: str
) -> None:
    conf = configuration(**settings)
    ended = gunicorn_run(*TWO, "--bind", "unix:g.sock", app=APP, conf=conf)
    assert ended.returncode == 1
    assert message in ended.stdout
    assert "Hint: " in ended.stdout


CONF = """
from tests.integration import apps_admission

admission_limit = {limit}
admission_max_queue = 0
admission_exempt = ["/admission"]

def post_worker_init(worker):
    apps_admission.worker = worker
"""


def test_the_worker_class_needs_no_hook(gunicorn: Start) -> None:
    server = gunicorn(*WORKER, *TWO, app=APP, conf=CONF.format(limit=2))
    held = hold(server, 2)
    assert_refused(server.get("/echo/a"), "queue_full")
    assert server.get("/health").status == 200
    held.release()
    assert settled(server)["installed"] == "executor"
    assert server.log.count("admission: executor") == 1


def test_the_worker_class_serves_without_admission_rather_than_not_at_all(
    gunicorn: Start,
) -> None:
    server = gunicorn(*WORKER, *TWO, app=APP, conf=CONF.format(limit=3))
    server.wait_log(r"\[ERROR\] admission: limit = 3.*Requests are served without admission")
    assert server.get("/echo/a").status == 200


def test_hook_and_worker_class_together_install_once(gunicorn: Start) -> None:
    server = gunicorn(*WORKER, *TWO, app=APP, conf=configuration(limit=2))
    assert server.get("/echo/a").status == 200
    assert settled(server)["granted"] == 1
    server.stop()
    assert server.log.count("admission: executor") == 1
    assert "Traceback" not in server.log
