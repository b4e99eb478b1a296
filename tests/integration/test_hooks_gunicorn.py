"""``install(globals())`` at the end of real configurations."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from gunicorn.workers import SUPPORTED_WORKERS

from tests.integration.server import Gunicorn

Start = Callable[..., Gunicorn]
Run = Callable[..., subprocess.CompletedProcess[str]]

RECORDED = """
import sys
from tests.integration import recorder
sys.modules["gunicorn_admission.gthread"] = recorder
from tests.integration.apps import record
from gunicorn_admission.hooks import install

def note(event):
    record(event, {"PATH_INFO": ""})
"""
THREADS = ("--threads", "2")


def events(server: Gunicorn) -> list[str]:
    return [row["event"] for row in server.records()]


def test_the_users_hook_runs_first_then_ours(gunicorn: Start) -> None:
    conf = """
def post_worker_init(worker):
    note("theirs")
def post_request(worker, req, environ, resp):
    note("after")
def worker_exit(server, worker):
    note("left")
install(globals(), limit=2)
"""
    server = gunicorn(*THREADS, conf=RECORDED + conf)
    assert server.get("/health").status == 200
    server.stop()
    order = ["theirs", "install", "call", "after", "finish", "left", "stop"]
    assert events(server) == order
    assert server.records(event="install")[0]["limit"] == 2
    assert server.records(event="finish")[0]["path"] == "/health"


@pytest.mark.parametrize(
    "parameters", ["worker, req", "worker, req, environ", "worker, req, environ, resp"]
)
def test_post_request_gets_as_many_arguments_as_it_takes(gunicorn: Start, parameters: str) -> None:
    conf = f"""
def post_request({parameters}):
    note("after " + req.path)
install(globals())
"""
    server = gunicorn(*THREADS, conf=RECORDED + conf)
    server.get("/health")
    server.wait_records(event="finish")
    assert events(server)[-2:] == ["after /health", "finish"]


def test_a_raising_hook_is_reported_by_gunicorn_and_skips_nothing(gunicorn: Start) -> None:
    conf = """
def post_request(worker, req, environ, resp):
    raise ValueError("their bug")
install(globals())
"""
    server = gunicorn(*THREADS, conf=RECORDED + conf)
    assert server.get("/health").status == 200
    server.wait_records(event="finish")
    server.wait_log("Exception in post_request hook")
    server.wait_log("ValueError: their bug")
    assert "admission: " not in server.log


def test_a_raising_worker_hook_still_stops_the_boot(gunicorn_run: Run) -> None:
    conf = """
def post_worker_init(worker):
    raise ValueError("their bug")
install(globals())
"""
    ended = gunicorn_run(*THREADS, "--bind", "unix:g.sock", conf=RECORDED + conf)
    assert ended.returncode == 3  # gunicorn's code for a worker that failed to boot
    assert "ValueError: their bug" in ended.stdout


def test_a_request_that_never_got_an_environ_is_finished_too(gunicorn: Start) -> None:
    conf = """
def pre_request(worker, req):
    raise ValueError("refused in a hook")
install(globals())
"""
    server = gunicorn(*THREADS, conf=RECORDED + conf)
    assert server.get("/health").status == 500
    server.wait_records(event="finish", path="")


def test_hooks_may_be_dotted_names(gunicorn: Start, tmp_path: Path) -> None:
    (tmp_path / "siteconf.py").write_text(
        RECORDED + "def ready(worker):\n    note('dotted ' + str(worker.cfg.threads))\n"
    )
    conf = "post_worker_init = 'siteconf.ready'\ninstall(globals())\n"
    server = gunicorn(*THREADS, conf=RECORDED + conf)
    server.wait_records(event="install")
    assert events(server) == ["dotted 2", "install"]


def test_a_hook_that_gunicorn_refuses_is_refused_by_gunicorn(gunicorn_run: Run) -> None:
    conf = "def post_worker_init(): pass\ninstall(globals())\n"
    ended = gunicorn_run("--check-config", conf=RECORDED + conf)
    assert ended.returncode == 1
    assert "Invalid value for post_worker_init" in ended.stdout
    assert "arity of: 1" in ended.stdout


def test_a_hook_defined_later_is_chained_with_a_warning_on_start_and_reload(
    gunicorn: Start,
) -> None:
    conf = """
install(globals())
def post_worker_init(worker):
    note("theirs")
"""
    server = gunicorn(*THREADS, conf=RECORDED + conf)
    server.wait_log("defines post_worker_init after install")
    server.wait_records(event="install")
    server.reload()
    server.wait_log("defines post_worker_init after install", count=2)
    server.wait_records(2, event="install")
    boots = [event for event in events(server) if event != "stop"]
    assert boots == ["theirs", "install"] * 2


def test_a_good_configuration_says_nothing(gunicorn: Start) -> None:
    server = gunicorn(*THREADS, conf=RECORDED + "install(globals())")
    server.reload()
    assert server.get("/health").status == 200
    assert "admission: " not in server.log


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("install(globals(), limit='adaptiv')", "limit = 'adaptiv'"),
        ("admission_limit = 'adaptiv'\ninstall(globals())", "gunicorn config admission_limit"),
        ("admission_limt = 3\ninstall(globals())", "admission_limt"),
        ("install(globals(), limt=3)", "limt"),
        ("install(globals(), limit=2)\ninstall(globals(), limit=3)", "the settings of the first"),
    ],
)
def test_check_config_fails_on_a_bad_setting(gunicorn_run: Run, text: str, named: str) -> None:
    ended = gunicorn_run("--check-config", conf=RECORDED + text)
    assert ended.returncode == 1
    (line,) = [row for row in ended.stdout.splitlines() if "ConfigError: " in row]
    assert named in line
    assert "Hint: " in line


def test_check_config_fails_on_a_bad_environment(gunicorn_run: Run) -> None:
    env = {"GUNICORN_ADMISSION_LIMIT": "adaptiv"}
    ended = gunicorn_run("--check-config", conf=RECORDED + "install(globals())", env=env)
    assert ended.returncode == 1
    assert "GUNICORN_ADMISSION_LIMIT" in ended.stdout


def test_check_config_passes_without_starting_anything(gunicorn_run: Run) -> None:
    conf = "install(globals(), limit=3)\n"
    ended = gunicorn_run("--check-config", *THREADS, conf=RECORDED + conf)
    assert (ended.returncode, ended.stdout) == (0, "")


def test_keywords_win_over_names_and_names_over_the_environment(gunicorn: Start) -> None:
    conf = "admission_limit = 2\nadmission_max_queue = 9\ninstall(globals(), max_queue=8)\n"
    server = gunicorn(*THREADS, conf=RECORDED + conf, env={"GUNICORN_ADMISSION_LIMIT": "1"})
    (row,) = server.wait_records(event="install")
    assert (row["limit"], row["max_queue"]) == (2, 8)


def test_a_reload_reads_the_configuration_again(gunicorn: Start, tmp_path: Path) -> None:
    server = gunicorn(*THREADS, conf=RECORDED + "install(globals(), max_queue=3)")
    server.wait_records(event="install", max_queue=3)
    (tmp_path / "gunicorn.conf.py").write_text(RECORDED + "install(globals(), max_queue=14)")
    server.reload()
    server.wait_records(event="install", max_queue=14)
    assert server.get("/health").status == 200
    assert len(server.wait_records(event="finish")) == 1


def test_variables_set_by_the_configuration_reach_the_worker(gunicorn: Start) -> None:
    conf = "raw_env = ['GUNICORN_ADMISSION_LIMIT=2']\ninstall(globals())\n"
    server = gunicorn(*THREADS, conf=RECORDED + conf)
    server.wait_records(event="install", limit=2)


def test_a_bad_variable_set_by_the_configuration_stops_the_start(gunicorn_run: Run) -> None:
    conf = "raw_env = ['GUNICORN_ADMISSION_LIMIT=adaptiv']\ninstall(globals())\n"
    ended = gunicorn_run(*THREADS, "--bind", "unix:g.sock", conf=RECORDED + conf)
    assert ended.returncode == 1
    assert "[ERROR] admission: " in ended.stdout
    assert "Traceback" not in ended.stdout


def test_a_bad_variable_at_reload_does_not_take_the_site_down(
    gunicorn: Start, tmp_path: Path
) -> None:
    server = gunicorn(*THREADS, conf=RECORDED + "install(globals(), max_queue=8)")
    server.wait_records(event="install")
    (tmp_path / "gunicorn.conf.py").write_text(
        RECORDED + "raw_env = ['GUNICORN_ADMISSION_LIMIT=adaptiv']\ninstall(globals(), max_queue=9)"
    )
    server.reload()
    server.wait_records(event="install", max_queue=9, limit="adaptive")
    assert server.get("/health").status == 200
    server.wait_log(r"\[ERROR\] admission: .*GUNICORN_ADMISSION_LIMIT")


def test_a_limit_above_the_threads_stops_the_start(gunicorn_run: Run) -> None:
    conf = "install(globals(), max_limit=8)\n"
    ended = gunicorn_run(*THREADS, "--bind", "unix:g.sock", conf=RECORDED + conf)
    assert ended.returncode == 1
    assert "[ERROR] admission: max_limit = 8" in ended.stdout
    assert "there are 2 threads" in ended.stdout


def test_our_bug_does_not_take_the_site_down(gunicorn: Start) -> None:
    conf = """
def broken(*args):
    raise RuntimeError("our bug")
recorder.install = broken
install(globals())
"""
    server = gunicorn(*THREADS, conf=RECORDED + conf)
    assert server.get("/health").status == 200
    server.wait_log("post_worker_init failed, requests are served without it")
    assert server.records(event="finish") == []


def test_our_bug_in_every_request_is_logged_once(gunicorn: Start) -> None:
    conf = """
def broken(worker, environ):
    note("finish")
    raise RuntimeError("our bug")
recorder.finish_request = broken
install(globals())
"""
    server = gunicorn(*THREADS, conf=RECORDED + conf)
    for _ in range(3):
        assert server.get("/health").status == 200
    server.wait_records(3, event="finish")
    server.stop()
    assert server.log.count("post_request failed, requests are served without it") == 1


def test_preload_and_two_workers(gunicorn: Start) -> None:
    conf = "workers = 2\npreload_app = True\ninstall(globals())\n"
    server = gunicorn(*THREADS, conf=RECORDED + conf)
    rows = server.wait_records(2, event="install")
    assert {row["pid"] for row in rows} == set(server.workers())


REAL = "from gunicorn_admission.hooks import install\ninstall(globals())\n"


def test_the_real_worker_side_is_found_and_announced(gunicorn: Start) -> None:
    server = gunicorn(*THREADS, conf=REAL)
    server.wait_log("admission: executor, limit adaptive of 2 threads")
    token = server.get("/echo").json()["environ"]
    assert token["gunicorn_admission.decision"]
    assert server.stop() == 0
    assert "Traceback" not in server.log


def test_sync_workers_serve_and_say_what_they_refuse(gunicorn: Start) -> None:
    server = gunicorn(conf=REAL)
    server.wait_log("admission: age, SyncWorker refuses what is older than 0.5 s")
    assert server.get("/health").status == 200


def test_a_worker_that_serves_no_wsgi_boots_all_the_same(gunicorn: Start, tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text(
        "from gunicorn.workers.sync import SyncWorker\n"
        "class Bare(SyncWorker):\n"
        "    def load_wsgi(self):\n"
        "        self.app.wsgi()\n"
    )
    server = gunicorn("-k", "bare.Bare", conf=REAL)
    server.wait_log("admission: off: Bare does not serve WSGI")
    assert server.workers()


@pytest.mark.skipif("asgi" not in SUPPORTED_WORKERS, reason="gunicorn before 25")
def test_an_asgi_worker_is_left_alone(gunicorn: Start, tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text(
        "async def application(scope, receive, send):\n"
        "    if scope['type'] != 'http':\n"
        "        raise NotImplementedError  # no lifespan\n"
        "    headers = [(b'content-length', b'2')]\n"
        "    await send({'type': 'http.response.start', 'status': 200, 'headers': headers})\n"
        "    await send({'type': 'http.response.body', 'body': b'ok'})\n"
    )
    server = gunicorn("-k", "asgi", app="bare:application", conf=REAL)
    server.wait_log("admission: off: ASGIWorker does not serve WSGI")
    assert server.get("/").text == "ok"
    server.stop()
    assert "failed" not in server.log
