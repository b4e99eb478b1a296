"""The command line and environment that a gunicorn under test gets."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.integration.wire import PATIENCE

__all__ = ["APP", "command", "environment", "run_gunicorn"]

ROOT = Path(__file__).resolve().parents[2]
APP = "tests.integration.apps:application"


@functools.cache
def _known_settings(python: str) -> frozenset[str]:
    code = "from gunicorn.config import KNOWN_SETTINGS as k; print(*[s.name for s in k])"
    return frozenset(subprocess.check_output([python, "-c", code], text=True).split())


def environment(directory: Path, changes: Mapping[str, str] | None) -> dict[str, str]:
    """The variables a server gets: ours to import, nothing of the caller's configuration."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GUNICORN_") and name not in {"PORT", "WEB_CONCURRENCY"}
    }
    kept["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(directory)])
    kept["ADMISSION_TEST_DIR"] = str(directory)
    return kept | dict(changes or {})


def command(
    python: str, directory: Path, app: str | None, args: tuple[str, ...], conf: str | None
) -> list[str]:
    """The command line; ``conf`` is written to the file that gunicorn loads by default."""
    if conf is not None:
        (directory / "gunicorn.conf.py").write_text(conf)
    line = [python, "-m", "gunicorn", *args]
    if "control_socket_disable" in _known_settings(python):
        line.append("--no-control-socket")  # else it makes one in the home directory
    return [*line, app] if app else line


def run_gunicorn(
    *args: str,
    directory: Path,
    app: str | None = APP,
    conf: str | None = None,
    env: Mapping[str, str] | None = None,
    python: str = sys.executable,
    timeout: float = PATIENCE,
) -> subprocess.CompletedProcess[str]:
    """
    Run a gunicorn that ends by itself: ``--check-config``, or one that must fail.

    Returns:
        Its exit status, and everything it printed as ``stdout``.
    """
    return subprocess.run(
        command(python, directory, app, args, conf),
        cwd=directory,
        env=environment(directory, env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
    )
