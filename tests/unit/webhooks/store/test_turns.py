"""Turns go round: nobody overtakes who waits, and nobody takes one to the grave."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from gunicorn_admission.webhooks.store import StoreError
from gunicorn_admission.webhooks.store.turns import Turns
from tests.unit.webhooks.store.nonces import wait_until


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "it.db"
    path.touch(0o600)
    return path


def somebody_waits(database: Path) -> bool:
    with open(f"{database}-next") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_who_ends_a_turn_stands_behind_who_waits(database: Path) -> None:
    order = []

    def other() -> None:
        with Turns(database).take():
            order.append("other")

    waiting = Thread(target=other)
    turns = Turns(database)
    with turns.take():
        waiting.start()
        wait_until(lambda: somebody_waits(database))
    with turns.take():
        order.append("again")
    waiting.join(10)
    assert order == ["other", "again"]


def test_a_turn_ends_with_its_process(database: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path;"
        "from gunicorn_admission.webhooks.store.turns import Turns\n"
        "with Turns(Path(sys.argv[1])).take(): os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(database)], timeout=60)
    assert done.returncode == -9
    with Turns(database).take():
        pass


FORKED = """
import fcntl, os, sys
from pathlib import Path
from gunicorn_admission.webhooks.store.turns import Turns
with Turns(Path(sys.argv[1])).take():
    if (child := os.fork()):
        os.waitpid(child, 0)
        with open(sys.argv[1] + "-turn") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("held")
"""


def test_a_child_does_not_end_the_turn_of_its_parent(database: Path) -> None:
    command = [sys.executable, "-c", FORKED, str(database)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == "held\n", done.stderr


def test_files_are_for_the_users_of_the_database(database: Path) -> None:
    database.chmod(0o660)
    with Turns(database).take():
        modes = {path.stat().st_mode & 0o777 for path in database.parent.iterdir()}
    assert modes == {0o660}
    assert len(os.listdir(database.parent)) == 3


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    turns = Turns(tmp_path / "no" / "it.db")
    with pytest.raises(StoreError, match="cannot take a turn"), turns.take():
        pass
