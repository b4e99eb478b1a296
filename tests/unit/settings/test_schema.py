"""Settings: defaults, conversions, and one error with field, value and hint for each mistake."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from gunicorn_admission.core.types import Mode, Priority
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings import Settings

NAMES = [field.name for field in attrs.fields(Settings)]


def refused(**values: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        Settings(**values)
    return caught.value


def test_defaults() -> None:
    settings = Settings()
    assert settings.mode == "enforce"
    assert settings.limit == "adaptive"
    assert settings.interval == 0.1
    assert settings.low_max_wait == 0.0
    assert settings.retry_after == (1.0, 30.0)
    assert settings.shed_status == 503
    assert settings.partition_by == "endpoint"
    assert settings.exempt_health is settings.gone_check is True
    assert settings.trust_request_start is False
    assert settings.drain_bytes == 1024 * 1024
    for name in ("min_limit", "max_limit", "max_queue", "max_wait", "target_delay", "cap",
                 "status_path", "reserve", "threads", "statsd_host"):  # fmt: skip
        assert getattr(settings, name) is None, name
    for name in ("routes", "share", "exempt"):
        assert not getattr(settings, name), name


def test_is_frozen_to_the_bottom() -> None:
    written = {"/a": "low"}
    settings = Settings(routes=written)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        settings.limit = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        settings.routes["/b"] = settings.routes["/a"]  # type: ignore[index]
    written["/b"] = "high"
    assert list(settings.routes) == ["/a"]


def test_accepts_only_keywords() -> None:
    with pytest.raises(TypeError):
        Settings("enforce")  # type: ignore[call-arg]


def test_evolve_keeps_the_rest() -> None:
    settings = Settings(routes={"/a": "low"}, cap={"/a": 3}, share={"/b": 0.1}, max_wait="50ms")
    changed = attrs.evolve(settings, limit=4)
    assert changed.limit == 4
    assert attrs.evolve(changed, limit="adaptive") == settings


@pytest.mark.parametrize(
    ("name", "written", "kept"),
    [
        ("mode", " Monitor ", "monitor"),
        ("mode", Mode.OFF, "off"),
        ("limit", 8, 8),
        ("limit", "8", 8),
        ("limit", "Vegas", "vegas"),
        ("max_queue", 0, 0),
        ("max_limit", "16", 16),
        ("max_wait", "50ms", 0.05),
        ("max_wait", 0, 0.0),
        ("target_delay", timedelta(milliseconds=5), 0.005),
        ("retry_after", ["2s", 60], (2.0, 60.0)),
        ("exempt", ["/a", "/b/*"], ("/a", "/b/*")),
        ("share", {"/a": 0.25}, {"/a": 0.25}),
        ("cap", 4, 4),
        ("cap", {"/a": 4}, {"/a": 4}),
        ("status_path", "/-/admission", "/-/admission"),
        ("statsd_host", "localhost", "localhost"),
        ("statsd_host", "localhost:8125", "localhost:8125"),
        ("statsd_host", "[::1]:8125", "[::1]:8125"),
        ("statsd_host", "unix:///run/statsd.sock", "unix:///run/statsd.sock"),
        ("shed_status", 429, 429),
        ("log_interval", 0, 0.0),
    ],
)
def test_converts(name: str, written: Any, kept: Any) -> None:
    value = getattr(Settings(**{name: written}), name)
    assert value == kept
    assert type(value) is type(kept) or isinstance(kept, dict)


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_refuses_what_makes_no_sense_and_names_itself(name: str) -> None:
    nonsense = object()
    error = refused(**{name: nonsense})
    assert error.field == name
    assert error.value is nonsense
    assert error.expected
    assert error.hint
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(
    "name", [n for n in NAMES if getattr(Settings(), n) is not None]
)  # fmt: skip
def test_only_derived_settings_may_be_none(name: str) -> None:
    assert refused(**{name: None}).field == name


@pytest.mark.parametrize("name", [n for n in NAMES if isinstance(getattr(Settings(), n), bool)])
@pytest.mark.parametrize("written", [0, 1, "yes"])
def test_switches_are_not_guessed(name: str, written: Any) -> None:
    assert refused(**{name: written}).expected == "True or False"


@pytest.mark.parametrize(
    ("values", "field", "said"),
    [
        ({"mode": "enforced"}, "mode", "did you mean 'enforce'?"),
        ({"limit": "adaptiv"}, "limit", "did you mean 'adaptive'?"),
        ({"limit": "fixed"}, "limit", "limit = 8"),
        ({"limit": 0}, "limit", "from 1 to"),
        ({"limit": -3}, "limit", "from 1 to"),
        ({"limit": True}, "limit", "an integer"),
        ({"limit": 2.5}, "limit", "one of adaptive"),
        ({"min_limit": 0}, "min_limit", "from 1 to"),
        ({"max_queue": -1}, "max_queue", "from 0 to"),
        ({"max_queue": 1.5}, "max_queue", "an integer"),
        ({"max_wait": "2h"}, "max_wait", "from 0s to 1h"),
        ({"target_delay": 0}, "target_delay", "follow the service time"),
        ({"interval": "0.1ms"}, "interval", "from 1ms to 1m"),
        ({"partition_by": "endpoints"}, "partition_by", "did you mean 'endpoint'?"),
        ({"partition_by": 3}, "partition_by", "known: endpoint, route, none"),
        ({"exempt": "/a"}, "exempt", "write ['/a']"),
        ({"exempt": ["a"]}, "exempt", "start it with a slash: /a"),
        ({"routes": ["/a"]}, "routes", "a mapping"),
        ({"routes": {"/a": "hihg"}}, "routes['/a']", "did you mean 'high'?"),
        ({"routes": {"a": "high"}}, "routes", "start it with a slash: /a"),
        ({"share": {"/a": 1.5}}, "share['/a']", "above 0 and below 1"),
        ({"cap": 0}, "cap", "an integer from 1"),
        ({"cap": {"/a": 0}}, "cap['/a']", "an integer from 1"),
        ({"cap": True}, "cap", "an integer from 1"),
        ({"retry_after": 5}, "retry_after", "two durations"),
        ({"retry_after": "1s"}, "retry_after", "two durations"),
        ({"retry_after": (1, 2, 3)}, "retry_after", "two durations"),
        ({"retry_after": (1, "x")}, "retry_after[1]", "a duration"),
        ({"statsd_prefix": "a\nb"}, "statsd_prefix", "printable"),
        ({"drain_bytes": "1MiB"}, "drain_bytes", "an integer"),
    ],
)
def test_messages_say_what_to_do(values: dict[str, Any], field: str, said: str) -> None:
    error = refused(**values)
    assert error.field == field
    assert said in str(error)


def test_rules_join_routes_and_exempt_paths() -> None:
    rules = Settings(routes={"/a": "high"}, exempt=["/b"]).rules
    assert [(rule.pattern.text, rule.exempt, rule.priority) for rule in rules] == [
        ("/a", False, Priority.HIGH),
        ("/b", True, None),
    ]
