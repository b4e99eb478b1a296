"""Settings that are fine alone and not together."""

from __future__ import annotations

from typing import Any

import pytest

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings import Settings


@pytest.mark.parametrize(
    ("values", "field", "said"),
    [
        ({"min_limit": 5, "max_limit": 4}, "min_limit", "at most max_limit = 4"),
        ({"limit": 5, "max_limit": 4}, "limit", "at most max_limit = 4"),
        ({"limit": 3, "min_limit": 4}, "limit", "at least min_limit = 4"),
        ({"interval": "5ms", "target_delay": "5ms"}, "interval", "above target_delay = 5ms"),
        ({"max_wait": "10ms", "low_max_wait": "20ms"}, "low_max_wait", "at most max_wait = 10ms"),
        ({"max_wait": 0, "low_max_wait": "20ms"}, "low_max_wait", "at most max_wait = 0s"),
        ({"retry_after": (30, 1)}, "retry_after", "swap them"),
        ({"retry_after": (0, 1)}, "retry_after", "above 0"),
        ({"retry_after": (1, "25h")}, "retry_after", "up to 24h"),
        ({"shed_status": 410}, "shed_status", "503 or 429"),
        ({"shed_status": 302}, "shed_status", "503 or 429"),
        ({"status_path": "admission"}, "status_path", "start it with a slash: /admission"),
        ({"status_path": "/"}, "status_path", "below the root"),
        ({"status_path": "=/a"}, "status_path", "below the root"),
        ({"status_path": "/a/*"}, "status_path", "below the root"),
        ({"statsd_host": "localhost:"}, "statsd_host", "host:port"),
        ({"statsd_host": "localhost:statsd"}, "statsd_host", "host:port"),
        ({"statsd_host": ""}, "statsd_host", "host:port"),
        ({"statsd_host": "a b:1"}, "statsd_host", "host:port"),
        ({"statsd_host": "unix:relative"}, "statsd_host", "unix:///path"),
        ({"routes": {"/a": "high", "/a/": "low"}}, "routes['/a/']", "compete with '/a'"),
        ({"routes": {"/a": "high"}, "exempt": ["/a"]}, "routes['/a']", "compete with '/a'"),
        ({"share": {"/a": 0.5, "/b": 0.41}}, "share", "sum to at most 0.9"),
        ({"share": {"/a": 0.5}, "routes": {"/b": {"share": 0.41}}}, "share", "sum to at most 0.9"),
        ({"share": {"reports": 0.1}}, "share['reports']", "known: (other)"),
        (
            {"share": {"report": 0.1}, "routes": {"/a": {"name": "reports"}}},
            "share['report']",
            "did you mean 'reports'?",
        ),
        ({"cap": {"/a": 3}, "partition_by": "route"}, "cap['/a']", "known: (default)"),
        ({"cap": {"/a/b": 3}}, "cap['/a/b']", "a first segment"),
        ({"cap": {7: 3}}, "cap[7]", "the name of a rule"),
        ({"cap": 3, "partition_by": "none"}, "partition_by", "share or cap"),
        (
            {"routes": {"/a": {"share": 0.1}}, "partition_by": "none"},
            "partition_by",
            "share and cap of '/a'",
        ),
        (
            {"routes": {"/a": {"cap": 3}}, "cap": {"/a": 4}},
            "cap['/a']",
            "3, as given for the same class '/a' elsewhere",
        ),
        (
            {"routes": {"/a": {"name": "x", "cap": 3}, "/b": {"name": "x", "cap": 4}}},
            "routes['/b'].cap",
            "the same class 'x'",
        ),
        (
            {"routes": {"/a": {"name": "x", "stream": True}, "/b": {"name": "x", "stream": False}}},
            "routes['/b'].stream",
            "the same class 'x'",
        ),
    ],
)  # fmt: skip
def test_contradiction(values: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(**values)
    assert caught.value.field == field
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        {"min_limit": 4, "max_limit": 4},
        {"limit": 4, "max_limit": 4, "min_limit": 4},
        {"max_wait": "20ms", "low_max_wait": "20ms"},
        {"low_max_wait": "1s"},
        {"retry_after": (5, 5)},
        {"share": {"/a": 0.05, "/b": 0.55, "/c": 0.3}},
        {"share": {"(other)": 0.1}, "cap": {"/": 2, "/a-b_c~d.e": 3}},
        {"partition_by": "route", "share": {"(default)": 0.5}},
        {"partition_by": "none", "routes": {"/a": {"priority": "low", "stream": True}}},
        {"routes": {"/a": {"share": 0.2}}, "share": {"/a": 0.2}},
        {"routes": {"/a": {"name": "x", "cap": 3}, "/b": {"name": "x", "priority": "low"}}},
        {"routes": {"/a": "exempt"}, "exempt": ["/a"]},
    ],
)
def test_no_contradiction(values: dict[str, Any]) -> None:
    Settings(**values)
