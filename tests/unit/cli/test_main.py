"""The command starts, and says what to install where a part is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
sys.argv = ["gunicorn-admission", *{arguments!r}]
from gunicorn_admission.cli.__main__ import main
main()
"""


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_module() -> None:
    done = python("-m", "gunicorn_admission.cli", "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: gunicorn-admission")
    assert len(done.stdout.splitlines()) < 40


@pytest.mark.parametrize(
    ("package", "extra", "arguments"),
    [
        ("click", "cli", ["config"]),
        ("rich", "cli", ["config"]),
        ("sqlalchemy", "sql", ["db", "upgrade", "--sql", "--help"]),
        ("alembic", "sql", ["db", "upgrade"]),
        ("psycopg", "postgres", ["db", "upgrade", "--url", "postgresql://h/db"]),
        ("simpy", "sim", ["simulate", "yardstick-A"]),
        ("matplotlib", "sim", ["simulate", "yardstick-A", "--plot", "x.png"]),
        ("simpy", "sim", ["tune", "--access-log", __file__]),
    ],
)
def test_one_sentence_for_a_missing_extra(package: str, extra: str, arguments: list[str]) -> None:
    done = python("-c", WITHOUT.format(package=package, arguments=arguments))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [done.stderr.strip()]
    assert f"pip install 'gunicorn-admission[{extra}]'" in done.stderr


@pytest.mark.parametrize("arguments", [["simulate", "--list"], ["config"]])
def test_what_needs_no_simulator_works_without(arguments: list[str]) -> None:
    done = python("-c", WITHOUT.format(package="simpy", arguments=arguments))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["config"]])
def test_what_needs_no_store_works_without(arguments: list[str]) -> None:
    done = python("-c", WITHOUT.format(package="sqlalchemy", arguments=arguments))
    assert done.returncode == 0, done.stderr


def test_an_import_error_of_our_own_is_not_hidden() -> None:
    done = python("-c", WITHOUT.format(package="json", arguments=["config"]))
    assert "Traceback" in done.stderr
