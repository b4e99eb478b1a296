"""``gunicorn-admission tune``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gunicorn_admission.cli.verbs import root
from gunicorn_admission.sim.tune import replay
from tests.access_logs import COMBINED, Line, served, written

OVER = ((20, 40), (10, 150), (10, 250))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings but those that a test makes."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replay little, so that it takes little time."""
    monkeypatch.setattr(replay, "_ARRIVALS", 300.0)
    monkeypatch.setattr(replay, "_LONG_ENOUGH", 4.0)


@pytest.fixture(scope="module")
def lines() -> Sequence[Line]:
    paths = ("/orders/1", "/items")
    return list(served(OVER, connections=4, threads=16, paths=paths))


@pytest.fixture
def log(lines: Sequence[Line], tmp_path: Path) -> Path:
    path = tmp_path / "access.log"
    path.write_text(written(lines))
    return path


def call(*arguments: str | Path, input: str | None = None) -> Result:
    options = ["tune", "--jobs", "1", "--seeds", "1", *map(str, arguments)]
    return CliRunner().invoke(root, options, input=input)


def document(*arguments: str | Path) -> dict[str, Any]:
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_for_people(log: Path) -> None:
    result = call("--access-log", log, "--threads", "16", "--route", "/orders=high")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    said = result.stdout
    assert "capacity       about 2" in said
    assert "over     over" in said
    assert "Recommended: " in said
    assert "routes={'/orders': 'high'})" in said
    assert "How sure: medium" in said
    assert "seconds are a short time" in said


def test_for_programs(log: Path) -> None:
    found = document("--access-log", log, "--threads", "16")
    assert found["log"]["requests"] == len(log.read_text().splitlines())
    assert found["log"]["format"] == f"{COMBINED} %(L)s"
    assert found["fit"]["capacity"]["known"]
    assert found["fit"]["capacity"]["connections"] in (4, 5)
    assert set(found["fit"]["classes"]) == {"/orders", "/items"}
    loads = {(row["candidate"], row["load"]) for row in found["results"]}
    assert ("the defaults", "overload") in loads
    assert ("no admission", "logged") in loads
    assert found["recommended"]["candidate"] in {name for name, _ in loads}
    assert found["certainty"]["level"] in ("low", "medium", "high")
    assert found["deployment"] == {"threads": 16, "workers": 1, "patience": 5.0}


def test_a_configuration_says_the_rest(lines: Sequence[Line], tmp_path: Path) -> None:
    format = '%(t)s %(p)s "%(r)s" %(M)s'
    (tmp_path / "access.log").write_text(written(lines, format))
    conf = tmp_path / "gunicorn.conf.py"
    conf.write_text(
        "from gunicorn_admission.hooks import install\n"
        f"threads = 12\nworkers = 2\naccess_log_format = {format!r}\n"
        "install(globals(), routes={'/orders': 'high'}, max_wait='50ms')\n"
    )
    options = ("--patience", "2s", "--route", "/items=low", "--partition-by", "route")
    found = document("--access-log", "access.log", "-c", conf, *options)
    assert found["log"]["format"] == format
    assert found["deployment"] == {"threads": 12, "workers": 2, "patience": 2.0}
    configured = [row for row in found["results"] if row["candidate"] == "as configured"]
    assert set(configured[0]["priorities"]) == {"high", "low"}


def test_standard_input(log: Path) -> None:
    result = call("--access-log", "-", "--connections", "9", input=log.read_text())
    assert result.exit_code == 0, result.stderr
    assert "9 at once" in result.stdout
    assert "number of threads was assumed" in result.stdout


def test_a_line_that_cannot_be_read(log: Path) -> None:
    rows = log.read_text().splitlines()
    rows[6] = "Traceback (most recent call last):"
    log.write_text("\n".join(rows) + "\n")
    result = call("--access-log", log)
    assert result.exit_code == 2
    assert "access.log, line 7" in result.stderr
    assert "--skip-unreadable" in result.stderr
    assert result.stdout == ""
    assert document("--access-log", log, "--skip-unreadable")["log"]["unreadable"] == 1


def test_a_log_without_durations(lines: Sequence[Line], tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(written(lines, COMBINED))
    result = call("--access-log", log)
    assert result.exit_code == 2
    assert f"access_log_format = '{COMBINED} %(L)s'" in result.stderr
    assert "line 1" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--route", "nothing"], "PATTERN=PRIORITY"),
        (["--route", "/a=hihg"], "did you mean 'high'"),
        (["--format", "%(h)s"], "%(t)s"),
        (["--seeds", "x"], "seeds"),
        (["--patience", "long"], "patience"),
        (["--threads", "0"], "--threads"),
    ],
)
def test_wrong_usage(arguments: list[str], words: str, log: Path) -> None:
    result = call("--access-log", log, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""
