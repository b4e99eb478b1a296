"""Settings of an application: four places, and no name that is passed over."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from flask_ext.config import load_settings
from gunicorn_admission.errors import ConfigError


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where no file is


def load(
    keywords: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    environ: dict[str, str] | None = None,
) -> Any:
    return load_settings(keywords or {}, config or {}, environ or {})


def test_precedence(tmp_path: Path) -> None:
    (tmp_path / "gunicorn_admission.toml").write_text(
        "[gunicorn_admission]\nlimit = 1\nmax_queue = 1\nthreads = 1\nreserve = 1\n"
    )
    environ = {"GUNICORN_ADMISSION_LIMIT": "2", "GUNICORN_ADMISSION_MAX_QUEUE": "2",
               "GUNICORN_ADMISSION_THREADS": "22"}  # fmt: skip
    config = {"ADMISSION_LIMIT": 3, "ADMISSION_MAX_QUEUE": 3, "DEBUG": True, "admission_limit": 9}
    settings, sources = load({"limit": 4}, config, environ)
    assert (settings.limit, settings.max_queue, settings.threads, settings.reserve) == (4, 3, 22, 1)
    assert str(sources["limit"]) == "keyword argument limit"
    assert str(sources["max_queue"]) == "app.config ADMISSION_MAX_QUEUE"
    assert str(sources["threads"]) == "environment GUNICORN_ADMISSION_THREADS"
    assert sources["reserve"].kind == "file"


def test_the_real_environment_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUNICORN_ADMISSION_LIMIT", "7")
    assert load_settings({}, {}, os.environ)[0].limit == 7
    assert load_settings({}, {})[0].limit == 7


def test_unknown_name_in_the_config() -> None:
    with pytest.raises(ConfigError) as caught:
        load(config={"ADMISSION_LIMITS": 3})
    error = caught.value
    assert (error.field, error.source) == ("ADMISSION_LIMITS", "app.config")
    assert error.hint == "did you mean 'ADMISSION_LIMIT'?"


def test_unknown_keyword() -> None:
    with pytest.raises(ConfigError, match="did you mean 'max_wait'") as caught:
        load({"maxwait": 3})
    assert caught.value.source == "keyword argument"


@pytest.mark.parametrize(
    ("keywords", "config", "source"),
    [
        ({}, {"ADMISSION_LIMIT": 0}, "app.config ADMISSION_LIMIT"),
        ({"limit": 0}, {"ADMISSION_LIMIT": 3}, "keyword argument limit"),
        ({"limit": 0}, {}, "keyword argument limit"),
        (
            {},
            {"ADMISSION_MIN_LIMIT": 5, "ADMISSION_MAX_LIMIT": 4},
            "app.config ADMISSION_MIN_LIMIT",
        ),
        ({}, {"ADMISSION_ROUTES": {"/a": "hihg"}}, "app.config ADMISSION_ROUTES"),
    ],
)
def test_a_wrong_value_names_its_place(
    keywords: dict[str, Any], config: dict[str, Any], source: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(keywords, config)
    assert caught.value.source == source


def test_none_and_text_as_flask_loads_them_from_the_environment() -> None:
    settings, _ = load(config={"ADMISSION_MAX_WAIT": None, "ADMISSION_TARGET_DELAY": "5ms"})
    assert (settings.max_wait, settings.target_delay) == (None, 0.005)
