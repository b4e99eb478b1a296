"""
A real gunicorn under test: start it, talk to it, watch its processes, stop it.

Nothing here sleeps for a fixed time: every wait polls a fact (a line in a file, a process
that is gone), has a deadline, and fails with the server's log. Start with ``Gunicorn``;
the fixture ``gunicorn`` in ``conftest.py`` makes one and stops it.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from signal import SIGHUP, SIGTERM, Signals
from types import TracebackType
from typing import IO, Any, Literal, Self, TypeVar

from tests.integration import processes, wire
from tests.integration.launch import APP, command, environment, run_gunicorn
from tests.integration.wire import PATIENCE, Exchange, Response

__all__ = ["APP", "Gate", "Gunicorn", "run_gunicorn"]

T = TypeVar("T")


class Gate:
    """
    A barrier that handlers of the test app wait at (``/block/<name>``).

    It is an exclusive lock on a file that the handlers want shared, so it opens for
    all at once and for ever, and opens by itself when the test process dies.
    """

    def __init__(self, path: Path) -> None:
        self._file: IO[bytes] | None = path.open("ab")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def open(self) -> None:
        """Let every waiting and coming request pass; harmless when open already."""
        if self._file is not None:
            self._file.close()
            self._file = None


class Gunicorn:
    """
    A context manager around ``python -m gunicorn``, its directory and its children.

    Args:
        args: Command line arguments; they win over ``conf``, as always in gunicorn.
        directory: Where it runs, and where sockets, gates and logs lie; ``tmp_path``.
        app: ``module:name``; by default the test application of ``apps.py``.
        conf: Text of its ``gunicorn.conf.py``, or ``None`` for none.
        env: Variables to add.
        python: Interpreter, to run another gunicorn version.
        bind: ``"unix"`` or ``"tcp"`` (loopback, a free port).
        tls: Client context when the server speaks TLS.
    """

    def __init__(
        self,
        *args: str,
        directory: Path,
        app: str | None = APP,
        conf: str | None = None,
        env: Mapping[str, str] | None = None,
        python: str = sys.executable,
        bind: Literal["unix", "tcp"] = "unix",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.directory = directory
        self.log_path = directory / "gunicorn.log"
        self._socket_path = directory / "g.sock"
        self._unix = bind == "unix"
        self._tls = tls
        self._port = 0
        self._gates: list[Gate] = []
        bound = f"unix:{self._socket_path}" if self._unix else "127.0.0.1:0"
        self._command = command(python, directory, app, ("--bind", bound, *args), conf)
        self._environment = environment(directory, env)
        self._process: subprocess.Popen[bytes]

    def __enter__(self) -> Self:
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self.directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # one process group: leaks can be seen and ended
            )
        try:
            self._port = int(self.wait_log(r"Listening at: \S+?(?::(\d+))? \(")[1] or 0)
            self.wait_workers(bool)
        except BaseException:
            processes.kill_group(self.pid)
            self._process.wait()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            error.add_note(f"gunicorn's log:\n{self.log}")
        self.stop()

    @property
    def pid(self) -> int:
        """Process id of the master."""
        return self._process.pid

    def workers(self) -> list[int]:
        """Process ids of the living workers, oldest first."""
        return processes.children(self.pid)

    def signal(self, number: Signals, pid: int | None = None) -> None:
        """Send a signal to the master, or to the process named."""
        os.kill(self.pid if pid is None else pid, number)

    def reload(self) -> None:
        """HUP the master; return when all workers are new and the old ones are gone."""
        before = set(self.workers())
        self.signal(SIGHUP)
        self.wait_workers(lambda pids: bool(pids) and before.isdisjoint(pids))

    def stop(self, number: Signals = SIGTERM, timeout: float = PATIENCE) -> int:
        """
        Open all gates, end the server, check that no process of it is left.

        Returns:
            The exit status of the master.
        """
        for gate in self._gates:
            gate.open()
        if self._process.poll() is None:
            self.signal(number)
        try:
            status = self.wait_exit(timeout)
            left = processes.wait_gone(self.pid, timeout)
            assert not left, f"gunicorn left {left} behind\n{self.log}"
        finally:
            processes.kill_group(self.pid)
            self._process.wait()
        return status

    def wait_exit(self, timeout: float = PATIENCE) -> int:
        """Wait for the master to end; its exit status."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"gunicorn did not end in {timeout} s\n{self.log}") from None

    @property
    def log(self) -> str:
        """Everything gunicorn printed so far."""
        return self.log_path.read_text(errors="replace")

    def wait_log(self, pattern: str, *, count: int = 1, timeout: float = PATIENCE) -> re.Match[str]:
        """Wait until the pattern stands in the log ``count`` times; that match."""

        def found() -> re.Match[str] | None:
            matches = list(re.finditer(pattern, self.log, re.MULTILINE))
            return matches[count - 1] if len(matches) >= count else None

        return self._until(found, timeout, f"{count} times {pattern!r} in the log")

    def records(self, **fields: object) -> list[dict[str, Any]]:
        """What the test app recorded, oldest first; only records with these fields."""
        try:
            lines = (self.directory / "records.jsonl").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [row for row in map(json.loads, lines) if fields.items() <= row.items()]

    def wait_records(
        self, count: int = 1, *, timeout: float = PATIENCE, **fields: object
    ) -> list[dict[str, Any]]:
        """Wait until there are at least ``count`` such records; all of them."""

        def found() -> list[dict[str, Any]] | None:
            rows = self.records(**fields)
            return rows if len(rows) >= count else None

        return self._until(found, timeout, f"{count} records with {fields}")

    def wait_workers(
        self, condition: Callable[[list[int]], bool], timeout: float = PATIENCE
    ) -> list[int]:
        """Wait until the list of worker pids fulfils the condition; that list."""

        def found() -> list[int] | None:
            pids = self.workers()
            return pids if condition(pids) else None

        return self._until(found, timeout, "a change of its workers")

    def _until(self, found: Callable[[], T | None], timeout: float, what: str) -> T:
        """Poll until ``found`` gives something true; give up early when gunicorn is dead."""
        deadline = time.monotonic() + timeout
        while not (value := found()):
            dead = self._process.poll() is not None
            if time.monotonic() > deadline or (dead and not found()):
                state = "gunicorn is dead" if dead else f"waited {timeout} s"
                raise AssertionError(f"{state}; expected {what}\n{self.log}")
            time.sleep(0.005)
        return value

    def gate(self, name: str) -> Gate:
        """A closed gate; requests for ``/block/<name>`` wait until it is opened."""
        gate = Gate(self.directory / f"gate-{name}")
        self._gates.append(gate)
        return gate

    def connect(self, timeout: float = PATIENCE) -> socket.socket:
        """A connected socket with a timeout; TLS when the server speaks it."""
        if self._unix:
            plain = socket.socket(socket.AF_UNIX)
            plain.settimeout(timeout)
            plain.connect(str(self._socket_path))
        else:
            plain = socket.create_connection(("127.0.0.1", self._port), timeout)
        if self._tls is None:
            return plain
        return self._tls.wrap_socket(plain, server_hostname="localhost")

    def raw(self, data: bytes, timeout: float = PATIENCE) -> bytes:
        """Send bytes and read until the server closes; ask it to (``Connection: close``)."""
        with self.connect(timeout) as connection:
            connection.sendall(data)
            return wire.read_to_end(connection)

    def send(
        self,
        path: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        connection: socket.socket | None = None,
    ) -> Exchange:
        """Send a request, on a new connection or this one, and do not wait for the answer."""
        return wire.send(connection or self.connect(), method, path, headers or {}, body)

    def get(self, path: str, *, timeout: float = PATIENCE, **request: Any) -> Response:
        """Send a request (arguments as :meth:`send`) and read its answer."""
        return self.send(path, **request).response(timeout)
