"""The table of settings is complete, and what it shows can be written back."""

from __future__ import annotations

import attrs
import pytest

from gunicorn_admission.settings import Settings, load
from gunicorn_admission.settings.describe import ABOUT, explain, markdown_table

NAMES = [field.name for field in attrs.fields(Settings)]

SOME = Settings(
    mode="monitor",
    limit=8,
    min_limit=2,
    max_wait="75ms",
    target_delay="5ms",
    routes={
        "/pay": "high",
        "/x": "exempt",
        "/y": {"priority": "exempt", "methods": ["GET"]},
        "/plain": {},
        "/r": {
            "priority": "low",
            "cap": 4,
            "share": 0.25,
            "deadline": "1.5s",
            "retries": False,
            "stream": True,
            "release_on": "first_byte",
            "name": "reports",
            "methods": ["POST", "PUT"],
        },
    },
    exempt=["/a", "/b/*"],
    share={"/pay": 0.1},
    cap={"/pay": 3},
    retry_after=("1.5s", "2m"),
    gone_check=False,
    status_path="/-/admission",
    statsd_host="localhost:8125",
    statsd_prefix="shop",
)


def test_every_setting_is_described_in_order() -> None:
    assert list(ABOUT) == NAMES
    assert all(text.endswith(".") for text in ABOUT.values())


@pytest.mark.parametrize("settings", [Settings(), SOME, Settings(cap=4, limit="vegas")])
def test_what_is_shown_can_be_written_back(settings: Settings) -> None:
    _, sources = load()
    rows = explain(settings, sources)
    assert [row.name for row in rows] == NAMES
    environ = {f"GUNICORN_ADMISSION_{row.name.upper()}": row.value for row in rows}
    assert load(environ=environ)[0] == settings


def test_rows_tell_value_default_and_source() -> None:
    settings, sources = load({"max_wait": 0.05}, conf={"admission_exempt": ["/a", "/b"]})
    rows = {row.name: row[1:] for row in explain(settings, sources)}
    assert rows["max_wait"] == ("50ms", "none", "keyword argument max_wait")
    assert rows["exempt"] == ("/a,/b", "[]", "gunicorn config admission_exempt")
    assert rows["gone_check"] == ("true", "true", "default")


def test_markdown_has_one_line_a_setting() -> None:
    head, rule, *lines = markdown_table().splitlines()
    assert head == "| Setting | Default | What it does | Environment |"
    assert rule.count("|") == 5
    assert [line.split("`")[1] for line in lines] == NAMES
    assert all(line.count(" | ") == 3 for line in lines)
    assert "`GUNICORN_ADMISSION_MAX_WAIT`" in markdown_table()
    assert "| `interval` | `100ms` |" in markdown_table()
    assert "| `statsd_prefix` | (empty) |" in markdown_table()
