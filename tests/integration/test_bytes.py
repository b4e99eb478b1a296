"""
Whatever bytes a client sends, the answers are those of plain gunicorn, and nothing leaks.

The same cases go to a plain gthread worker and to one with admission, at rest and while
everything is refused. A prober asks for the health check all the while: the main loop must
never stand still.
"""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from gunicorn.config import make_settings

from tests.integration.admission import Held, configuration, hold, settled, wait_statistics
from tests.integration.byte_cases import CASES, PROXY_CASES, mutants
from tests.integration.server import Gunicorn
from tests.integration.ways import PROXY_ON
from tests.integration.wire import PATIENCE

APP = "tests.integration.apps_bytes:application"
ARGS = ("--threads", "2")
#: Half-closed clients count as gone where requests wait; here they want to read all answers.
CALM = {"limit": 2, "gone_check": False, "read_timeout": "10s"}
#: Of gunicorn; the one in C where this gunicorn knows it and it is installed.
PARSERS = ["python"]
if "http_parser" in make_settings() and importlib.util.find_spec("gunicorn_h1c"):
    PARSERS.append("fast")
KINDS = ["tcp", "unix", "proxy"]
_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})[^\r\n]*\r\n")
_DATE = re.compile(rb"\r\nDate: [^\r\n]*")
#: Its words depend on how much had arrived when the parser gave up.
_PAGE = re.compile(rb"Content-Length: [0-9]+\r\n\r\n<html>.*?</html>\n", re.DOTALL)


class Heard(NamedTuple):
    """
    What a client read until the server closed.

    Attributes:
        data: Its bytes, without dates and the text of gunicorn's error pages.
        reset: The end was a reset.
    """

    data: bytes
    reset: bool

    @property
    def statuses(self) -> list[int]:
        """Of the answers, in their order."""
        return [int(code) for code in _STATUS.findall(self.data)]


def converse(server: Gunicorn, pieces: list[bytes]) -> Heard:
    """Send pieces, close the sending side, and read to the end."""
    received, reset = bytearray(), False
    with server.connect() as connection:
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for piece in pieces:
                connection.sendall(piece)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            reset = True  # the server has seen enough
        try:
            while data := connection.recv(65536):
                received += data
        except TimeoutError:
            raise AssertionError(f"no end after {pieces!r}: {bytes(received)!r}") from None
        except OSError:
            reset = True
    return Heard(_PAGE.sub(b"", _DATE.sub(b"", bytes(received))), reset)


class Pair(NamedTuple):
    """The same server twice, plain and with admission."""

    plain: Gunicorn
    ours: Gunicorn
    cases: Mapping[str, list[bytes]]


@pytest.fixture(
    scope="module",
    params=[(kind, parser) for parser in PARSERS for kind in KINDS],
    ids=lambda param: "-".join(param),
)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    kind, parser = request.param
    args = [*ARGS]
    if "http_parser" in make_settings():
        args += ["--http-parser", parser]
    if kind == "proxy":
        args += PROXY_ON
    bind = "unix" if kind == "unix" else "tcp"

    def start(name: str, conf: str | None) -> Gunicorn:
        directory = tmp_path_factory.mktemp(name)
        return Gunicorn(*args, directory=directory, app=APP, conf=conf, bind=bind)

    with (
        start("plain", None) as plain,
        start("ours", configuration(**CALM, max_queue=0)) as ours,
    ):
        yield Pair(plain, ours, PROXY_CASES if kind == "proxy" else CASES)


class Prober:
    """Asks for the health check again and again, and remembers the slowest answer."""

    def __init__(self, server: Gunicorn) -> None:
        self._server = server
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.slowest = 0.0
        self.count = 0

    def _run(self) -> None:
        while not self._stop.is_set():
            self._stop.wait(0.02)
            began = time.monotonic()
            assert self._server.get("/health").status == 200
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.count += 1

    def __enter__(self) -> Prober:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@pytest.fixture(autouse=True)
def nothing_leaks(pair: Pair) -> Iterator[None]:
    server = pair.ours
    # What is made for the first request, and for the first that is waited for, is there.
    assert server.get("/a").status == 200
    with server.connect() as connection:
        connection.sendall(b"GET /a HT")
        wait_statistics(server, reading=1)
    before = resources(server)
    with Prober(server) as prober:
        yield
    # A main loop that waits for a client does so for ten seconds; the machine may be busy.
    assert prober.slowest < 5
    assert prober.count
    settled(server)
    deadline = time.monotonic() + PATIENCE
    while (after := resources(server)) > before:  # the last clients are just being closed
        assert time.monotonic() < deadline, f"{before} grew to {after}"


def resources(server: Gunicorn) -> int:
    """Descriptors and threads of the worker, once no connection but the question's is left."""
    (worker,) = server.workers()
    process = Path(f"/proc/{worker}")
    counts = []
    for _ in range(5):  # a connection that lingers for its client is not counted by gunicorn
        wait_statistics(server, nr_conns=1)
        counts.append(sum(len(os.listdir(process / name)) for name in ("fd", "task")))
    return min(counts)


def every_case(pair: Pair) -> Iterator[tuple[str, list[bytes]]]:
    yield from pair.cases.items()
    for number, pieces in enumerate(mutants(pair.cases, 80, seed=3)):
        yield f"mutant {number}", pieces


def same(ours: Heard, plain: Heard) -> bool:
    if ours.reset or plain.reset:  # which may destroy what was on its way
        return ours.data.startswith(plain.data) or plain.data.startswith(ours.data)
    return ours.data == plain.data


def test_at_rest_every_answer_is_that_of_plain_gunicorn(pair: Pair) -> None:
    different = {}
    for name, pieces in every_case(pair):
        ours, plain = converse(pair.ours, pieces), converse(pair.plain, pieces)
        if not same(ours, plain):
            different[name] = pieces, ours, plain
    assert not different


def test_while_all_is_refused_nothing_else_is_answered(pair: Pair) -> None:
    held: Held = hold(pair.ours, 2)
    different = {}
    for name, pieces in every_case(pair):
        ours, plain = converse(pair.ours, pieces), converse(pair.plain, pieces)
        answers = zip(ours.statuses, plain.statuses, strict=False)
        honest = all(one in (503, other) and one != 200 for one, other in answers)
        if not honest or len(ours.statuses) > len(plain.statuses):
            different[name] = pieces, ours, plain
    held.release()
    assert not different
