"""What the workers of a node share: bounds, figures, and who is replaced when it hangs."""

from __future__ import annotations

import contextlib
import http.client
import select
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from signal import SIGHUP, SIGKILL, SIGTTIN, SIGTTOU
from typing import Any

import pytest
from gunicorn.workers import gthread

from tests.integration.admission import APP
from tests.integration.server import Gate, Gunicorn
from tests.integration.wire import PATIENCE, Exchange, Response

Start = Callable[..., Gunicorn]

STATUS = "/-/admission"
#: Refuses at once and has no stalls or caps of classes, so that only the node's bound decides.
CALM: dict[str, Any] = {
    "limit": 4, "max_wait": 0, "stall_after": 3600, "status_path": STATUS,
    "statsd_interval": 0.1, "interval": 60,
}  # fmt: skip
#: Waits instead, for as long as a test may last.
PATIENT: dict[str, Any] = {"max_wait": 60}


def install(more: str = "", **settings: Any) -> str:
    """A configuration with ``hooks.install``."""
    return (
        "from gunicorn_admission.hooks import install\n"
        f"{more}\ninstall(globals(), **{CALM | settings!r})\n"
    )


def names(**settings: Any) -> str:
    """A configuration that only names settings, for the doors that need no call."""
    return "".join(f"admission_{name} = {value!r}\n" for name, value in (CALM | settings).items())


WORKER_CLASS = ("--worker-class", "gunicorn_admission.worker.AdmissionWorker")

Door = Callable[..., Gunicorn]


@pytest.fixture(params=["install", "conf", "worker class"])
def door(request: pytest.FixtureRequest, gunicorn: Start, tmp_path: Path) -> Door:
    """Start a server with these settings, by each of the three ways in."""

    def start(workers: int, **settings: Any) -> Gunicorn:
        size = ("--workers", str(workers), "--threads", "4")
        if request.param == "install":
            return gunicorn(*size, bind="tcp", conf=install(**settings))
        if request.param == "worker class":
            return gunicorn(*size, *WORKER_CLASS, bind="tcp", conf=names(**settings))
        (tmp_path / "site.py").write_text(names(**settings))
        env = {"GUNICORN_ADMISSION_CONF": "site.py"}
        line = ("-c", "python:gunicorn_admission.conf")
        return gunicorn(*line, *size, bind="tcp", env=env)

    return start


def start(gunicorn: Start, workers: int, *args: str, more: str = "", **settings: Any) -> Gunicorn:
    size = ("--workers", str(workers), "--threads", "4")
    return gunicorn(*size, *args, bind="tcp", conf=install(more, **settings))


#: A worker of gunicorn 23 and before that stops resets what it has not read (#3038).
RESETS = not hasattr(gthread.ThreadWorker, "set_accept_enabled")


def get(server: Gunicorn, path: str) -> Response:
    """Ask, and ask again where gunicorn itself resets connections while workers stop."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return server.get(path)
        except (OSError, http.client.HTTPException):
            if not RESETS or time.monotonic() > deadline:
                raise


def figures(server: Gunicorn) -> dict[str, Any]:
    response = get(server, STATUS)
    assert response.status == 200, response
    found: dict[str, Any] = response.json()
    return found


def living(server: Gunicorn) -> list[dict[str, Any]]:
    return [worker for worker in figures(server)["workers"] if worker["pid"]]


def until(fact: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := fact()):
        assert time.monotonic() < deadline, what
        time.sleep(0.01)
    return found


def serving(server: Gunicorn, workers: int) -> list[dict[str, Any]]:
    """Wait until so many workers serve."""

    def found() -> list[dict[str, Any]] | None:
        rows = living(server)
        return rows if len(rows) == workers else None

    rows: list[dict[str, Any]] = until(found, f"{workers} workers never served")
    return rows


class Holder:
    """Requests that hold a slot each until the gate is opened."""

    def __init__(self, server: Gunicorn, gate: str = "held") -> None:
        self._server = server
        self._path = f"/block/{gate}"
        self.gate: Gate = server.gate(gate)
        self.exchanges: list[Exchange] = []

    @property
    def running(self) -> list[int]:
        """The processes in which one of them runs, once each."""
        return [row["pid"] for row in self._server.records(event="call", path=self._path)]

    def add(self, count: int) -> None:
        """
        Let so many more run, one after another.

        What is refused is sent again: the kernel may have given it to a worker that is full,
        and the last slot is left for a moment to one that has been refused it before.
        """
        for _ in range(count):
            before = len(self.running)
            deadline = time.monotonic() + PATIENCE
            while True:
                assert time.monotonic() < deadline, "refused again and again"
                sent = self._server.send(self._path)
                if _is_admitted(sent, self, before):
                    break
            self.exchanges.append(sent)

    def refused(self) -> None:
        """One more is refused."""
        assert get(self._server, self._path).status == 503

    def release(self, lost: int = 0) -> None:
        """Open the gate; all but those lost with their worker are answered."""
        self.gate.open()
        statuses: Counter[int | str] = Counter()
        for exchange in self.exchanges:
            try:
                statuses[exchange.response().status] += 1
            except (OSError, http.client.HTTPException, AssertionError):
                statuses["lost"] += 1
        assert (statuses[200], statuses["lost"]) == (len(self.exchanges) - lost, lost), statuses


def _is_admitted(sent: Exchange, holder: Holder, before: int) -> bool:
    """Wait until a request more than before runs, or this one is refused."""
    connection = sent.connection
    while len(holder.running) <= before:
        if select.select([connection], [], [], 0.005)[0]:
            with contextlib.suppress(ConnectionError) if RESETS else contextlib.nullcontext():
                assert sent.response().status == 503
            return False
    return True


def _settled(server: Gunicorn, count: int) -> list[dict[str, Any]] | None:
    """The rows, once so many requests run or wait."""
    rows = living(server)
    known = sum(row["inflight"] + row["waiting"] for row in rows)
    return rows if known == sum(row["arrivals"] for row in rows) == count else None


def test_all_workers_together_never_run_more(door: Door) -> None:
    # High, so that those who wait are not refused once the queue stands.
    server = door(3, node_limit=5, routes={"/block": "high"}, **PATIENT)
    serving(server, 3)
    held = Holder(server)
    held.exchanges += [server.send("/block/held") for _ in range(12)]
    rows = until(lambda: _settled(server, 12), "the others never waited")
    # The kernel may give them all to one worker, which has four threads.
    most = min(5, sum(min(4, row["arrivals"]) for row in rows))
    until(lambda: len(held.running) >= most, "not all of the bound is used")
    assert len(held.running) == most
    assert figures(server)["node"] == {"limit": 5, "inflight": most}
    held.release()
    until(lambda: figures(server)["node"]["inflight"] == 0, "a slot was lost")
    until(lambda: sum(row["admitted"] for row in living(server)) == 12, "they are not counted")
    assert sum(row["arrivals"] for row in living(server)) == 12


def test_a_killed_worker_leaves_no_slot_taken(door: Door) -> None:
    server = door(2, node_limit=4)
    serving(server, 2)
    held = Holder(server)
    held.add(4)
    held.refused()
    victim = held.running[-1]
    lost = held.running.count(victim)
    server.signal(SIGKILL, victim)
    until(lambda: victim not in {row["pid"] for row in living(server)}, "it keeps its place")
    assert figures(server)["node"]["inflight"] == 4 - lost
    serving(server, 2)
    held.add(lost)
    held.refused()
    held.release(lost)


def test_old_and_new_workers_share_the_bound_in_a_reload(door: Door) -> None:
    server = door(2, node_limit=4)
    old = {row["pid"] for row in serving(server, 2)}
    held = Holder(server)
    held.add(3)
    server.signal(SIGHUP)
    server.wait_log("admission: executor", count=4)
    # A worker that stops is still there, with what it runs.
    until(lambda: set(server.workers()) - old, "no new worker")
    until(lambda: any(row["pid"] not in old for row in living(server)), "none serves")
    held.add(1)
    held.refused()
    held.release()
    until(lambda: old.isdisjoint(server.workers()), "the old ones stay")
    assert figures(server)["node"] == {"limit": 4, "inflight": 0}


def test_the_bound_holds_while_workers_come_and_go(gunicorn: Start) -> None:
    server = start(gunicorn, 2, node_limit=3)
    serving(server, 2)
    for workers in (3, 4):  # one by one: two signals at once may be one
        server.signal(SIGTTIN)
        rows = serving(server, workers)
    assert {row["slot"] for row in rows} == {0, 1, 2, 3}
    held = Holder(server)
    held.add(3)
    held.refused()
    held.release()
    for workers in (3, 2, 1):
        server.signal(SIGTTOU)
        serving(server, workers)
    again = Holder(server, "again")
    again.add(3)
    again.refused()
    again.release()


def test_a_class_has_a_bound_over_all_workers(gunicorn: Start) -> None:
    rules = {"/block": {"name": "db", "node_cap": 2}}
    server = start(gunicorn, 3, routes=rules)
    serving(server, 3)
    held = Holder(server)
    held.add(2)
    held.refused()
    assert server.get("/echo/a").status == 200
    assert "node" not in figures(server)
    held.release()


def test_without_a_master_of_ours_the_bound_is_divided(gunicorn: Start) -> None:
    conf = f"""
from gunicorn_admission import gthread
from gunicorn_admission.settings import Settings

def post_worker_init(worker):
    gthread.install(worker, Settings(**{CALM | {"node_limit": 4}!r}))
"""
    server = gunicorn("--workers", "2", "--threads", "4", bind="tcp", conf=conf)
    server.wait_log("the workers share no page, so each takes its part", count=2)
    held = Holder(server)
    held.add(4)
    for _ in range(8):
        held.refused()
    assert sorted(Counter(held.running).values()) == [2, 2]
    held.release()


def test_totals_of_a_place_never_fall(gunicorn: Start) -> None:
    server = start(gunicorn, 1, "--max-requests", "8")
    seen = 0
    pids = set()
    for _ in range(30):
        assert get(server, "/echo/a").status == 200
        rows = figures(server)["workers"]
        total = sum(row["admitted"] for row in rows)
        assert total >= seen
        seen = total
        pids |= {row["pid"] for row in rows if row["pid"]}
    assert len(pids) > 2
    (victim,) = server.workers()
    server.signal(SIGKILL, victim)
    until(lambda: victim not in server.workers(), "it was not killed")
    (row,) = serving(server, 1)
    assert row["generation"] > len(pids)
    assert row["admitted"] >= seen


def visit(server: Gunicorn, stop: threading.Event, statuses: Counter[object]) -> None:
    """Ask again and again on new connections, and count how it ended."""
    while not stop.is_set():
        try:
            statuses[get(server, "/echo/a").status] += 1
        except (OSError, http.client.HTTPException) as error:
            statuses[repr(error)] += 1


HANGING: dict[str, Any] = {"stall_after": 0.2, "recycle_after": 1, **PATIENT, "limit": 4}


@pytest.mark.parametrize("way", ["install", "worker class"])
def test_a_worker_that_hangs_is_replaced_while_others_are_served(way: str, gunicorn: Start) -> None:
    size = ("--workers", "2", "--threads", "4", "--graceful-timeout", "2")
    if way == "install":
        server = gunicorn(*size, bind="tcp", conf=install(**HANGING))
    else:
        server = gunicorn(*size, *WORKER_CLASS, bind="tcp", conf=names(**HANGING))
    old = {row["pid"] for row in serving(server, 2)}
    held = Holder(server)
    statuses: Counter[object] = Counter()
    stop = threading.Event()
    visitors = [threading.Thread(target=visit, args=(server, stop, statuses)) for _ in range(2)]
    for visitor in visitors:
        visitor.start()
    try:
        # Three of the four threads of one of them.
        while max(Counter(held.running).values(), default=0) < 3:
            held.add(1)
        (hung, count), *_ = Counter(held.running).most_common()
        server.wait_log("have hung for 1 s; asking for a fresh worker")
        until(lambda: hung not in server.workers(), "it is not replaced")
    finally:
        stop.set()
        for visitor in visitors:
            visitor.join()
    assert set(statuses) == {200}, statuses
    rows = serving(server, 2)
    assert {row["pid"] for row in rows} - old
    assert len(server.workers()) == 2
    assert server.log.count("asking for a fresh worker") == 1
    assert server.log.count("Handling signal: ttin") == 1
    held.release(lost=count)


def test_all_that_hang_are_replaced_one_after_the_other(gunicorn: Start) -> None:
    settings = HANGING | {"limit": 1, "recycle_after": 1, "max_wait": 0}
    server = start(gunicorn, 2, "--graceful-timeout", "1", **settings)
    old = {row["pid"] for row in serving(server, 2)}
    held = Holder(server)
    held.add(2)
    assert set(held.running) == old
    most = 0

    def gone() -> bool:
        nonlocal most
        with contextlib.suppress(OSError, http.client.HTTPException):
            most = max(most, sum(row["recycling"] for row in living(server)))
        return old.isdisjoint(server.workers())

    until(gone, "they are not replaced")
    assert most == 1
    serving(server, 2)
    assert len(server.workers()) == 2
    first, second = (line for line in server.log.splitlines() if "asking for a fresh" in line)
    assert server.log.index(first) < server.log.index("finishes what it can and ends")
    assert server.log.index(second) > server.log.index("finishes what it can and ends")
    held.release(lost=2)


def test_stacks_and_readiness_tell_of_threads_that_hang(gunicorn: Start) -> None:
    settings = PATIENT | {"stall_after": 0.1, "limit": 4, "exempt": ["/health"]}
    server = start(gunicorn, 1, **settings)
    assert server.get(f"{STATUS}/ready").status == 200
    held = Holder(server)
    held.exchanges += [server.send("/block/held?password=s3cret") for _ in range(3)]
    until(lambda: server.get(f"{STATUS}/ready").status == 503, "it is still ready")
    assert server.get(f"{STATUS}/ready").json() == {"ready": False, "reason": "starved"}
    assert server.get(f"{STATUS}/live").json() == {"live": True}
    server.wait_log(r"requests? of class '/block' hangs?, .* here:\n  File .*apps.py.*")
    server.wait_log(r"in wait_at\n    fcntl.flock")
    assert "s3cret" not in server.log
    held.release()
    until(lambda: server.get(f"{STATUS}/ready").status == 200, "it is not ready again")


def test_switching_admission_off_leaves_the_probes(gunicorn: Start) -> None:
    server = start(gunicorn, 1, mode="off")
    assert server.get(f"{STATUS}/ready").json() == {"ready": True}
    assert server.get("/echo/a").status == 200


@pytest.mark.parametrize("kind", ["sync", "gevent"])
def test_other_workers_share_the_bound_too(kind: str, gunicorn: Start) -> None:
    size = ("--workers", "3", "--worker-class", kind)
    # A sync worker refuses what is older than max_wait, and so all with 0.
    conf = install(node_limit=2, max_wait=0 if kind == "gevent" else 60)
    server = gunicorn(*size, app=APP, bind="tcp", conf=conf)
    until(lambda: server.log.count("admission: ") >= 3, "not all of them serve")
    gate = server.gate("held")
    sent = [server.send("/hold/held") for _ in range(2)]
    server.wait_records(2, event="call", path="/hold/held")
    if kind == "gevent":  # in sync workers only one is left to answer, and it refuses
        assert server.get("/hold/held").status == 503
    else:
        assert server.get("/echo/a").status == 503
    gate.open()
    assert [one.response().status for one in sent] == [200, 200]
    assert server.get("/echo/a").status == 200
