"""
What holds for every sink: zeros arrive, and no server that is dead, unknown or hanging, and no
sink that raises or blocks, costs a request anything or loses what another sink is owed.

Servers are real sockets; gunicorn's logger is the installed gunicorn's.
"""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from gunicorn.config import Config
from gunicorn.glogging import Logger
from gunicorn.instrument.statsd import Statsd

from gunicorn_admission.core.events import Event, EventKind
from gunicorn_admission.core.statistics import Statistics
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.observe import (
    LogObserver,
    Report,
    Reporter,
    Sink,
    StatsdSink,
    choose_sink,
    statsd_client,
)
from gunicorn_admission.observe.names import METRICS
from gunicorn_admission.observe.wire import GunicornWire, StatsdWire
from gunicorn_admission.settings import Settings
from gunicorn_admission.testing import FakeClock
from tests.observing import PATIENCE, Datagrams, delays, idle, listening, partition

OVERLOADED = Event(EventKind.OVERLOADED, 1, None, {"limit": 3})
LAST = f"myapp.{METRICS[-1].statsd_name}"
HOUR = 3600.0

#: One snapshot in which every kind of metric has something to say.
BUSY = idle(
    limit=7,
    overloaded=True,
    rtt_seconds=0.0415,
    granted_by_priority={"high": 12},
    shed={("low", "overloaded"): 3},
    delay_buckets=delays({0.0005: 1, 0.1: 1}),
    partitions={"/reports": partition(inflight=2)},
)


class NoSettings:
    """Settings that leave statsd to gunicorn."""

    statsd_host = None
    statsd_prefix = ""


class Collector(Sink):
    """The sink that must lose nothing; it also notes on which threads it was called."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.reports: list[Report] = []
        self.threads: set[int] = set()
        self.told = threading.Event()

    def report(self, report: Report) -> None:
        self.threads.add(threading.get_ident())
        self.reports.append(report)

    def on_event(self, event: Event) -> None:
        self.threads.add(threading.get_ident())
        self.events.append(event)
        self.told.set()


class Raising(Sink):
    """Fails at everything."""

    def report(self, report: Report) -> None:
        raise RuntimeError("no report")

    def on_event(self, event: Event) -> None:
        raise RuntimeError("no event")


class Blocking(Sink):
    """Hangs until it is let go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.let_go = threading.Event()

    def report(self, report: Report) -> None:
        self.entered.set()
        self.let_go.wait(PATIENCE)

    def on_event(self, event: Event) -> None:
        self.report(None)  # type: ignore[arg-type]


@contextmanager
def gunicorn_logger(address: str, make: type[Logger] = Statsd, tags: str = "") -> Iterator[Logger]:
    """gunicorn's logger as the arbiter makes it; its loggers are put back afterwards."""
    loggers = [logging.getLogger(name) for name in ("gunicorn.error", "gunicorn.access")]
    before = [(log.handlers[:], log.propagate, log.level) for log in loggers]
    cfg = Config()
    cfg.set("statsd_host", address)
    cfg.set("statsd_prefix", "myapp")
    cfg.set("dogstatsd_tags", tags)
    made = make(cfg)
    try:
        yield made
    finally:
        sock = getattr(made, "sock", None)
        if sock is not None:
            sock.close()
        for log, (handlers, propagate, level) in zip(loggers, before, strict=True):
            log.handlers[:], log.propagate = handlers, propagate
            log.setLevel(level)


def spelled(server: Datagrams) -> str:
    """The server's address as gunicorn's ``statsd_host``."""
    if isinstance(server.address, str):
        return f"unix://{server.address}"
    host, port = server.address
    return f"{host}:{port}"


@pytest.fixture(autouse=True)
def enabled_logger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ``logging.config`` did in another test: it disables loggers it does not name."""
    monkeypatch.setattr(logging.getLogger("gunicorn_admission"), "disabled", False)


@pytest.fixture
def unix_path(tmp_path: Path) -> Path:
    return tmp_path / "statsd"


#: (family of the server's socket, class of gunicorn's logger, the wire that must be chosen)
WAYS = {
    "gunicorn": (socket.AF_INET, Statsd, GunicornWire),
    "package-udp": (socket.AF_INET, Logger, StatsdWire),
    "package-unix": (socket.AF_UNIX, Logger, StatsdWire),
    "package-unix-statsd-logger": (socket.AF_UNIX, Statsd, StatsdWire),
}
each_way = pytest.mark.parametrize("way", list(WAYS))


@contextmanager
def sinking(way: str, path: Path, tags: str = "", **options: Any) -> Iterator[Any]:
    """A server, and the sink that the ordinary choice makes for it."""
    family, logger_class, wire = WAYS[way]
    with (
        listening(path if family == socket.AF_UNIX else None) as server,
        gunicorn_logger(spelled(server), logger_class, tags) as log,
    ):
        sink = choose_sink(log, NoSettings(), **options)  # type: ignore[arg-type]
        assert sink is not None
        assert isinstance(sink._wire, wire)
        try:
            yield server, sink
        finally:
            sink.close()


def ticking(statistics: Statistics, *sinks: Sink, clock: FakeClock | None = None) -> Reporter:
    return Reporter(lambda: statistics, sinks, HOUR, clock or FakeClock())


@each_way
def test_zeros_arrive(way: str, unix_path: Path) -> None:
    with sinking(way, unix_path) as (server, sink):
        ticking(idle(), sink).tick()
        seen = server.until(LAST)
    for key in ("limit", "inflight", "queue", "overloaded", "stuck", "rtt"):
        assert seen[f"myapp.gunicorn.admission.{key}"] == ["0|g"], key
    for key in ("admitted", "shed", "abandoned"):
        (value,) = seen[f"myapp.gunicorn.admission.{key}"]
        assert value.startswith("0|c"), key


@each_way
def test_numbers_arrive_and_counters_as_increments(way: str, unix_path: Path) -> None:
    with sinking(way, unix_path) as (server, sink):
        reporter = ticking(BUSY, sink)
        for admitted, shed in ((12, ["3"]), (0, [])):
            reporter.tick()
            seen = server.until(LAST)
            values = {name: [v.split("|")[0] for v in seen[name]] for name in seen}
            at = "myapp.gunicorn.admission."
            assert values[f"{at}limit"] == ["7"]
            assert values[f"{at}overloaded"] == ["1"]
            assert values[f"{at}rtt"] == ["41.5"]
            assert values[f"{at}partition_inflight.reports"] == ["2"]
            assert values[f"{at}admitted"] == [str(admitted)]
            assert values.get(f"{at}shed.low.overloaded", []) == shed
        assert server.nothing()


@each_way
def test_queue_delay_arrives_as_a_timer(way: str, unix_path: Path) -> None:
    with sinking(way, unix_path) as (server, sink):
        ticking(BUSY, sink).tick()
        timings = server.until(LAST)["myapp.gunicorn.admission.queue_delay"]
    assert [float(timing.removesuffix("|ms")) for timing in timings] == [0.25, 75]


@each_way
def test_tags_are_gunicorns_and_workers_are_then_not_in_names(way: str, unix_path: Path) -> None:
    tags = "env:dev,app:x"
    with sinking(way, unix_path, tags, worker=2) as (server, sink):
        ticking(BUSY, sink).tick()
        seen = server.until(LAST)
    assert seen["myapp.gunicorn.admission.limit"] == [f"7|g|#{tags}"]
    assert all(value.endswith(f"|#{tags}") for values in seen.values() for value in values)
    assert not any(".worker." in name for name in seen)


@each_way
def test_workers_keep_their_gauges_apart(way: str, unix_path: Path) -> None:
    with sinking(way, unix_path, worker=2, totals=lambda: {"limit": 21.0}) as (server, sink):
        ticking(BUSY, sink).tick()
        seen = server.until("myapp.gunicorn.admission.limit")
        assert seen["myapp.gunicorn.admission.worker.2.limit"] == ["7|g"]
        assert seen["myapp.gunicorn.admission.limit"] == ["21|g"]
        sink.close()
        if way != "gunicorn":
            return
        # 24 gauges; the last in the alphabet ends it.
        seen = server.until("myapp.gunicorn.admission.worker.2.stuck")
        assert seen["myapp.gunicorn.admission.worker.2.limit"] == ["0|g"]


def meaning(value: str) -> tuple[float, set[str]]:
    """A value as a server understands it; no sample rate means 1."""
    number, *rest = value.split("|")
    return float(number), {*rest} - {"@1.0"}


def test_all_ways_put_the_same_on_the_wire(tmp_path: Path) -> None:
    wires = []
    for way in WAYS:
        with sinking(way, tmp_path / way, "env:dev") as (server, sink):
            ticking(BUSY, sink).tick()
            seen = server.until(LAST)
        wires.append({name: [meaning(value) for value in values] for name, values in seen.items()})
    assert all(seen == wires[0] for seen in wires)


@each_way
def test_a_dead_server_costs_nothing_and_is_found_again(
    way: str, unix_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    collector, clock = Collector(), FakeClock()
    with sinking(way, unix_path) as (server, sink):
        reporter = ticking(BUSY, sink, collector, clock=clock)
        address = server.address
        server.sock.close()
        unix_path.unlink(missing_ok=True)
        for _ in range(3):
            reporter.on_event(OVERLOADED)
            reporter.tick()
        assert len(collector.reports) == len(collector.events) == 3
        assert caplog.records == []
        assert capfd.readouterr().err == ""  # where gunicorn's error log would write
        family = WAYS[way][0]
        with socket.socket(family, socket.SOCK_DGRAM) as again:
            again.bind(address)
            reporter.tick()
            assert Datagrams(again).until(LAST)["myapp.gunicorn.admission.limit"] == ["7|g"]


def test_a_unix_server_that_hangs_holds_nobody(
    unix_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statsd_client, "_PATIENCE", 0.001)
    collector = Collector()
    with sinking("package-unix", unix_path) as (server, sink):
        reporter = ticking(BUSY, sink, collector)
        filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with filler:
            filler.setblocking(False)
            with pytest.raises(BlockingIOError):
                while True:
                    filler.sendto(b"x", server.address)
            for _ in range(3):
                reporter.tick()
    assert len(collector.reports) == 3


def test_an_unknown_host_costs_nothing_and_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unknown(*args: object, **options: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    collector, clock = Collector(), FakeClock()
    # gunicorn's own logger gives up for ever when it cannot resolve the host at start.
    with gunicorn_logger("127.0.0.1:8125") as log:
        log.sock.close()
        log.sock = None
        log.cfg.set("statsd_host", "metrics.invalid:8125")
        sink = choose_sink(log, NoSettings())  # type: ignore[arg-type]
        assert sink is not None
        reporter = ticking(BUSY, sink, collector, clock=clock)
        for _ in range(20):
            reporter.on_event(OVERLOADED)
            reporter.tick()
        reporter.stop()
    assert len(collector.reports) == 21
    assert len(collector.events) == 20
    assert len([r for r in caplog.records if r.name == "gunicorn_admission"]) == 1


@pytest.fixture(params=["log", "gunicorn", "package-udp", "package-unix"])
def real_sink(request: pytest.FixtureRequest, unix_path: Path) -> Iterator[Sink]:
    if request.param == "log":
        yield LogObserver()
    else:
        with sinking(request.param, unix_path) as (_, sink):
            yield sink


def test_a_raising_neighbour_stops_no_sink(
    real_sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    reports: list[Report] = []
    told: Callable[[Report], None] = real_sink.report

    def noting(report: Report) -> None:
        told(report)
        reports.append(report)

    real_sink.report = noting  # type: ignore[method-assign]
    reporter = ticking(BUSY, Raising(), real_sink, Raising())
    for _ in range(3):
        reporter.on_event(OVERLOADED)
        reporter.tick()
    reporter.stop()
    assert len(reports) == 4
    failures = [r for r in caplog.records if "Raising failed" in r.getMessage()]
    assert len(failures) == 2


def test_a_request_only_notes_an_event_and_another_thread_tells_it() -> None:
    collector = Collector()
    reporter = ticking(BUSY, collector)
    reporter.start()
    reporter.start()  # harmless
    reporter.on_event(OVERLOADED)
    assert collector.told.wait(PATIENCE), "an event does not wait for the next tick"
    reporter.stop(PATIENCE)
    assert collector.events == [OVERLOADED]
    assert len(collector.reports) == 1  # the flush
    assert threading.get_ident() not in collector.threads
    assert len(collector.threads) == 1


def test_ticks_come_by_themselves() -> None:
    twice = threading.Semaphore(0)

    class Ticked(Sink):
        def report(self, report: Report) -> None:
            twice.release()

    reporter = Reporter(lambda: BUSY, [Ticked()], 0.001)
    reporter.start()
    try:
        assert twice.acquire(timeout=PATIENCE)
        assert twice.acquire(timeout=PATIENCE)
    finally:
        reporter.stop(PATIENCE)


def test_a_blocking_sink_holds_neither_requests_nor_the_end_of_the_worker() -> None:
    blocking, collector = Blocking(), Collector()
    reporter = ticking(BUSY, blocking, collector)
    reporter.start()
    reporter.on_event(OVERLOADED)
    assert blocking.entered.wait(PATIENCE)
    for _ in range(100):  # on what would be a request's thread
        reporter.on_event(OVERLOADED)
    reporter.stop(timeout=0.01)
    assert collector.events == []
    blocking.let_go.set()
    assert reporter._thread is not None
    reporter._thread.join(PATIENCE)
    assert not reporter._thread.is_alive()
    assert len(collector.events) == 101
    assert len(collector.reports) == 1


def test_a_limiter_admits_while_its_observer_hangs() -> None:
    blocking = Blocking()
    reporter = Reporter(lambda: limiter.statistics(), [blocking], HOUR)
    limiter = Limiter(Settings(limit=2), observers=[reporter])
    reporter.start()
    limiter.set_limit(1)
    assert blocking.entered.wait(PATIENCE)
    with limiter.acquire():
        limiter.set_limit(2)
        assert limiter.statistics().inflight == 1
    assert limiter.statistics().inflight == 0
    blocking.let_go.set()
    limiter.close()
    reporter.stop(PATIENCE)


def test_choosing_opens_no_socket_and_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    with gunicorn_logger("127.0.0.1:8125", Logger) as log:
        threads = threading.active_count()

        def refuse(*args: object, **options: object) -> None:
            raise AssertionError("opened before the fork")

        monkeypatch.setattr(socket, "socket", refuse)
        monkeypatch.setattr(socket, "getaddrinfo", refuse)
        sink = choose_sink(log, NoSettings())  # type: ignore[arg-type]
        assert isinstance(sink, StatsdSink)
        reporter = ticking(BUSY, sink)
        assert threading.active_count() == threads
        monkeypatch.undo()
        reporter.stop()


def test_importing_the_observers_loads_no_exporter() -> None:
    code = "import sys, gunicorn_admission.observe; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "gunicorn_admission.observe.statsd" in loaded
    assert not loaded & {"statsd", "prometheus_client", "opentelemetry", "flask"}
    assert "gunicorn.instrument.statsd" not in loaded
