"""Fixtures for tests against a real gunicorn, and the mark that all of them carry."""

from __future__ import annotations

import contextlib
import functools
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.launch import run_gunicorn
from tests.integration.server import Gunicorn

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies in this folder; the hook sees the tests of all folders."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("integration")


@pytest.fixture
def gunicorn(tmp_path: Path) -> Iterator[Callable[..., Gunicorn]]:
    """
    Start a server: ``gunicorn("--threads", "4", conf="...", env={...})``.

    It runs in ``tmp_path``, is stopped after the test and checked for left processes;
    its log is printed, which pytest shows when the test fails.
    """
    with contextlib.ExitStack() as stack:

        def start(*args: str, **options: object) -> Gunicorn:
            server = Gunicorn(*args, directory=tmp_path, **options)  # type: ignore[arg-type]
            stack.callback(lambda: print(server.log))
            return stack.enter_context(server)

        yield start


@pytest.fixture
def gunicorn_run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a gunicorn that ends by itself in ``tmp_path``; see :func:`run_gunicorn`."""
    return functools.partial(run_gunicorn, directory=tmp_path)
