"""Every example runs, and the demo's load generator and figures measure what they say."""

from __future__ import annotations

import importlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.integration.server import Gunicorn

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
DEMO = EXAMPLES / "blocked_db"
FANOUT = EXAMPLES / "webhook_fanout"
CONF = EXAMPLES / "gunicorn_conf"
STATSD = EXAMPLES / "statsd_dashboard"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path, str], ModuleType]]:
    """Import a module of an example the way its script does, and forget it afterwards."""
    before = set(sys.modules)

    def get(folder: Path, name: str) -> ModuleType:
        monkeypatch.syspath_prepend(str(folder))
        return importlib.import_module(name)

    yield get
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith(str(EXAMPLES)):
            del sys.modules[name]


def processes_in(folder: Path) -> list[int]:
    """Processes whose working directory is this folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink() == folder:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.integration
@pytest.mark.timeout(150)
def test_demo_shows_a_clear_difference(tmp_path: Path) -> None:
    picture = tmp_path / "comparison.png"
    command = [sys.executable, str(DEMO / "demo.py"), "--quick", "--picture", str(picture)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Health checks answered within 1 s" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert not processes_in(DEMO)


@pytest.mark.integration
@pytest.mark.timeout(300)
def test_webhooks_demo_loses_nothing_and_does_nothing_twice() -> None:
    command = [sys.executable, str(FANOUT / "demo.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing was lost and nothing was done twice." in done.stdout
    assert "page: usage-analytics DEFERRED" in done.stdout
    assert not processes_in(FANOUT)


@pytest.mark.integration
def test_demo_leaves_nothing_when_it_is_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-u", str(DEMO / "demo.py"), "--quick", "--plain"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as demo:
        assert demo.stdout is not None
        assert demo.stdout.readline().startswith("plain")  # the load runs
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(30) == 143
    assert not processes_in(DEMO)
    assert not list(tmp_path.iterdir())


class Answers:
    """A loopback server that gives each path its own fixed answer, or none."""

    def __init__(self, answers: dict[str, bytes]) -> None:
        self.answers = answers
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.silent: list[socket.socket] = []
        self.thread = threading.Thread(target=self.serve)

    def __enter__(self) -> int:
        self.thread.start()
        port: int = self.listener.getsockname()[1]
        return port

    def __exit__(self, *_: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        for connection in (self.listener, *self.silent):
            connection.close()

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            path = connection.recv(65536).split(b" ")[1].decode()
            if path in self.answers:
                connection.sendall(self.answers[path])
                connection.close()
            else:
                self.silent.append(connection)


def test_generator_tells_every_ending(
    module: Callable[[Path, str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, load = module(DEMO, "scenario"), module(DEMO, "load")
    patience = 0.2
    kinds = [scenario.Kind(name, "POST", 0.2, "") for name in "abcde"]
    monkeypatch.setattr(load, "KINDS", kinds)
    monkeypatch.setattr(load, "LEAD", 0.0)
    plan = (scenario.Phase("only", 0.0, 0.5, 200.0, patience, "hang"),)
    answers = {
        "/a": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "/b": b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n",
        "/c": b"HTTP/1.1 500 Oops\r\n\r\nends with the connection",
        "/d": b"HTTP/1.1 200 OK\r\nContent-",
        "/healthz": b"HTTP/1.1 204 No Content\r\n\r\n",
    }  # and no answer for /e
    with Answers(answers) as port, (tmp_path / "requests").open("w") as out:
        load.Generator(port, out, tmp_path / "control", plan).run()
    records = [load.read(line) for line in (tmp_path / "requests").read_text().splitlines()[1:]]
    endings = {(record.kind, record.outcome) for record in records}
    assert endings == {
        ("a", "served"),
        ("b", "refused"),
        ("c", "failed"),
        ("d", "broken"),
        ("e", "gave_up"),
        ("healthz", "served"),
    }
    assert all(r.ended - r.scheduled >= patience for r in records if r.kind == "e")
    assert all(record.sent >= record.scheduled for record in records)
    assert sorted(record.id for record in records) == list(range(1, len(records) + 1))
    assert (tmp_path / "control").read_text() == "hang"


def test_generator_plans_the_same_arrivals_for_both_runs(
    module: Callable[[Path, str], ModuleType],
) -> None:
    scenario, load = module(DEMO, "scenario"), module(DEMO, "load")
    plan = scenario.phases(quick=False)
    first = load.arrivals(plan)
    assert first == load.arrivals(plan)
    for phase in plan:
        due = [at for at, kind, _ in first if phase.start <= at < phase.end and kind.share]
        expected = phase.rate * (phase.end - phase.start)
        assert abs(len(due) - expected) < 5 * expected**0.5


def test_pool_waits_for_the_control_file_and_for_a_connection(
    module: Callable[[Path, str], ModuleType], tmp_path: Path
) -> None:
    database = module(DEMO, "database")
    control = tmp_path / "control"
    control.write_text("hang")
    pool = database.Pool(
        tmp_path / "db", control, size=1, query_seconds=1e-6, checkout_timeout=0.05
    )
    answers: list[object] = []

    def query() -> None:
        with pool.connection() as connection:
            answers.extend(connection.execute("SELECT remote_work()").fetchone())

    with pool.connection(), pytest.raises(database.PoolTimeout):
        query()
    thread = threading.Thread(target=query)
    thread.start()
    thread.join(0.1)
    assert thread.is_alive()
    assert not answers
    control.write_text("normal")
    thread.join()
    assert answers == [0]
    pool.close()


def test_figures(module: Callable[[Path, str], ModuleType]) -> None:
    scenario, load, figures = (module(DEMO, name) for name in ("scenario", "load", "figures"))
    plan = scenario.phases(quick=True)
    begin = plan[scenario.UNBLOCKED].start
    records = [
        load.Record(1, "payments", begin + 0.1, begin + 0.1, begin + 3.1, "gave_up"),
        load.Record(2, "payments", begin + 0.6, begin + 0.6, begin + 3.6, "gave_up"),
        load.Record(3, "updates", begin + 1.1, begin + 1.1, begin + 1.2, "served"),
        load.Record(4, "updates", begin + 1.6, begin + 1.6, begin + 1.9, "served"),
        load.Record(5, "analytics", begin + 2.1, begin + 2.2, begin + 2.6, "served"),
        load.Record(6, "healthz", begin + 2.1, begin + 2.1, begin + 3.1, "gave_up"),
    ]
    run = figures.Run("a", plan, records, {1: begin + 3.2, 2: begin + 3.5, 3: begin + 1.1})
    assert run.wasted() == 1  # the second one's client was still there when its handler began
    assert run.recovery(scenario.UNBLOCKED) == pytest.approx(1.0)
    assert run.recovery(scenario.RELIEVED) is None
    assert figures.share(run.asked()) == pytest.approx(0.6)
    assert figures.latencies(run.asked("analytics")) == [pytest.approx(0.5)]  # from when due
    assert len(run.asked(phase=scenario.NORMAL)) == 0


class Example:
    """One example's gunicorn.conf.py in a real gunicorn; ``start(folder, **environment)``."""

    def __init__(self, start: Callable[..., Gunicorn]) -> None:
        self._start = start

    def __call__(self, folder: Path, **environment: str) -> Gunicorn:
        return self._start(
            *("-c", str(folder / "gunicorn.conf.py"), "--pythonpath", str(CONF)),
            app="app:app",
            env=environment,
        )


@pytest.fixture
def example(tmp_path: Path) -> Iterator[Example]:
    servers: list[Gunicorn] = []

    def start(*args: str, **options: Any) -> Gunicorn:
        server = Gunicorn(*args, directory=tmp_path, **options)
        servers.append(server)
        return server.__enter__()

    yield Example(start)
    for server in servers:
        print(server.log)
        server.stop()


@pytest.mark.integration
def test_conf_keeps_its_own_hooks_and_refuses_in_overload(example: Example) -> None:
    server = example(CONF)
    server.wait_log("our own post_worker_init ran")
    slow = [server.send("/reports?seconds=1") for _ in range(24)]
    assert server.get("/healthz").status == 200
    assert server.get("/payments").status == 200
    answers = [exchange.response() for exchange in slow]
    assert {answer.status for answer in answers} == {200, 503}
    refused = next(answer for answer in answers if answer.status == 503)
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.headers["admission-reason"]
    server.wait_log("our own post_request saw /payments")
    server.wait_log(r"/payments.* priority=high queue_delay=[0-9.]")


@pytest.mark.integration
def test_statsd_dashboard_shows_the_gauges(example: Example) -> None:
    command = [sys.executable, "-u", str(STATSD / "dashboard.py"), "--port", "0", "--seconds", "50"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as dashboard:
        assert dashboard.stdout is not None
        try:
            listening = re.search(r"127\.0\.0\.1:\d+", dashboard.stdout.readline())
            assert listening
            server = example(STATSD, STATSD_HOST=listening[0])
            assert server.get("/payments").status == 200
            shown = next(line for line in dashboard.stdout if re.search(r"limit=[1-9]", line))
            assert re.fullmatch(
                r"limit=\S+  inflight=\S+  queue=\S+  overloaded=[01]  shed=\S+\n", shown
            )
        finally:
            dashboard.terminate()


def test_dashboard_reads_statsd(module: Callable[[Path, str], ModuleType]) -> None:
    dashboard = module(STATSD, "dashboard")
    numbers = dashboard.Numbers()
    numbers.feed(b"gunicorn.admission.limit:16|g\ngunicorn.admission.limit:-4|g|#tag:x")
    numbers.feed(b"gunicorn.admission.worker.1.queue:2|g\ngunicorn.admission.worker.2.queue:3|g")
    numbers.feed(b"gunicorn.admission.shed:2|c|@0.5\nnonsense\nx:y|g\n:|c")
    numbers.remember()
    assert numbers.gauges["gunicorn.admission.limit"] == 12.0
    assert dashboard.line(numbers) == "limit=12  inflight=0  queue=5  overloaded=0  shed=4"
    assert dashboard.sparkline(numbers.history["gunicorn.admission.limit"]) == "█"
