"""Which way to statsd a worker takes."""

from __future__ import annotations

import socket
from importlib import util
from types import SimpleNamespace
from typing import Any

import pytest
from gunicorn.instrument.statsd import Statsd

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.observe import choose
from gunicorn_admission.observe.choose import choose_sink
from gunicorn_admission.observe.wire import GunicornWire, StatsdWire

UDP = ("metrics.example", 8125)


def config(host: object = None, prefix: str = "", tags: str = "") -> Any:
    return SimpleNamespace(statsd_host=host, statsd_prefix=prefix, dogstatsd_tags=tags)


def settings(host: str | None = None, prefix: str = "") -> Any:
    return SimpleNamespace(statsd_host=host, statsd_prefix=prefix)


def gunicorn_log(cfg: Any, family: int | None = socket.AF_INET) -> Statsd:
    """gunicorn's statsd logger, without its handlers; ``family`` is that of its socket."""
    log: Statsd = object.__new__(Statsd)
    log.cfg = cfg
    log.sock = None if family is None else SimpleNamespace(family=family)
    return log


def way(sink: Any) -> tuple[object, ...]:
    if isinstance(sink._wire, GunicornWire):
        return ("gunicorn",)
    assert isinstance(sink._wire, StatsdWire)
    return ("own", sink._wire._address, sink._wire._prefix, sink._wire._tags)


def test_none_when_no_server_is_named() -> None:
    assert choose_sink(SimpleNamespace(cfg=config()), settings()) is None
    assert choose_sink(object(), settings()) is None


def test_gunicorns_own_client_is_used() -> None:
    assert way(choose_sink(gunicorn_log(config(UDP)), settings())) == ("gunicorn",)


def test_a_logger_of_the_users_own_gets_gunicorns_server_and_format() -> None:
    cfg = config(UDP, "myapp.", "env:dev,app:x")
    expected = ("own", UDP, "myapp", "env:dev,app:x")
    assert way(choose_sink(SimpleNamespace(cfg=cfg), settings())) == expected
    assert way(choose_sink(object(), settings(), cfg=cfg)) == expected


def test_a_gunicorn_that_did_not_resolve_the_host_is_helped_out() -> None:
    sink = choose_sink(gunicorn_log(config(UDP), family=None), settings())
    assert way(sink) == ("own", UDP, "", "")


def test_unix_sockets_get_a_client_that_connects_again(monkeypatch: pytest.MonkeyPatch) -> None:
    log = gunicorn_log(config("/run/statsd.sock"), family=socket.AF_UNIX)
    assert way(choose_sink(log, settings())) == ("own", "/run/statsd.sock", "", "")
    monkeypatch.setattr(choose, "find_spec", lambda name: None)
    assert way(choose_sink(log, settings())) == ("gunicorn",)
    assert util.find_spec("statsd")


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("localhost:9125", ("localhost", 9125)),
        ("localhost", ("localhost", 8125)),
        ("[::1]:9125", ("::1", 9125)),
        ("unix:///run/statsd.sock", "/run/statsd.sock"),
    ],
)
def test_a_server_of_our_own_wins(host: str, address: object) -> None:
    log = gunicorn_log(config(UDP, "theirs"))
    assert way(choose_sink(log, settings(host, "ours"))) == ("own", address, "ours", "")
    assert way(choose_sink(log, settings(host))) == ("own", address, "theirs", "")


@pytest.mark.parametrize(
    "host", ["localhost:http", "localhost:0", "localhost:70000", ":1", "unix:"]
)
def test_what_is_no_address_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match="statsd_host") as caught:
        choose_sink(object(), settings(host))
    assert caught.value.value == host


def test_workers_are_named_unless_tags_are_in_use() -> None:
    named: Any = choose_sink(gunicorn_log(config(UDP)), settings(), worker=2)
    tagged: Any = choose_sink(gunicorn_log(config(UDP, tags="env:dev")), settings(), worker=2)
    assert named._worker == "2"
    assert tagged._worker is None
