"""The ways to a server: which calls gunicorn's logger gets, and when a host is looked up."""

from __future__ import annotations

import logging
import socket
import sys
from typing import Any

import pytest

from gunicorn_admission.observe.wire import GunicornWire, StatsdWire
from gunicorn_admission.testing import FakeClock


class OldLog:
    """The statsd logger of gunicorn 20.1, whose histogram writes ``|ms``."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, float]] = []

    def gauge(self, name: str, value: float) -> None:
        self.calls.append(("g", name, value))

    def increment(self, name: str, value: float) -> None:
        self.calls.append(("c", name, value))

    def histogram(self, name: str, value: float) -> None:
        self.calls.append(("ms", name, value))


class NewLog(OldLog):
    """The one of 24.1 and later, whose histogram writes ``|h``."""

    def histogram(self, name: str, value: float) -> None:
        self.calls.append(("h", name, value))

    def timer(self, name: str, value: float) -> None:
        self.calls.append(("ms", name, value))


@pytest.mark.parametrize("log", [OldLog(), NewLog()], ids=["20.1", "24.1"])
def test_gunicorns_methods_are_called_with_zeros_too(log: OldLog) -> None:
    way = GunicornWire(log)
    assert way.open()
    way.gauge("limit", 0)
    way.count("shed", 0)
    way.timing("queue_delay", 0)
    way.flush()
    way.close()
    assert log.calls == [("g", "limit", 0), ("c", "shed", 0), ("ms", "queue_delay", 0)]


class NameServer:
    """Stands in for ``socket.getaddrinfo`` and counts the questions."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.asked = 0

    def __call__(self, host: str, port: int, *args: object) -> list[Any]:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", ("127.0.0.1", port))]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> NameServer:
    server = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", server)
    return server


def test_nothing_is_looked_up_before_the_first_tick(names: NameServer) -> None:
    way = StatsdWire(("metrics.example", 8125), clock=FakeClock())
    assert names.asked == 0
    assert way.open()
    assert names.asked == 1
    way.close()


@pytest.mark.parametrize(
    "error",
    [
        socket.gaierror(-2, "Name or service not known"),
        UnicodeError("label too long"),
        OSError("no network"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_unknown_host_is_asked_for_less_and_less_often_and_logged_once(
    names: NameServer, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    clock = FakeClock()
    names.error = error
    way = StatsdWire(("metrics.example", 8125), clock=clock)
    asked_after = []
    for second in range(0, 900, 10):
        asked = names.asked
        assert not way.open()
        way.gauge("limit", 1)  # what a careless caller might do
        way.flush()
        if names.asked > asked:
            asked_after.append(second)
        clock.advance(10)
    assert asked_after == [0, 30, 90, 210, 450, 750]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "metrics.example" in caplog.text

    names.error = None
    clock.advance(300)
    with caplog.at_level(logging.INFO):
        assert way.open()
    assert "is found" in caplog.text
    way.close()


def test_a_known_host_is_looked_up_anew_and_kept_when_that_fails(names: NameServer) -> None:
    clock = FakeClock()
    way = StatsdWire(("metrics.example", 8125), clock=clock)
    assert way.open()
    clock.advance(299)
    assert way.open()
    assert names.asked == 1
    clock.advance(1)
    assert way.open()
    assert names.asked == 2
    names.error = socket.gaierror(-3, "Temporary failure in name resolution")
    clock.advance(300)
    assert way.open()
    assert names.asked == 3
    way.close()


def test_a_missing_package_is_said_once_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "statsd", None)
    monkeypatch.delitem(sys.modules, "gunicorn_admission.observe.statsd_client", raising=False)
    clock = FakeClock()
    way = StatsdWire(("127.0.0.1", 8125), clock=clock)
    for _ in range(100):
        assert not way.open()
        clock.advance(60)
    way.close()
    assert len(caplog.records) == 1
    assert "pip install 'gunicorn-admission[statsd]'" in caplog.text


def test_a_closed_wire_stays_closed(names: NameServer) -> None:
    clock = FakeClock()
    way = StatsdWire(("metrics.example", 8125), clock=clock)
    assert way.open()
    way.close()
    way.close()
    clock.advance(1000)
    assert not way.open()
    assert names.asked == 1
