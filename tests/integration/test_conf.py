"""``gunicorn -c python:gunicorn_admission.conf`` beside configurations of the user's own."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.server import Gunicorn
from tests.integration.test_hooks_gunicorn import RECORDED, events

Start = Callable[..., Gunicorn]
Run = Callable[..., subprocess.CompletedProcess[str]]

OURS = ("-c", "python:gunicorn_admission.conf")
VARIABLE = "GUNICORN_ADMISSION_CONF"


def test_the_default_file_applies_with_its_hooks_first(gunicorn: Start) -> None:
    conf = """
threads = 3
admission_limit = 2
def post_worker_init(worker):
    note("theirs")
"""
    server = gunicorn(*OURS, conf=RECORDED + conf)
    (row,) = server.wait_records(event="install")
    assert (row["threads"], row["limit"]) == (3, 2)
    assert server.get("/health").status == 200
    server.wait_records(event="finish")
    assert events(server) == ["theirs", "install", "call", "finish"]
    assert "admission: " not in server.log


def test_a_reload_reads_the_users_file_again_and_again(gunicorn: Start, tmp_path: Path) -> None:
    conf = RECORDED + "threads = {0}\nadmission_limit = {0}\n"
    server = gunicorn(*OURS, conf=conf.replace("{0}", "3"))
    server.wait_records(event="install", threads=3, limit=3)
    for number in (14, 105):
        (tmp_path / "gunicorn.conf.py").write_text(conf.replace("{0}", str(number)))
        server.reload()
        server.wait_records(event="install", threads=number, limit=number)
    assert server.get("/health").status == 200
    assert len(server.wait_records(event="finish")) == 1


def test_a_setting_taken_out_of_the_file_is_gone_after_a_reload(
    gunicorn: Start, tmp_path: Path
) -> None:
    server = gunicorn(*OURS, conf=RECORDED + "threads = 3\nadmission_limit = 3\n")
    server.wait_records(event="install", threads=3, limit=3)
    (tmp_path / "gunicorn.conf.py").write_text(RECORDED + "threads = 2\n")
    server.reload()
    server.wait_records(event="install", threads=2, limit="adaptive")


def test_a_named_file_is_relative_to_the_start_directory_even_after_chdir(
    gunicorn: Start, tmp_path: Path
) -> None:
    (tmp_path / "site").mkdir()
    named = tmp_path / "site" / "web.py"
    named.write_text(RECORDED + "threads = 3\nchdir = 'site'\n")
    server = gunicorn(*OURS, env={VARIABLE: "site/web.py"})
    server.wait_records(event="install", threads=3)
    named.write_text(RECORDED + "threads = 14\nchdir = 'site'\n")
    server.reload()
    server.wait_records(event="install", threads=14)
    assert Path(f"/proc/{server.pid}/cwd").resolve() == tmp_path / "site"


def test_a_named_file_replaces_the_default_file(gunicorn: Start, tmp_path: Path) -> None:
    (tmp_path / "web.py").write_text(RECORDED + "threads = 3\n")
    server = gunicorn(*OURS, conf="raise RuntimeError", env={VARIABLE: "file:web.py"})
    server.wait_records(event="install", threads=3)


def test_a_module_may_be_named(gunicorn: Start, tmp_path: Path) -> None:
    (tmp_path / "siteconf.py").write_text(RECORDED + "threads = 3\n")
    server = gunicorn(*OURS, env={VARIABLE: "python:siteconf"})
    server.wait_records(event="install", threads=3)


def test_a_missing_named_file_is_an_error_that_says_where_it_looked(
    gunicorn_run: Run, tmp_path: Path
) -> None:
    ended = gunicorn_run(*OURS, "--check-config", env={VARIABLE: "absent.py"})
    assert ended.returncode == 1
    assert f"{VARIABLE} = 'absent.py'" in ended.stdout
    assert str(tmp_path) in ended.stdout
    assert "Traceback" not in ended.stdout


def test_a_broken_file_fails_as_without_us(gunicorn_run: Run) -> None:
    ended = gunicorn_run(*OURS, "--check-config", conf="raise RuntimeError('their bug')")
    assert ended.returncode == 1
    assert "Failed to read config file" in ended.stdout
    assert "RuntimeError: their bug" in ended.stdout


@pytest.mark.parametrize(
    ("text", "named"),
    [("admission_limt = 3", "admission_limt"), ("admission_limit = 'adaptiv'", "admission_limit")],
)
def test_a_bad_setting_fails_the_check_in_one_line(
    gunicorn_run: Run, text: str, named: str
) -> None:
    ended = gunicorn_run(*OURS, "--check-config", conf=RECORDED + text)
    assert ended.returncode == 1
    (line,) = [row for row in ended.stdout.splitlines() if row]
    assert line.startswith("Error: ")
    assert named in line


def test_a_file_that_installs_itself_is_not_chained_twice(gunicorn: Start) -> None:
    conf = RECORDED + "threads = 3\ninstall(globals(), limit=2)\n"
    server = gunicorn(*OURS, conf=conf)
    assert server.get("/health").status == 200
    server.wait_records(event="finish")
    server.stop()
    assert events(server) == ["install", "call", "finish", "stop"]
    assert server.records(event="install")[0]["limit"] == 2


def test_it_works_without_any_file(gunicorn_run: Run) -> None:
    assert gunicorn_run(*OURS, "--check-config").stdout == ""
    ended = gunicorn_run(*OURS, "--check-config", env={"GUNICORN_ADMISSION_LIMIT": "adaptiv"})
    assert ended.returncode == 1
    assert "GUNICORN_ADMISSION_LIMIT" in ended.stdout


def test_the_files_own_names_do_not_disturb_ours(gunicorn: Start) -> None:
    conf = RECORDED + "threads = 3\nos = install = _install = globals = None\n"
    server = gunicorn(*OURS, conf=conf)
    server.wait_records(event="install", threads=3)
