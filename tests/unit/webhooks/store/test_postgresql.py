"""PostgreSQL: what is tried again, what is not, and what a timeout ends."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, event, text

from gunicorn_admission.webhooks.store import Store, StoreError, StoreTimeout
from gunicorn_admission.webhooks.store.engine import POOL
from tests.postgres import PostgreSQL
from tests.unit.webhooks.store.nonces import add, names

END_MYSELF = text("SELECT pg_terminate_backend(pg_backend_pid())")


@pytest.fixture
def url(postgresql: PostgreSQL, migrated_postgresql: str) -> Iterator[str]:
    name = postgresql.create(migrated_postgresql)
    yield postgresql.url(name)
    postgresql.drop(name)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store(url) as store:
        yield store


def test_a_lost_connection_is_tried_again(store: Store) -> None:
    attempts = []

    def work(connection: Connection) -> None:
        add("a")(connection)
        attempts.append(None)
        if len(attempts) < 3:
            connection.execute(END_MYSELF)

    store.write(work)
    assert len(attempts) == 3
    assert names(store) == ["a"]


def test_tries_are_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gunicorn_admission.webhooks.store.postgresql._PAUSES", (0, 0))
    attempts = []

    def work(connection: Connection) -> None:
        attempts.append(None)
        connection.execute(END_MYSELF)

    with pytest.raises(StoreError, match="gave up: terminating connection") as caught:
        store.write(work)
    assert len(attempts) == 3
    assert not caught.value.maybe_committed
    attempts.clear()
    with pytest.raises(StoreError):
        store.write(work, timeout=0)
    assert len(attempts) == 1


def test_of_two_in_a_deadlock_both_succeed(store: Store) -> None:
    store.write(lambda connection: (add("x")(connection), add("y")(connection)))
    met = Barrier(2)
    attempts = []

    def work(first: str, second: str) -> Any:
        tries = []

        def touch(connection: Connection) -> None:
            tries.append(None)
            attempts.append(None)
            for name in (first, second):
                connection.execute(
                    text("UPDATE webhook_nonce SET seen_at = seen_at + 1 WHERE nonce = :name"),
                    {"name": name},
                )
                if name == first and len(tries) == 1:
                    met.wait(20)

        return touch

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(store.write, work(*order)) for order in ("xy", "yx")]
        for one in both:
            one.result(20)
    assert len(attempts) >= 3
    with store.read() as connection:
        assert set(connection.scalars(text("SELECT seen_at FROM webhook_nonce"))) == {2}


def test_a_lost_answer_to_the_commit_is_uncertain_and_not_tried_again(
    store: Store, url: str
) -> None:
    def end(connection: Connection) -> None:
        driver: Any = connection.connection.dbapi_connection
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 10000)", [driver.info.backend_pid])

    for write in (Store.write, in_transaction):
        attempts = []

        def work(connection: Connection, attempts: list[None] = attempts) -> None:
            attempts.append(None)
            add("a")(connection)

        event.listen(store.engine, "commit", end, once=True)
        with pytest.raises(StoreError, match="may have been committed") as caught:
            write(store, work)
        assert caught.value.maybe_committed
        assert len(attempts) == 1
        event.remove(store.engine, "commit", end)
    assert names(store) == []


def in_transaction(store: Store, work: Any) -> None:
    with store.transaction() as connection:
        work(connection)


def test_a_statement_ends_with_the_timeout(store: Store) -> None:
    with pytest.raises(StoreTimeout, match="not done in time") as caught:
        store.write(lambda connection: connection.execute(text("SELECT pg_sleep(60)")), timeout=0.1)
    assert not caught.value.maybe_committed
    timeout = text("SHOW statement_timeout")
    assert store.write(lambda connection: connection.scalar(timeout)) == "0"


def test_waiting_for_a_connection_ends_with_the_timeout(url: str) -> None:
    with ExitStack() as stack:
        store = stack.enter_context(Store(url))
        for _ in range(POOL):
            stack.enter_context(store.read())
        with pytest.raises(StoreTimeout, match=f"none of {POOL} connections"):
            store.write(add("a"), timeout=0.01)


def test_a_commit_is_on_disk_whatever_the_database_says(store: Store, url: str) -> None:
    level = text("SHOW synchronous_commit")
    with psycopg.connect(url, autocommit=True) as other:
        name = other.info.dbname
        for says, is_used in {
            "off": "on",
            "local": "local",
            "remote_apply": "remote_apply",
        }.items():
            other.execute(f"ALTER DATABASE {name} SET synchronous_commit = '{says}'")  # type: ignore[call-overload]
            with Store(url) as fresh:
                assert fresh.write(lambda connection: connection.scalar(level)) == is_used


def test_a_server_that_is_not_there(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(f"postgresql://postgres:pw1@/db?host={tmp_path}")
    with pytest.raises(StoreError, match="not reachable") as caught:
        store.write(add("a"))
    assert "pw1" not in str(caught.value)


def test_a_server_that_comes_back(postgresql: PostgreSQL, store: Store) -> None:
    store.write(add("before"))
    postgresql.stop("fast")
    try:
        with pytest.raises(StoreError):
            store.write(add("lost"), timeout=0.05)
    finally:
        postgresql.start()
    store.write(add("after"))
    assert names(store) == ["after", "before"]
