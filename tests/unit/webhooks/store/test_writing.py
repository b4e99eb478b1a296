"""What ``write`` and ``transaction`` promise, whichever database it is."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from gunicorn_admission.webhooks.store import Store
from tests.unit.webhooks.store.nonces import add, names


def test_what_is_returned_was_committed(any_store: Store, any_store_url: str) -> None:
    assert any_store.write(add("a")) == "a"
    with Store(any_store_url) as other:
        assert names(other) == ["a"]


def test_many_threads(any_store: Store) -> None:
    wanted = [f"{number:03}" for number in range(200)]
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(lambda name: any_store.write(add(name)), wanted)) == wanted
    assert names(any_store) == wanted


def test_work_that_raises_leaves_nothing(any_store: Store) -> None:
    def work(connection: Connection) -> None:
        add("a")(connection)
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        any_store.write(work)
    any_store.write(add("b"))
    assert names(any_store) == ["b"]


def test_a_broken_constraint_comes_as_it_is(any_store: Store) -> None:
    any_store.write(add("a"))
    with pytest.raises(IntegrityError):
        any_store.write(add("a"))
    with pytest.raises(IntegrityError), any_store.transaction() as connection:
        add("a")(connection)


def test_a_timeout_of_the_work_itself_comes_as_it_is(any_store: Store) -> None:
    def work(connection: Connection) -> None:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        any_store.write(work, timeout=10)


def test_transaction_ends_with_its_block(any_store: Store) -> None:
    with any_store.transaction() as connection:
        add("a")(connection)
    with pytest.raises(LookupError), any_store.transaction() as connection:
        add("b")(connection)
        raise LookupError
    assert names(any_store) == ["a"]


def test_transactions_and_pieces_of_many_threads(any_store: Store) -> None:
    def both(number: int) -> None:
        if number % 2:
            any_store.write(add(f"{number:03}"))
        else:
            with any_store.transaction() as connection:
                add(f"{number:03}")(connection)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(both, range(100)))
    assert len(names(any_store)) == 100


def test_writing_does_not_nest(any_store: Store) -> None:
    with any_store.transaction():
        with pytest.raises(RuntimeError, match="use the connection"):
            any_store.write(add("a"))
        with pytest.raises(RuntimeError, match="use the connection"), any_store.transaction():
            pass
    with pytest.raises(RuntimeError, match="use the connection"):
        any_store.write(lambda connection: any_store.write(add("a")))
    any_store.write(add("after"))
    assert names(any_store) == ["after"]


def test_work_may_read_what_was_there_before(any_store: Store) -> None:
    any_store.write(add("a"))

    def work(connection: Connection) -> list[str]:
        add("b")(connection)
        return names(any_store)

    assert any_store.write(work) == ["a"]


def test_a_closed_store_opens_again(any_store: Store) -> None:
    any_store.write(add("a"))
    any_store.close()
    any_store.close()
    any_store.write(add("b"))
    assert names(any_store) == ["a", "b"]


FORK = """
import os, sys
from gunicorn_admission.webhooks.store import Store
from tests.unit.webhooks.store.nonces import add, names
store = Store(sys.argv[1])
store.write(add("parent 1"))
if (child := os.fork()) == 0:
    store.write(add("child"))
    with store.transaction() as connection:
        add("child 2")(connection)
    names(store)
    sys.exit(0)  # as a worker does: with everything that is taken apart at the end
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
store.write(add("parent 2"))
with store.transaction() as connection:
    add("parent 3")(connection)
print(*names(store), sep=",", end="")
"""


def test_a_child_opens_its_own(any_store_url: str) -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, any_store_url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("child,child 2,parent 1,parent 2,parent 3", "")


def test_opening_starts_nothing(any_store_url: str) -> None:
    code = (
        "import sys, threading; from gunicorn_admission.webhooks.store import Store;"
        "Store(sys.argv[1]); sys.exit(threading.active_count() - 1 + ('psycopg' in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code, any_store_url], timeout=60).returncode == 0
