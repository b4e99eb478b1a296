"""
Words that tests of admission are written in: configure, hold threads, count, judge a refusal.

Times that would interfere are out of reach by default (a minute until overload, an hour
until a stall), so that a test decides what happens next; each test sets what it needs.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gunicorn_admission.core.types import Reason
from tests.integration.server import Gate, Gunicorn
from tests.integration.wire import PATIENCE, Exchange, Response

__all__ = [
    "APP",
    "Held",
    "Start",
    "assert_balanced",
    "assert_refused",
    "configuration",
    "hold",
    "running",
    "settled",
    "statistics",
    "wait_age",
    "wait_statistics",
]

Start = Callable[..., Gunicorn]

APP = "tests.integration.apps_admission:application"

CALM: Mapping[str, Any] = {
    "interval": 60,
    "stall_after": 3600,
    "max_wait": 30,
    "exempt": ["/admission"],
}

_TEXT = """
from gunicorn_admission.hooks import install
from tests.integration import apps_admission

def post_worker_init(worker):
    apps_admission.worker = worker

def worker_exit(server, worker):
    apps_admission.note_exit()

{more}
install(globals(), **{settings!r})
"""


def configuration(more: str = "", **settings: Any) -> str:
    """
    Text of a ``gunicorn.conf.py`` that installs admission, calm unless told otherwise.

    Args:
        more: Lines in front of the call of ``install``.
        settings: Fields of ``Settings``; ``None`` takes back what is calm by default.
    """
    merged = {**CALM, **settings}
    return _TEXT.format(
        more=more, settings={name: value for name, value in merged.items() if value is not None}
    )


@contextlib.contextmanager
def running(directory: Path, *args: str, **options: Any) -> Iterator[Gunicorn]:
    """A server for several tests; its log is printed at the end."""
    with Gunicorn(*args, directory=directory, app=APP, **options) as server:
        try:
            yield server
        finally:
            print(server.log)


def statistics(server: Gunicorn) -> dict[str, Any]:
    """The limiter's statistics now, asked for on a way that needs no slot."""
    response = server.get("/admission")
    assert response.status == 200, response
    numbers: dict[str, Any] = response.json()
    return numbers


def wait_statistics(
    server: Gunicorn, timeout: float = PATIENCE, **fields: object
) -> dict[str, Any]:
    """Wait until the statistics show these values; all of them."""
    deadline = time.monotonic() + timeout
    while not fields.items() <= (seen := statistics(server)).items():
        assert time.monotonic() < deadline, f"waited {timeout} s for {fields}, have {seen}"
        time.sleep(0.005)
    return seen


def wait_age(server: Gunicorn, partition: str, seconds: float, timeout: float = PATIENCE) -> None:
    """Wait until the oldest request of a class runs for so long, by the server's own clock."""
    deadline = time.monotonic() + timeout
    while statistics(server)["partitions"][partition]["oldest_seconds"] < seconds:
        assert time.monotonic() < deadline, f"waited {timeout} s"
        time.sleep(0.005)


def settled(server: Gunicorn, timeout: float = PATIENCE) -> dict[str, Any]:
    """Wait until nothing runs and nothing waits, and check that the books are balanced."""
    seen = wait_statistics(server, timeout, inflight=0, waiting=0)
    assert_balanced(seen)
    return seen


def assert_balanced(seen: Mapping[str, Any]) -> None:
    """Every request is in the books once, and no slot was lost or given back twice."""
    shed = sum(seen["shed"].values())
    assert seen["arrivals"] == seen["granted"] + shed + seen["waiting"], seen
    assert (seen["released_twice"], seen["leaked"]) == (0, 0), seen
    in_classes = seen["partitions"].values()
    assert sum(one["inflight"] for one in in_classes) == seen["inflight"], seen


class Held:
    """
    Requests that hold a thread each until :meth:`release`.

    Attributes:
        exchanges: One a request, in the order in which they were sent.
    """

    def __init__(self, gate: Gate, exchanges: list[Exchange]) -> None:
        self._gate = gate
        self.exchanges = exchanges

    def release(self) -> None:
        """Let them finish; each must have been served."""
        self._gate.open()
        assert [one.response().status for one in self.exchanges] == [200] * len(self.exchanges)


def hold(
    server: Gunicorn, count: int, gate: str = "held", handler: str = "block", **request: Any
) -> Held:
    """Send requests for ``/<handler>/<gate>`` and return once each of them has a thread."""
    barrier = server.gate(gate)
    path = f"/{handler}/{gate}"
    exchanges = [server.send(path, **request) for _ in range(count)]
    server.wait_records(count, event="call", path=path)
    return Held(barrier, exchanges)


def assert_refused(
    response: Response, reasons: str | Iterable[str] = (), *, with_body: bool = True
) -> None:
    """
    Check that an answer is a whole and honest refusal.

    Args:
        response: What the client read.
        reasons: Which are right here; any of the closed list by default.
        with_body: False for the answer to HEAD.
    """
    allowed = {reasons} if isinstance(reasons, str) else set(reasons)
    assert response.status == 503, response
    seconds = response.headers["retry-after"]
    assert seconds.isdigit() and int(seconds) >= 1, response
    reason = response.headers["admission-reason"]
    assert reason in (allowed or {one.value for one in Reason}), response
    assert response.headers["cache-control"] == "no-store", response
    assert response.headers["content-type"] == "application/problem+json", response
    if not with_body:
        assert response.body == b"", response
        return
    problem = response.json()
    assert (problem["status"], problem["reason"]) == (503, reason), response
    assert problem["retry_after"] == int(seconds), response
    assert problem["title"] == "Service Unavailable"
    assert problem["detail"]
