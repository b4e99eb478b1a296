"""The writer thread: what shares a commit, what is called back, and what a full disk does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from sqlalchemy import Connection, event

from gunicorn_admission.webhooks.store import Store, StoreError, StoreTimeout, writer
from gunicorn_admission.webhooks.store.sqlite import SQLite
from tests.unit.webhooks.store.nonces import add, names, wait_until


@pytest.fixture
def store(sqlite_store_url: str) -> Iterator[Store]:
    with Store(sqlite_store_url) as store:
        yield store


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(100) as pool:
        yield pool


def pieces(backend: Any) -> int:
    size: int = backend._writer._pieces.qsize()
    return size


def queued(store: Store, number: int) -> Callable[[], bool]:
    """Whether so many pieces wait, apart from the one that waits for its turn already."""

    def reached() -> bool:
        backend = store._opened
        return getattr(backend, "_writer", None) is not None and pieces(backend) == number

    return reached


def test_what_waits_together_is_committed_together(
    store: Store, sqlite_store_url: str, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_LONGEST", 60)
    commits: list[Connection] = []
    event.listen(store.engine, "commit", commits.append)
    with Store(sqlite_store_url) as other, other.transaction():
        handed_in = [pool.submit(store.write, add(f"{number:02}")) for number in range(70)]
        wait_until(queued(store, 69))
    assert [piece.result(20) for piece in handed_in] == [f"{number:02}" for number in range(70)]
    assert len(commits) == 2
    assert writer.MOST == 64


def test_long_work_does_not_keep_others_out(
    store: Store, sqlite_store_url: str, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_LONGEST", 0)
    commits: list[Connection] = []
    event.listen(store.engine, "commit", commits.append)
    with Store(sqlite_store_url) as other, other.transaction():
        handed_in = [pool.submit(store.write, add(f"{number}")) for number in range(5)]
        wait_until(queued(store, 4))
    for piece in handed_in:
        piece.result(20)
    assert len(commits) == 5


def test_work_that_raises_undoes_nothing_of_its_neighbours(
    store: Store, sqlite_store_url: str, pool: ThreadPoolExecutor
) -> None:
    def work(connection: Connection) -> None:
        add("bad")(connection)
        raise LookupError("mine")

    commits: list[Connection] = []
    event.listen(store.engine, "commit", commits.append)
    with Store(sqlite_store_url) as other, other.transaction():
        handed_in = [pool.submit(store.write, one) for one in (add("a"), work, add("b"))]
        wait_until(queued(store, 2))
    assert isinstance(handed_in[1].exception(20), LookupError)
    assert (handed_in[0].result(20), handed_in[2].result(20)) == ("a", "b")
    assert names(store) == ["a", "b"]
    assert len(commits) == 1


def test_what_had_not_begun_in_time_never_happens(store: Store, sqlite_store_url: str) -> None:
    with Store(sqlite_store_url) as other, other.transaction():
        with pytest.raises(StoreTimeout, match=r"not committed in 0\.01 s") as caught:
            store.write(add("late"), timeout=0.01)
        assert not caught.value.maybe_committed
    store.write(add("next"))
    assert names(store) == ["next"]


def test_what_had_begun_is_said_to_be_uncertain(store: Store) -> None:
    begun, go = Event(), Event()

    def work(connection: Connection) -> None:
        add("slow")(connection)
        begun.set()
        assert go.wait(20)

    store.write(add("first"))  # so that the thread is there
    with pytest.raises(StoreTimeout, match="may have been committed") as caught:
        store.write(work, timeout=0.2)
    assert begun.is_set()
    assert caught.value.maybe_committed
    go.set()
    store.write(add("next"))
    assert names(store) == ["first", "next", "slow"]


def test_close_commits_what_was_handed_in(
    store: Store, sqlite_store_url: str, pool: ThreadPoolExecutor
) -> None:
    with Store(sqlite_store_url) as other, other.transaction():
        handed_in = [pool.submit(store.write, add(name)) for name in "abc"]
        wait_until(queued(store, 2))
        backend = store._opened
        closing = pool.submit(store.close)
        wait_until(lambda: pieces(backend) == 3)
    closing.result(20)
    assert [piece.result(20) for piece in handed_in] == ["a", "b", "c"]


def test_a_writer_that_was_closed_takes_nothing(store: Store) -> None:
    store.write(add("a"))
    backend = store._opened
    assert isinstance(backend, SQLite)
    store.close()
    with pytest.raises(StoreError, match="closed meanwhile"):
        backend.write(add("b"), None)


def grow_no_more(store: Store) -> Callable[[Any, Any], None]:
    """The next connection finds that the file may grow by one page only."""

    def limit(connection: Any, _: object) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 1}")

    event.listen(store.engine, "connect", limit)
    store.engine.dispose()
    return limit


def test_a_full_disk_fails_what_it_hits_and_is_recovered_from(
    store: Store, sqlite_store_url: str, pool: ThreadPoolExecutor
) -> None:
    store.write(add("before"))
    limit = grow_no_more(store)
    with Store(sqlite_store_url) as other, other.transaction():
        handed_in = [pool.submit(store.write, add(f"big {n}", 50_000)) for n in range(3)]
        wait_until(queued(store, 2))
    errors = [piece.exception(20) for piece in handed_in]
    for error in errors:
        assert isinstance(error, StoreError)
        assert "disk is full" in str(error)
        assert not error.maybe_committed
    assert len({id(error) for error in errors}) == 3
    with pytest.raises(StoreError, match="disk is full"), store.transaction() as connection:
        add("big", 50_000)(connection)
    assert names(store) == ["before"]
    event.remove(store.engine, "connect", limit)
    store.engine.dispose()
    store.write(add("after", 50_000))
    assert names(store) == ["after", "before"]


BROKEN_DISK = """
import resource, sys
from gunicorn_admission.webhooks.store import Store, StoreError
from tests.unit.webhooks.store.nonces import add, names
store = Store(sys.argv[1])
store.write(add("before"))
# Writing beyond the limit fails (Python ignores the signal), as it does on a disk that is broken.
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
for attempt in range(2):
    try:
        store.write(add(f"lost {attempt}", 200_000))
    except StoreError as error:
        print("disk did not" in str(error), error.maybe_committed)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.write(add("after"))
print(*names(store))
"""


def test_a_broken_disk_is_recovered_from(sqlite_store_url: str) -> None:
    command = [sys.executable, "-c", BROKEN_DISK, sqlite_store_url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["True True", "True True", "after before"], done.stderr


def test_the_file_is_opened_as_it_must_be(store: Store) -> None:
    with store.transaction() as connection:
        for pragma, value in {
            "journal_mode": "wal",
            "synchronous": 2,
            "foreign_keys": 1,
            "busy_timeout": 30000,
        }.items():
            assert connection.exec_driver_sql(f"PRAGMA {pragma}").scalar() == value
