"""The processes of the demo: gunicorn and workers, which never outlive it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner

from gunicorn_admission.cli.verbs import root

HERE = Path(__file__).resolve().parent
PATIENCE = 30.0


class Stage:
    """
    What runs in one folder.

    Args:
        folder: For the database and the logs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"sqlite:///{folder / 'webhooks.db'}"
        kept = {name: value for name, value in os.environ.items() if "GUNICORN" not in name}
        self.environment = kept | {
            "GUNICORN_ADMISSION_STORE_URL": self.url,
            "GIT_SECRET": "not a real secret of git",
            "BILLING_SECRET": "whsec_not_a_real_secret_of_billing",
            "ORDERS_SECRET": "not a real secret of orders",
            "XDG_RUNTIME_DIR": str(folder),  # gunicorn puts its control socket there
        }
        self._processes: list[subprocess.Popen[bytes]] = []

    def command(self, *words: str) -> str:
        """Run the command as an operator would, but in this process; what it prints."""
        done = CliRunner().invoke(root, words, env=self.environment)
        if done.exit_code:
            raise SystemExit(f"gunicorn-admission {' '.join(words)}: {done.output}")
        return done.output.strip()

    def gunicorn(self) -> str:
        """Serve the shop; the address."""
        with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
            address = f"http://127.0.0.1:{listener.getsockname()[1]}"
            number = listener.fileno()
            bind = f"fd://{number}"
            self._start("gunicorn", "-m", "gunicorn", "--bind", bind, "app:app", keep=number)
        # The socket listens already, so the first request waits for the worker by itself.
        urllib.request.urlopen(f"{address}/reports", timeout=PATIENCE).close()
        return address

    def worker(self, name: str) -> subprocess.Popen[bytes]:
        """Start a worker that runs all consumers."""
        words = (
            "-m",
            "gunicorn_admission.cli",
            "worker",
            "--app",
            "app:webhooks",
            "--poll",
            "50ms",
        )
        return self._start(name, *words)

    def log(self, name: str) -> str:
        """What a process has written so far."""
        return (self.folder / f"{name}.log").read_text()

    def _start(self, name: str, *words: str, keep: int | None = None) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *words],
                cwd=HERE, env=self.environment, stdout=log, stderr=log, start_new_session=True,
                pass_fds=() if keep is None else (keep,),
            )  # fmt: skip
        self._processes.append(process)
        return process

    def close(self) -> None:
        """End all of it."""
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
        until = time.monotonic() + PATIENCE
        for process in self._processes:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """Give a stage that ends with the block."""
    made = Stage(folder)
    try:
        yield made
    finally:
        made.close()
