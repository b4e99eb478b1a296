"""Kill processes and servers while they write: what was acknowledged is there, to the byte."""

from __future__ import annotations

import hashlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import select

from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import events
from tests.integration.store_load import body_of
from tests.postgres import PostgreSQL

ROOT = Path(__file__).resolve().parent.parent.parent
PROCESSES = 2
ROUNDS = 3
PATIENCE = 30


def acknowledged(path: Path) -> list[str]:
    """Events that a process was told to be safe; the last line may be cut off with it."""
    return path.read_text().rpartition("\n")[0].split("\n") if path.exists() else []


def wait_for(path: Path, number: int) -> None:
    until = time.monotonic() + PATIENCE
    while len(acknowledged(path)) < number:
        assert time.monotonic() < until, f"only {len(acknowledged(path))} of {number} were stored"
        time.sleep(0.001)


@contextmanager
def loading(url: str, path: Path) -> Iterator[None]:
    """Store events by several processes, and kill them at once at the end."""
    command = [sys.executable, "-m", "tests.integration.store_load", url, str(path)]
    processes = [subprocess.Popen(command, cwd=ROOT) for _ in range(PROCESSES)]
    try:
        yield
        assert [process.poll() for process in processes] == [None] * PROCESSES
    finally:
        for process in processes:
            process.kill()
        codes = [process.wait() for process in processes]
    assert codes == [-signal.SIGKILL] * PROCESSES


def check(url: str, path: Path) -> None:
    wanted = set(acknowledged(path))
    found = set()
    with Store(url) as store, store.read() as connection:
        if connection.dialect.name == "sqlite":
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
        for row in connection.execute(select(events)):
            found.add(row.event_id)
            assert row.body == body_of(row.event_id)
            assert row.body_sha256 == hashlib.sha256(row.body).digest()
    assert not wanted - found
    # Of each thread at most the one event whose acknowledgement did not come to the file.
    assert len(found - wanted) <= PROCESSES * ROUNDS * 8


def test_killed_processes(any_store_url: str, tmp_path: Path) -> None:
    path = tmp_path / "acknowledged"
    draw = random.Random()
    for _ in range(ROUNDS):
        with loading(any_store_url, path):
            wait_for(path, len(acknowledged(path)) + draw.randint(20, 200))
            time.sleep(draw.uniform(0, 0.01))  # at any instant, not just behind a commit
        check(any_store_url, path)


@pytest.fixture
def migrated_url(postgresql: PostgreSQL, migrated_postgresql: str) -> Iterator[str]:
    name = postgresql.create(migrated_postgresql)
    yield postgresql.url(name)
    postgresql.drop(name)


def test_crashed_server(postgresql: PostgreSQL, migrated_url: str, tmp_path: Path) -> None:
    path = tmp_path / "acknowledged"
    with loading(migrated_url, path):
        wait_for(path, 100)
        postgresql.stop("immediate")
        try:
            lost = len(acknowledged(path))
        finally:
            postgresql.start()
        wait_for(path, lost + 100)  # the same processes go on
    check(migrated_url, path)
