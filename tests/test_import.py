"""What an import costs, counted in modules and threads rather than in milliseconds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import gunicorn_admission

ROOT = Path(__file__).resolve().parent.parent

FOREIGN = {
    "django", "flask", "gevent", "matplotlib", "opentelemetry", "prometheus_client", "rich",
    "sqlalchemy", "statsd", "werkzeug",
}  # fmt: skip


def loaded(statement: str) -> tuple[set[str], int]:
    """Modules that a fresh interpreter has after the statement, and how many threads run."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{statement}\n"
        "import os; names, threads = list(sys.modules), len(os.listdir('/proc/self/task'))\n"
        "import json; print(json.dumps([names, threads]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    names, threads = json.loads(done.stdout)
    return set(names), threads


def test_the_package_alone_loads_nothing_but_typing() -> None:
    before, _ = loaded("import __future__, typing")
    after, threads = loaded("import gunicorn_admission")
    assert after - before == {"gunicorn_admission"}
    assert threads == 1


@pytest.mark.parametrize("module", ["hooks", "settings", "limiter", "gthread", "wsgi", "worker"])
def test_a_module_loads_no_framework_and_starts_no_thread(module: str) -> None:
    names, threads = loaded(f"import gunicorn_admission.{module}")
    assert FOREIGN & {name.partition(".")[0] for name in names} == set()
    assert threads == 1


@pytest.mark.parametrize("module", ["settings", "limiter"])
def test_what_works_without_a_server_does_not_load_one(module: str) -> None:
    names, _ = loaded(f"import gunicorn_admission.{module}")
    assert "gunicorn" not in names


def test_reading_a_configuration_leaves_the_worker_side_to_the_worker() -> None:
    names, _ = loaded("from gunicorn_admission.hooks import install; install(globals(), limit=3)")
    sides = ("gthread", "limiter", "wsgi", "worker", "observe")
    assert names.isdisjoint(f"gunicorn_admission.{side}" for side in sides)


@pytest.mark.parametrize("name", gunicorn_admission.__all__)
def test_a_public_name_is_there_and_keeps_its_identity(name: str) -> None:
    value = getattr(gunicorn_admission, name)
    assert value is getattr(gunicorn_admission, name)
    assert value.__doc__
    assert name in dir(gunicorn_admission)


def test_public_names_are_few_and_each_has_a_home() -> None:
    names = gunicorn_admission.__all__
    assert len(names) <= 15
    assert names == sorted(names)
    assert names == list(gunicorn_admission._HOMES)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Limitr'"):
        gunicorn_admission.Limitr  # noqa: B018


@pytest.mark.parametrize("package", ["gunicorn_admission", "flask_ext"])
def test_types_are_marked(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()
