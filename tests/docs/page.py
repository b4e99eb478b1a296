"""
Runs a page from top to bottom, in a folder of its own, the way a reader would.

Python with a file name in its first line is written; a gunicorn configuration is checked
by gunicorn too. Other Python is run as a script. Of console blocks each command is run and
its output compared; where the block is marked ``in the end``, it is repeated until it is so.
A command that ends in ``&`` goes on in the background: a server until the next one starts,
since they share a port. Documented ports are replaced by free ones.
"""

from __future__ import annotations

import configparser
import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

from gunicorn_admission.settings import load
from tests.docs.markdown import ROOT, Block, blocks
from tests.docs.output import differences, matches

__all__ = ["DATABASE", "Page"]

#: What stands for a PostgreSQL database in commands.
DATABASE: Final = "postgresql://app@localhost/app"
PATIENCE: Final = 15.0  # seconds; only failures pay it
_NAMED: Final = re.compile(r"# ([\w./-]+\.(?:py|toml))\n")
# What is waited for until it listens, with variables in front.
_SERVER: Final = re.compile(r"(?:\w+='?[^']*'? )*(?:gunicorn|python serve\.py)(?![\w-]) ?")
_DOCUMENTED: Final = {"8000": socket.SOCK_STREAM, "8125": socket.SOCK_DGRAM}
_SBIN: Final = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"


def _free_port(kind: socket.SocketKind) -> str:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


class Page:
    """
    A page being run; a context manager that ends what the page has started.

    Args:
        path: The Markdown file.
        folder: Where its commands run and its files are written.
        database: URL of an empty database in place of the documented one.
    """

    def __init__(self, path: Path, folder: Path, database: str | None = None) -> None:
        self._path = path
        self._database = database
        self._folder = folder
        self._ports = {port: _free_port(kind) for port, kind in _DOCUMENTED.items()}
        self._background: list[subprocess.Popen[bytes]] = []
        self._server: subprocess.Popen[bytes] | None = None
        (folder / ".curlrc").write_text("silent\n")  # no progress bar in what is compared
        kept = {name: value for name, value in os.environ.items() if "GUNICORN" not in name}
        self._environment = kept | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{_SBIN}",
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "GUNICORN_CMD_ARGS": f"--bind 127.0.0.1:{self._ports['8000']}",
            "HOME": str(folder),  # gunicorn puts its control socket there
            "XDG_RUNTIME_DIR": str(folder),
            "NO_COLOR": "1",
        }

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._background:
            self._end(process)

    def run(self) -> None:
        """Run every block; a failure names the line."""
        text = self._path.read_text("utf-8")
        for other in re.findall(r"<!-- with the files of (\S+) -->", text):
            for block in blocks((ROOT / other).read_text("utf-8")):
                if _NAMED.match(block.text):
                    self._write(block)
        for block in blocks(text):
            runner = getattr(self, f"_run_{block.info}", None)
            where = f"{self._path.relative_to(ROOT)}:{block.line}"
            assert runner is not None, f"{where}: nobody knows how to check {block.info!r}"
            try:
                runner(block)
            except Exception as error:
                error.add_note(f"{where}\nIn the background:\n{self._printed()}")
                raise

    # -- blocks by their info string -------------------------------------------------

    def _run_python(self, block: Block) -> None:
        file = self._write(block)
        if file is None:
            (self._folder / "script.py").write_text(self._real(block.text))
            self._command("python script.py", "")
        elif file.name.endswith("conf.py"):
            status, printed = self._execute(f"gunicorn --check-config -c {file.name} app:app")
            assert status == 0, printed
        else:
            compile(block.text, str(file), "exec")

    def _run_toml(self, block: Block) -> None:
        tomllib.loads(block.text)
        file = self._write(block)
        assert file is not None, "name the file in a comment on the first line"
        load(toml_path=file)
        file.unlink()  # or every later command of the page would read it

    def _run_text(self, block: Block) -> None:
        """A drawing; there is nothing to run."""

    def _run_json(self, block: Block) -> None:
        json.loads(block.text)

    def _run_console(self, block: Block) -> None:
        commands: list[tuple[str, list[str]]] = []
        for line in block.text.splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            elif commands and commands[-1][0].endswith("\\") and not commands[-1][1]:
                commands[-1] = (f"{commands[-1][0][:-1]}{line.strip()}", [])
            else:
                assert commands, f"output before the first command: {line!r}"
                commands[-1][1].append(line)
        assert commands, "a console block without a command"
        until = time.monotonic() + PATIENCE
        for command, printed in commands:
            while True:
                try:
                    self._command(command, "\n".join(printed), fails=block.mark == "fails")
                    break
                except AssertionError:
                    if block.mark != "in the end" or time.monotonic() > until:
                        raise

    def _run_log(self, block: Block) -> None:
        """Each line must have been printed in the background, or be printed soon."""
        for line in block.text.splitlines():
            self._wait(functools.partial(self._was_printed, line), f"never printed: {line}")

    def _run_nginx(self, block: Block) -> None:
        text = block.text if "server {" in block.text else f"server {{ {block.text} }}"
        temporary = "".join(
            f"{kind}_temp_path {kind}; "
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        conf = f"pid nginx.pid; events {{}} http {{ access_log off; {temporary} {text} }}"
        (self._folder / "nginx.conf").write_text(self._real(conf))
        program = self._program("nginx")
        status, printed = self._execute(f"{program} -t -p . -c nginx.conf -e stderr")
        assert status == 0, printed

    def _run_haproxy(self, block: Block) -> None:
        (self._folder / "haproxy.cfg").write_text(self._real(block.text))
        status, printed = self._execute(f"{self._program('haproxy')} -c -f haproxy.cfg")
        assert status == 0, printed

    def _run_yaml(self, block: Block) -> None:
        """A configuration of Prometheus' Alertmanager."""
        (self._folder / "alertmanager.yml").write_text(self._real(block.text))
        status, printed = self._execute(f"{self._program('amtool')} check-config alertmanager.yml")
        assert status == 0, printed

    # -- commands --------------------------------------------------------------------

    def _command(self, command: str, expected: str, *, fails: bool = False) -> None:
        if command.startswith("pip install "):
            _check_pip(command)
        elif command.startswith("make "):
            target = command.removeprefix("make ")
            assert re.search(rf"(?m)^{target}:", (ROOT / "Makefile").read_text()), command
        elif command.endswith("&"):
            assert not expected, "what runs in the background is compared by a log block"
            self._start(command.removesuffix("&").strip())
        else:
            status, printed = self._execute(command)
            assert matches(expected, printed, self._ports), (
                f"{command}\n{differences(expected, printed, self._ports)}"
            )
            assert (status != 0) is fails, f"{command}\nended with {status}:\n{printed}"

    def _execute(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", self._real(command)],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            check=False,
        )
        return done.returncode, done.stdout.decode()

    def _start(self, command: str) -> None:
        is_server = _SERVER.match(command) is not None
        if is_server and self._server is not None:
            self._end(self._server)
            self._wait(lambda: not self._listens(), "the server before is still there")
        output = self._folder / f"background-{len(self._background)}.log"
        with output.open("wb") as log:
            process = self._popen(command, log)
        self._background.append(process)
        if is_server:
            self._server = process
        # A server is there once it listens, anything else once it has printed something.
        begun = self._listens if is_server else lambda: output.stat().st_size > 0
        self._wait(begun, f"does not start: {command}")

    def _popen(self, command: str, log: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["bash", "-c", self._real(command)],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", int(self._ports["8000"]))) == 0

    @staticmethod
    def _wait(fact: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not fact():
            assert time.monotonic() < deadline, otherwise
            time.sleep(0.01)

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        """End a command at once, with all that it has started."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait(PATIENCE)

    # -- files and text --------------------------------------------------------------

    def _write(self, block: Block) -> Path | None:
        named = _NAMED.match(block.text)
        if named is None:
            return None
        file = self._folder / named[1]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self._real(block.text))
        return file

    def _real(self, text: str) -> str:
        for documented, real in self._ports.items():
            text = re.sub(rf"\b{documented}\b", real, text)
        if self._database is not None:
            text = text.replace(DATABASE, f"'{self._database}'")
        return text

    def _printed(self) -> str:
        """What all background commands have printed so far."""
        logs = sorted(self._folder.glob("background-*.log"))
        return "".join(log.read_text(errors="replace") for log in logs)

    def _was_printed(self, expected: str) -> bool:
        lines = self._printed().splitlines()
        return any(matches(expected, line, self._ports) for line in lines)

    @staticmethod
    def _program(name: str) -> str:
        found = shutil.which(name, path=_SBIN)
        assert found, f"{name} is not installed"
        return found


def _check_pip(command: str) -> None:
    """What is installed must be this distribution, with extras of it, or what those name."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = setup["options.extras_require"]
    named = set(re.findall(r"(?m)^([A-Za-z][\w-]*)(?=[>=<])", "\n".join(extras.values())))
    for word in command.split()[2:]:
        distribution, _, rest = word.strip("'\"").partition("[")
        wanted = set(filter(None, rest.rstrip("]").split(",")))
        known = distribution in (setup["metadata"]["name"], *named)
        assert known and wanted <= set(extras), f"{command}: {word} is not ours"
