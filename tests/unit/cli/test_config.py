"""``gunicorn-admission config``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gunicorn_admission.cli.verbs import root


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings but those that a test makes."""
    monkeypatch.chdir(tmp_path)


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(root, ["config", *map(str, arguments)])


def settings(*arguments: str | Path) -> dict[str, dict[str, str]]:
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, dict[str, str]] = json.loads(result.stdout)["settings"]
    return found


def test_defaults() -> None:
    found = settings()
    assert found["limit"] == {"value": "adaptive", "default": "adaptive", "source": "default"}
    assert {row["source"] for row in found.values()} == {"default"}


def test_every_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gunicorn_admission.toml").write_text(
        '[gunicorn_admission]\nmax_queue = 7\nmode = "monitor"\n'
    )
    monkeypatch.setenv("GUNICORN_ADMISSION_MODE", "enforce")
    conf = tmp_path / "gunicorn.conf.py"
    conf.write_text(
        "from gunicorn_admission import hooks\n"
        "admission_max_wait = '40ms'\nadmission_interval = '1s'\n"
        "hooks.install(globals(), interval='200ms')\n"
    )
    found = settings("-c", conf)
    assert found["max_queue"]["value"] == "7"
    assert found["max_queue"]["source"].startswith("file ")
    assert found["mode"]["source"] == "environment GUNICORN_ADMISSION_MODE"
    assert found["max_wait"]["value"] == "40ms"
    assert found["max_wait"]["source"] == "gunicorn config admission_max_wait"
    assert found["interval"]["value"] == "200ms"
    assert found["interval"]["source"].startswith("keyword argument")


def test_a_conf_that_does_not_install(tmp_path: Path) -> None:
    conf = tmp_path / "gunicorn.conf.py"
    conf.write_text("threads = 8\nadmission_limit = 3\n")
    assert settings("--conf", conf)["limit"]["value"] == "3"
    assert json.loads(call("--conf", conf, "--json").stdout)["derived"]["threads"] == 8


def test_what_follows_from_the_threads() -> None:
    document = json.loads(call("--threads", "64", "--json").stdout)
    assert document["derived"] == {
        "threads": 64, "limit": "adaptive", "min_limit": "8", "max_limit": "64",
        "max_queue": "256", "max_wait": "500ms", "cap": "56",
    }  # fmt: skip
    assert "derived" not in json.loads(call("--json").stdout)
    assert "With 64 threads:" in call("--threads", "64").stdout


def test_a_table() -> None:
    result = call()
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["setting", "value", "from"]
    assert [line for line in lines if line.split()[:3] == ["mode", "enforce", "default"]]


def test_brackets_are_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUNICORN_ADMISSION_STATSD_PREFIX", "x[red]")
    assert "x[red]" in call().stdout


def test_a_bad_value_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUNICORN_ADMISSION_LIMIT", "adaptiv")
    result = call()
    assert result.exit_code == 2
    assert "environment GUNICORN_ADMISSION_LIMIT" in result.stderr


def test_sizes_that_do_not_fit_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUNICORN_ADMISSION_MAX_LIMIT", "99")
    result = call("--threads", "8")
    assert result.exit_code == 2
    assert "GUNICORN_ADMISSION_MAX_LIMIT" in result.stderr


@pytest.mark.parametrize("text", ["1 / 0\n", "this is no python\n"])
def test_a_conf_that_cannot_be_run(tmp_path: Path, text: str) -> None:
    conf = tmp_path / "gunicorn.conf.py"
    conf.write_text(text)
    result = call("-c", conf)
    assert result.exit_code == 1
    assert "cannot be run" in result.stderr
