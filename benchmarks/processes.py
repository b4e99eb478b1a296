"""
Servers under test: start them, wait for them, read what they cost, end them.

Linux only: costs are read from ``/proc``. Each command leads a session of its own, so that
everything it starts is counted with it and ends with it, and nothing else does.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import NamedTuple, Self

from gunicorn.config import KNOWN_SETTINGS

__all__ = [
    "ROOT",
    "START_SECONDS",
    "STOP_SECONDS",
    "DidNotStart",
    "Server",
    "end_on_sigterm",
    "free_port",
    "gunicorn",
    "program",
]

ROOT = Path(__file__).resolve().parent.parent
ADMISSION = ("-c", "python:gunicorn_admission.conf")
START_SECONDS = 20.0
STOP_SECONDS = 5.0
_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class DidNotStart(Exception):
    """The server does not answer; the message is the end of its log."""


class Cost(NamedTuple):
    """What all processes of a server have used: CPU seconds so far, resident bytes now."""

    cpu_seconds: float
    memory_bytes: int


def program(name: str) -> str | None:
    """Path of a program, or ``None`` if this machine has none."""
    return shutil.which(name, path=_PATH)


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def gunicorn(app: str, port: int, threads: int, *more: str, admission: bool = False) -> list[str]:
    """A command for one gthread worker, run by the interpreter that runs the benchmark."""
    command = [
        *(sys.executable, "-m", "gunicorn", "-k", "gthread", "--workers", "1"),
        *("--threads", str(threads), "--bind", f"127.0.0.1:{port}", "--keep-alive", "5"),
        *("--log-level", "warning", "--graceful-timeout", "1"),
    ]
    if any(setting.name == "control_socket_disable" for setting in KNOWN_SETTINGS):
        command.append("--no-control-socket")  # else it makes one in the home directory
    return [*command, *(ADMISSION if admission else ()), *more, app]


def end_on_sigterm() -> None:
    """Turn SIGTERM into SystemExit, so that servers end with the benchmark."""

    def leave(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)


class Server:
    """
    A context manager around the commands that together serve one port.

    Args:
        commands: Started in order; ended in reverse.
        port: Where ``/healthz`` must answer 200 before anything is measured.
        folder: Working directory; its ``log`` takes what they print.
        variables: Added to the environment, which has no ``GUNICORN_*`` of the caller.

    Raises:
        DidNotStart: From ``__enter__``.
    """

    def __init__(
        self,
        commands: Sequence[Sequence[str]],
        port: int,
        folder: Path,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._commands = commands
        self.port = port
        self._folder = folder
        kept = {k: v for k, v in os.environ.items() if not k.startswith("GUNICORN_")}
        kept.pop("WEB_CONCURRENCY", None)
        self._environment = {**kept, "PATH": _PATH, "PYTHONPATH": str(ROOT), **(variables or {})}
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        try:
            with (self._folder / "log").open("ab") as log:
                for command in self._commands:
                    self._processes.append(
                        subprocess.Popen(
                            command,
                            cwd=self._folder,
                            env=self._environment,
                            stdin=subprocess.DEVNULL,
                            stdout=log,
                            stderr=log,
                            start_new_session=True,
                        )
                    )
            self._wait_until_healthy()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def status(self, path: str, timeout: float = 2.0) -> int:
        """Status of one request on a new connection; 0 when nothing comes back."""
        request = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout) as sock:
                sock.sendall(request.encode())
                return int(sock.recv(4096)[9:12] or 0)
        except OSError:
            return 0

    def cost(self) -> Cost:
        """Read what the server has used until now; its dead children are left out."""
        sessions = {process.pid for process in self._processes}
        ticks = pages = 0
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                text = Path("/proc", entry, "stat").read_text()
            except OSError:
                continue
            fields = text.rpartition(")")[2].split()  # from the third field on, see proc(5)
            if int(fields[3]) in sessions:
                ticks += int(fields[11]) + int(fields[12])
                pages += int(fields[21])
        return Cost(ticks / _TICKS, pages * _PAGE)

    def _wait_until_healthy(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while self.status("/healthz") != 200:
            dead = any(process.poll() is not None for process in self._processes)
            if dead or time.monotonic() > deadline:
                said = (self._folder / "log").read_text(errors="replace")[-2000:]
                raise DidNotStart(f"{self._commands[0][:3]} ... does not answer:\n{said}")
            time.sleep(0.05)
        time.sleep(0.2)  # let the start's last work not be counted with the load

    def _stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what is left of its own session
            process.wait()
