"""Workers in processes of their own: killed at every step, stopped, several at once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import select

from gunicorn_admission.webhooks.fanout import Subscriptions, Worker
from gunicorn_admission.webhooks.gates import Ceiling, GatePolicy, configure
from gunicorn_admission.webhooks.gates.audit import audit_ledger
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import attempts, audit, deliveries, windows
from tests.fanning import WallClock, put, states
from tests.intake_calls import github_sent
from tests.integration.consumers_app import consumers
from tests.integration.dying_worker import STEPS
from tests.integration.processes import children
from tests.integration.test_intake_crash import PATIENCE, THREADS, clients, gunicorn, take

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
CLI = [sys.executable, "-m", "gunicorn_admission.cli"]
APP = "tests.integration.consumers_app:consumers"


@pytest.fixture
def effects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "effects"
    path.touch()
    monkeypatch.setenv("EFFECTS", str(path))
    return path


@pytest.fixture
def store(any_store: Store, effects: Path) -> Store:
    book = Subscriptions(any_store)
    gate = GatePolicy([Ceiling(1000, "requests", per="day")])
    for name in ("books", "mail"):
        book.create(name, lease="1s")
        any_store.write(
            lambda connection, name=name: configure(connection, name, gate, now=any_store.now())
        )
    return any_store


def until(condition: Callable[[], object], seconds: float = 40.0) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def in_store(store: Store) -> Counter[str]:
    with store.read() as connection:
        return Counter(connection.scalars(select(audit.c.subject).where(audit.c.actor == "books")))


def in_file(effects: Path, what: str = "done") -> Counter[str]:
    lines = [line.split(" ", 1) for line in effects.read_text().splitlines()]
    return Counter(key for word, key in lines if word == what)


def findings(store: Store) -> list[object]:
    with store.read() as connection:
        return [*audit_ledger(connection, now=store.now())]


def settled(store: Store) -> list[tuple[int, int]]:
    with store.read() as connection:
        query = select(windows.c.reserved, windows.c.settled).order_by(windows.c.ceiling)
        return [(row.reserved, row.settled) for row in connection.execute(query)]


@contextmanager
def worker(store: Store, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "GUNICORN_ADMISSION_STORE_URL": store.url.render_as_string(hide_password=False),
    }
    command = [*CLI, "worker", "--app", APP, "--poll", "50ms", *options]
    process = subprocess.Popen(command, env=environ, cwd=ROOT, start_new_session=True)
    try:
        yield process
    finally:
        for pid in [*children(process.pid), process.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.wait()


# -- killed at every step ------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", ["books", "mail"])
def test_killed(store: Store, effects: Path, name: str, step: str) -> None:
    put(store, "a")
    url = store.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "tests.integration.dying_worker", url, name, step]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run(command, env=environ, cwd=ROOT).returncode == -signal.SIGKILL
    was_on_record, had_happened = STEPS[step]
    if name == "books" and step == "complete-inside":
        had_happened = False  # nor is it committed

    later = WallClock(time.time() + 3600)
    with Store(url, clock=later) as after:
        Worker(after, consumers, names=[name]).drain()
        assert states(after, name) == {"a": "completed"}
        with after.read() as connection:
            tries = list(connection.scalars(select(attempts.c.outcome).order_by(attempts.c.id)))
        is_complete = step == "complete-after"
        expected = ["completed"] if is_complete or not was_on_record else ["expired", "completed"]
        assert tries == expected
        if name == "books":
            assert in_store(after) == {"a": 1}
        else:
            twice = had_happened and not is_complete
            assert in_file(effects) == {"mail:stripe:a": 1 + twice}
        assert findings(after) == []
        assert [pair for pair in settled(after) if pair != (0, 0)] == [(0, 1)]


def test_killed_again_and_again(store: Store, effects: Path) -> None:
    """Two workers under fire; nothing is lost, and nothing in the store is done twice."""
    ids = [f"e{n}" for n in range(120)]
    chance = random.Random(7)
    with worker(store, "--processes", "2") as first, worker(store, "--processes", "2") as second:
        for n in range(0, len(ids), 20):
            put(store, *ids[n : n + 20])
            until(lambda count=n: len(in_file(effects)) > count // 2)
            victims: list[int] = []
            while not victims:  # those killed before may not be replaced yet
                victims = children(first.pid) + children(second.pid)
            os.kill(chance.choice(victims), signal.SIGKILL)

        def is_done() -> bool:
            found = [*states(store, "books").values(), *states(store, "mail").values()]
            return found.count("completed") == 2 * len(ids)

        until(is_done)
    assert in_store(store) == dict.fromkeys(ids, 1)
    assert set(in_file(effects)) == {f"mail:stripe:{event_id}" for event_id in ids}
    assert findings(store) == []
    assert settled(store) == [(0, len(ids)), (0, len(ids))]


def test_many_threads_in_several_processes_do_each_once(store: Store, effects: Path) -> None:
    for name in ("books", "mail"):
        Subscriptions(store).update(name, lease="60s")  # nobody dies; the machine may be slow
    ids = [f"e{n}" for n in range(150)]
    put(store, *ids)
    with worker(store, "--processes", "3", "--threads", "3"):
        until(lambda: len(in_file(effects)) == 150 and len(in_store(store)) == 150)
    assert in_store(store) == dict.fromkeys(ids, 1)
    assert in_file(effects) == {f"mail:stripe:{event_id}": 1 for event_id in ids}
    with store.read() as connection:
        assert set(connection.scalars(select(deliveries.c.attempts))) == {1}


def test_one_id_posted_from_all_sides_is_one_effect_at_each_consumer(
    store: Store, effects: Path, tmp_path: Path
) -> None:
    """Through gunicorn's processes and threads, the store, and workers that run meanwhile."""
    for name in ("books", "mail"):
        Subscriptions(store).update(name, lease="60s")
    ids = [f"same-{number}" for number in range(4)]
    together = threading.Barrier(THREADS, timeout=PATIENCE)
    with (
        gunicorn(tmp_path, store.url.render_as_string(hide_password=False)) as server,
        worker(store, "--processes", "2", "--threads", "2"),
    ):
        server.wait_workers(lambda pids: len(pids) == 2)

        def post(client: int) -> None:
            for event_id in ids:
                together.wait()
                assert take(server, github_sent(b"{}", event_id)).status == 200

        with clients(post):
            pass
        until(lambda: len(in_file(effects)) == len(in_store(store)) == len(ids))
    assert in_store(store) == dict.fromkeys(ids, 1)
    assert in_file(effects) == {f"mail:load:{event_id}": 1 for event_id in ids}
    with store.read() as connection:
        of_each = Counter(connection.scalars(select(deliveries.c.subscription)))
        tries = set(connection.scalars(select(deliveries.c.attempts)))
    assert (of_each, tries) == ({"books": len(ids), "mail": len(ids)}, {1})


# -- stopped -------------------------------------------------------------------------------------


@pytest.mark.parametrize("processes", ["1", "2"])
def test_stop_finishes_what_has_begun_and_hands_back_the_rest(
    store: Store, effects: Path, tmp_path: Path, processes: str
) -> None:
    gate = tmp_path / "gate"
    put(store, *(f"e{n}" for n in range(12)), body={"wait_for": str(gate)})
    running = 2 * int(processes)
    with worker(store, "--consumer", "mail", "--processes", processes) as process:
        until(lambda: len(in_file(effects, "begun")) == running)
        process.send_signal(signal.SIGTERM)
        until(lambda: list(states(store, "mail").values()).count("leased") == running)
        time_of_lease = 1.0  # is extended while they run
        time.sleep(1.2 * time_of_lease)
        gate.touch()
        assert process.wait(20) == 0
    assert Counter(states(store, "mail").values()) == {
        "completed": running,
        "pending": 12 - running,
    }
    assert len(in_file(effects)) == running
    with store.read() as connection:
        query = select(deliveries.c.attempts).where(deliveries.c.state == "pending")
        assert set(connection.scalars(query)) == {0}


def test_interrupt_at_the_terminal_reaches_all_and_stops_in_order(
    store: Store, effects: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    put(store, "a", "b", "c", "d", body={"wait_for": str(gate)})
    with worker(store, "--consumer", "mail", "--processes", "2") as process:
        until(lambda: len(in_file(effects, "begun")) == 4)
        os.killpg(process.pid, signal.SIGINT)
        until(lambda: list(states(store, "mail").values()).count("leased") == 4)
        gate.touch()
        assert process.wait(20) == 0
    assert set(states(store, "mail").values()) == {"completed"}


def test_stop_that_is_not_heeded_in_time_is_told(
    store: Store, effects: Path, tmp_path: Path
) -> None:
    put(store, "a", body={"wait_for": str(tmp_path / "never")})
    with worker(store, "--consumer", "mail", "--grace", "200ms") as process:
        until(lambda: in_file(effects, "begun"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 1
    assert states(store, "mail") == {"a": "leased"}


def test_children_do_not_outlive_their_parent(store: Store, effects: Path) -> None:
    with worker(store, "--processes", "2") as process:
        until(lambda: len(children(process.pid)) == 2)
        put(store, "a")
        until(lambda: in_file(effects))
        orphans = children(process.pid)
        process.kill()
        process.wait()
        until(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() for pid in orphans))


def test_parent_replaces_children_and_says_what_cannot_be_set_up(
    store: Store, effects: Path
) -> None:
    with worker(store, "--processes", "2") as process:
        until(lambda: len(children(process.pid)) == 2)
        before = children(process.pid)
        os.kill(before[0], signal.SIGKILL)
        until(lambda: len(children(process.pid)) == 2 and children(process.pid) != before)
    with worker(store, "--processes", "2", "--consumer", "nobody") as process:
        assert process.wait(20) == 2
