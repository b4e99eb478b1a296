"""
Two servers under mixed load: one left alone, one recycled, reloaded and killed.

On the one that is left alone descriptors, threads and memory of the worker must be flat. Of
the other every worker that ended in order must leave balanced books, and its master be flat.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from signal import SIGABRT, SIGHUP, SIGKILL, SIGTTIN, SIGTTOU
from typing import Any

from tests.integration.admission import APP, assert_balanced, configuration, settled
from tests.integration.server import Gunicorn
from tests.soak.clients import ALLOWED
from tests.soak.watch import Holding, grown, holding

__all__ = ["Soak"]

SETTINGS = {"limit": None, "interval": "100ms", "max_wait": "200ms", "read_timeout": "1s"}
COMMON = ("--threads", "4", "--keep-alive", "2", "--graceful-timeout", "10")
CALM = ("--workers", "1", *COMMON)
ROUGH = ("--workers", "2", "--max-requests", "700", "--max-requests-jitter", "300", *COMMON)
_PATIENCE = 60.0


class Soak:
    """
    One run.

    Args:
        directory: For sockets, logs and records.
        seconds: How long the load lasts.
        clients: At each server.
        pause: Seconds between two disturbances.
        seed: Of all that is left to chance.

    Attributes:
        answers: How many of each status, by server.
        disturbed: How often each thing was done to the rough server.
        problems: What must not be; empty after a good run.
    """

    def __init__(
        self, directory: Path, seconds: float, clients: int, pause: float, seed: int
    ) -> None:
        self._directory = directory
        self._seconds = seconds
        self._clients = clients
        self._pause = pause
        self._seed = seed
        self._chance = random.Random(seed)
        self._ended_hard: set[int] = set()
        self.answers: dict[str, Counter[str]] = {}
        self.disturbed: Counter[str] = Counter()
        self.samples: dict[str, list[Holding]] = {"worker": [], "master": []}
        self.problems: list[str] = []

    def run(self) -> None:
        """Do it all; afterwards ``problems`` tells whether it was good."""
        with ExitStack() as stack:
            calm = stack.enter_context(self._server("calm", CALM))
            rough = stack.enter_context(self._server("rough", ROUGH))
            (worker,) = calm.workers()
            with self._load("calm", calm), self._load("rough", rough):
                self._pass_time(rough, {"worker": worker, "master": rough.pid})
            if calm.workers() != [worker]:
                self.problems.append(f"the worker that was left alone has died\n{calm.log}")
            settled(calm, _PATIENCE)
            rough.wait_workers(lambda pids: len(pids) == 2, _PATIENCE)
            if rough.get("/echo/last", timeout=_PATIENCE).status != 200:
                self.problems.append("the server that was disturbed does not answer any more")
            for server in (calm, rough):
                server.stop(timeout=_PATIENCE)
            self._check_books(calm, rough)
        for name, samples in self.samples.items():
            self.problems += [f"{name}: {what}" for what in grown(samples)]
        for name, answers in self.answers.items():
            for what in answers:
                if not what.isdigit() or int(what) not in ALLOWED:
                    self.problems.append(f"{name}: {answers[what]} times {what}")

    def _server(self, name: str, args: tuple[str, ...]) -> Gunicorn:
        directory = self._directory / name
        directory.mkdir()
        conf = configuration(**SETTINGS)
        return Gunicorn(*args, directory=directory, app=APP, conf=conf, bind="tcp")

    @contextmanager
    def _load(self, name: str, server: Gunicorn) -> Iterator[None]:
        with server.connect() as connection:
            port = connection.getpeername()[1]
        line = [sys.executable, "-m", "tests.soak.clients", str(port)]
        line += [str(self._clients), str(self._seed)]
        pipe = subprocess.PIPE
        with subprocess.Popen(line, stdin=pipe, stdout=pipe, text=True) as process:
            try:
                yield
            finally:
                out, _ = process.communicate(timeout=_PATIENCE)
                self.answers[name] = Counter(json.loads(out))

    def _pass_time(self, rough: Gunicorn, watched: dict[str, int]) -> None:
        """Look at the processes, and disturb the rough server, until the time is over."""
        now = time.monotonic()
        end, disturb_at = now + self._seconds, now + self._pause
        every = self._seconds / 300
        while (now := time.monotonic()) < end:
            for name, pid in watched.items():
                if (found := holding(pid)) is not None:
                    self.samples[name].append(found)
            if now >= disturb_at:
                disturb_at = now + self._pause
                self._disturb(rough)
            time.sleep(max(0.02, every))

    def _disturb(self, rough: Gunicorn) -> None:
        workers = rough.workers()
        what = self._chance.choice(["reload", "kill", "abort", "more and less"])
        self.disturbed[what] += 1
        if what == "reload":
            rough.signal(SIGHUP)
        elif what == "more and less":
            rough.signal(SIGTTIN)
            rough.signal(SIGTTOU)
        elif workers:
            victim = self._chance.choice(workers)
            self._ended_hard.add(victim)
            try:
                rough.signal(SIGKILL if what == "kill" else SIGABRT, victim)
            except ProcessLookupError:
                pass  # recycled at that very moment

    def _check_books(self, *servers: Gunicorn) -> None:
        for server in servers:
            rows = server.records(event="call")
            calls = Counter(row["pid"] for row in rows if row["path"] != "/health")  # exempt
            for row in server.records(event="exit"):
                pid, books = row["pid"], row["statistics"]
                try:
                    self._check(pid, books, calls[pid])
                except AssertionError as error:
                    self.problems.append(f"books of worker {pid}: {error}")

    def _check(self, pid: int, books: dict[str, Any], calls: int) -> None:
        assert_balanced(books)
        if pid not in self._ended_hard:  # numbers of processes are used again
            assert calls <= books["granted"], (calls, books)
            assert (books["inflight"], books["waiting"]) == (0, 0), books
