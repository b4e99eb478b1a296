"""``gunicorn-admission simulate``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gunicorn_admission.cli.seeds import parse_seeds
from gunicorn_admission.cli.verbs import root
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.sim.library import catalogue
from tests.simulating import scenario


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One more scenario, which takes no time."""
    monkeypatch.setitem(catalogue._ALL, "small", scenario(seconds=1, rate=400, after="load"))
    yield


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(root, ["simulate", *map(str, arguments)])


def test_a_table() -> None:
    result = call("small", "--compare", "adaptive,oracle", "--seeds", "2", "--jobs", "1")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "small: a small one" in lines[0]
    assert [line.split()[0] for line in lines[2:4]] == ["adaptive", "oracle"]
    assert "mean of 2 seeds" in lines[-1]
    assert result.stderr == ""


def test_json() -> None:
    result = call("small", "--compare", "fixed:3", "--seeds", "5,9", "--jobs", "1", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["scenario"] == "small"
    assert document["seeds"] == [5, 9]
    (row,) = document["results"]
    assert row["limit"] == "fixed:3"
    assert 100 < row["goodput"] < 160
    assert row["priorities"] == {"default": row["success"]}


def test_a_plot(tmp_path: Path) -> None:
    plot = tmp_path / "out.png"
    result = call("small", "--compare", "pool", "--seeds", "1", "--jobs", "1", "--plot", plot)
    assert result.exit_code == 0
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_listing() -> None:
    result = call("--list")
    assert result.exit_code == 0
    assert "yardstick-A" in result.stdout
    names = [one["name"] for one in json.loads(call("--list", "--json").stdout)["scenarios"]]
    assert "retry-storm" in names


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["smal"], "did you mean 'small'"),
        (["small", "--compare", "adaptiv"], "did you mean 'adaptive'"),
        (["small", "--compare", "fixed"], "fixed:10"),
        (["small", "--seeds", "0"], "seeds"),
        (["small", "--seeds", "many"], "seeds"),
        (["small", "--plot", "out.txt"], ".png"),
        ([], "--list"),
    ],
)
def test_wrong_usage(arguments: list[str], words: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3", (1, 2, 3)), ("1", (1,)), ("4,8,15", (4, 8, 15)), ("7, 7, 0", (7, 0)), ("7,", (7,))],
)
def test_seeds(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "1;2", "99999", "²", ",", "1,,2"])
def test_what_is_no_seed(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_seeds(text)
