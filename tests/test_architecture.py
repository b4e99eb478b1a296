"""The shape of the code: sizes, names, import directions, a pure core, introductions."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = [ROOT / "gunicorn_admission", ROOT / "flask_ext"]
MODULES = sorted(path for package in PACKAGES for path in package.rglob("*.py"))
CORE = [path for path in MODULES if path.is_relative_to(ROOT / "gunicorn_admission" / "core")]

LONGEST = 300
VAGUE = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "managers"}
IMPURE = {
    "_thread", "asyncio", "concurrent", "contextvars", "datetime", "multiprocessing", "os",
    "queue", "random", "sched", "secrets", "selectors", "signal", "socket", "subprocess",
    "threading", "time",
}  # fmt: skip


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def introduction(path: Path) -> str | None:
    return ast.get_docstring(ast.parse(path.read_text("utf-8")))


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_there_is_something_to_check() -> None:
    assert MODULES
    assert CORE


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_module_holds_one_idea(path: Path) -> None:
    lines = len(path.read_text("utf-8").splitlines())
    assert lines <= LONGEST, f"{name(path)} has {lines} lines: split it by meaning"
    assert path.stem not in VAGUE, f"{name(path)}: name it after what it does"
    assert introduction(path), f"{name(path)}: say what lives here"


@pytest.mark.parametrize("path", CORE, ids=name)
def test_core_is_pure(path: Path) -> None:
    bad = {module for module in imported(path) if module.partition(".")[0] in IMPURE}
    assert not bad, f"{name(path)} imports {sorted(bad)}: pass `now_ns` or a callable in instead"


@pytest.mark.parametrize("folder", sorted({path.parent for path in MODULES}), ids=name)
def test_package_introduces_itself(folder: Path) -> None:
    init = folder / "__init__.py"
    assert init.is_file(), f"{name(folder)}: without __init__.py it is not packaged"
    assert introduction(init), f"{name(init)}: say what lives here"


def test_imports_go_downwards() -> None:
    # In a process of its own: import-linter configures logging, and so silences our loggers.
    lint = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", lint, "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
