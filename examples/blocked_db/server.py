"""gunicorn and the load generator as child processes that never outlive the demo."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scenario import KINDS, THREADS

__all__ = ["DidNotStart", "generator", "gunicorn"]

HERE = Path(__file__).resolve().parent
ROUTES = json.dumps({f"/{kind.name}": kind.priority for kind in KINDS})
START_SECONDS = 20
STOP_SECONDS = 5


class DidNotStart(Exception):
    """gunicorn does not answer; the message is the end of its log."""


@contextmanager
def gunicorn(folder: Path, *, admission: bool) -> Iterator[int]:
    """
    Serve the app from a free loopback port, with or without admission; gives the port.

    The two servers differ in one option (``-c python:gunicorn_admission.conf``) and in
    one environment variable (which routes matter more); the application is the same.
    """
    (folder / "control").write_text("normal")
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    with listening as listener, (folder / "log").open("wb") as log:
        port = listener.getsockname()[1]
        command = [
            *(sys.executable, "-m", "gunicorn", "--workers", "1", "--threads", str(THREADS)),
            *("--bind", f"fd://{listener.fileno()}", "--graceful-timeout", "2"),
            "app:app",
        ]
        environment = {name: value for name, value in os.environ.items() if "GUNICORN" not in name}
        environment |= {"DEMO_FOLDER": str(folder), "XDG_RUNTIME_DIR": str(folder)}
        if admission:
            command[3:3] = ["-c", "python:gunicorn_admission.conf"]
            environment["GUNICORN_ADMISSION_ROUTES"] = ROUTES
        server = subprocess.Popen(
            command,
            cwd=HERE,
            env=environment,
            pass_fds=[listener.fileno()],
            start_new_session=True,
            stderr=log,
        )
    try:
        _wait_until_healthy(port, server, folder)
        yield port
    finally:
        (folder / "control").write_text("normal")
        _stop(server)


@contextmanager
def generator(folder: Path, port: int, *, quick: bool) -> Iterator[subprocess.Popen[bytes]]:
    """Start the load; what it writes to ``folder/requests`` can be read meanwhile."""
    command = [sys.executable, str(HERE / "load.py"), str(port), str(folder)]
    load = subprocess.Popen(command + ["--quick"] * quick, start_new_session=True)
    try:
        yield load
    finally:
        _stop(load)


def _wait_until_healthy(port: int, server: subprocess.Popen[bytes], folder: Path) -> None:
    """The listening socket is there already, so one request waits for the worker by itself."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=START_SECONDS):
            return
    except OSError as error:
        server.kill()
        said = (folder / "log").read_text()[-3000:]
        raise DidNotStart(f"gunicorn does not answer ({error}):\n{said}") from error


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask, wait, then kill the whole process group."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
