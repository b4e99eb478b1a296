"""Tables come from the migrations, are checked, and are those of the schema."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import CheckConstraint, func, insert, inspect, select, text

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks import store as package
from gunicorn_admission.webhooks.store import SchemaMismatch, Store
from gunicorn_admission.webhooks.store.schema import metadata, revision
from gunicorn_admission.webhooks.store.upgrade import HEAD

MIGRATIONS = Path(package.__file__).parent / "migrations"


def test_steps_form_one_line_in_the_order_of_their_numbers() -> None:
    script = ScriptDirectory(str(MIGRATIONS), version_locations=[str(MIGRATIONS)])
    assert script.get_heads() == [HEAD]
    steps = list(reversed(list(script.walk_revisions())))
    names = sorted(path.name for path in MIGRATIONS.glob("0*.py"))
    assert [step.revision for step in steps] == [name[:4] for name in names]


def test_migrated_tables_are_those_of_the_schema(empty_store_url: str) -> None:
    store = Store(empty_store_url)
    assert store.upgrade() == (None, HEAD)
    assert store.upgrade() == (HEAD, HEAD)
    with store.read() as connection:
        context = MigrationContext.configure(
            connection,
            opts={"compare_type": True, "compare_server_default": True},
        )
        differences = [
            one
            for one in compare_metadata(context, metadata)
            if not (one[0] == "remove_table" and one[1].name == "webhook_schema")
        ]
        found = {
            check["name"]
            for table in metadata.sorted_tables
            for check in inspect(connection).get_check_constraints(table.name)
        }
    store.close()
    assert differences == []
    assert found == set(checks())


def checks() -> Iterator[str]:
    """Names of the constraints that alembic's comparison leaves out."""
    for table in metadata.sorted_tables:
        for owner in (table, *table.columns):
            for constraint in owner.constraints:
                if isinstance(constraint, CheckConstraint):
                    yield str(constraint.name)


def test_printed_steps_make_the_same_tables(sqlite_store_url: str, tmp_path: Path) -> None:
    assert "CREATE TABLE" not in Store(sqlite_store_url).upgrade_sql()
    empty = tmp_path / "empty.db"
    empty.touch()
    script = Store(f"sqlite:///{empty}").upgrade_sql()
    connection = sqlite3.connect(empty)
    connection.executescript(script)
    connection.close()
    with Store(f"sqlite:///{empty}") as store, store.read() as reading:
        assert reading.scalar(select(revision.c.number)) == 0


def test_upgrade_at_once_from_several_threads(empty_store_url: str) -> None:
    barrier = Barrier(4)

    def upgrade(_: int) -> str | None:
        store = Store(empty_store_url)
        barrier.wait(10)
        return store.upgrade()[0]

    with ThreadPoolExecutor(4) as pool:
        befores = list(pool.map(upgrade, range(4)))
    assert sorted(befores, key=str) == [HEAD, HEAD, HEAD, None]


def test_a_step_that_fails_leaves_nothing(
    empty_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gunicorn_admission.webhooks.store import store as module

    def broken(connection: object) -> None:
        real(connection)  # type: ignore[arg-type]
        raise RuntimeError("power cut")

    real = module.upgrade
    monkeypatch.setattr(module, "upgrade", broken)
    with pytest.raises(RuntimeError, match="power cut"):
        Store(empty_store_url).upgrade()
    monkeypatch.undo()
    assert Store(empty_store_url).upgrade() == (None, HEAD)


@pytest.mark.parametrize(
    ("noted", "hint"), [("0000", "run gunicorn-admission db upgrade"), ("9999", "install")]
)
def test_other_revisions_are_refused(any_store_url: str, noted: str, hint: str) -> None:
    old = Store(any_store_url)
    with old.transaction() as connection:
        connection.execute(text("UPDATE webhook_schema SET version_num = :noted"), {"noted": noted})
    old.close()
    for use in (Store.read, Store.transaction):
        with (
            pytest.raises(SchemaMismatch, match=f"{noted}.*Hint: {hint}"),
            use(Store(any_store_url)),
        ):
            pass
    if noted == "9999":
        with pytest.raises(SchemaMismatch, match="newer"):
            Store(any_store_url).upgrade()


def test_no_tables_yet(empty_store_url: str) -> None:
    with pytest.raises(SchemaMismatch, match="db upgrade"), Store(empty_store_url).read():
        pass


def test_a_mistyped_path_makes_no_file(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/mistyped.db")
    with pytest.raises(SchemaMismatch, match=r"there is no .*mistyped\.db"), store.read():
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/it.db")
    store.upgrade()
    with store.transaction() as connection:
        connection.execute(revision.update().values(number=7))
        files = list(tmp_path.glob("it.db*"))
        assert len(files) >= 3
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    store.close()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="folder has to exist"):
        Store(f"sqlite:///{tmp_path}/no/it.db").upgrade()


@pytest.mark.parametrize(
    "url",
    ["", "x", "sqlite://", "sqlite:///:memory:", "mysql://root:pw1@h/db", "sqlite:///a.db?mode=ro"],
)
def test_urls_that_cannot_be_a_store(url: str) -> None:
    with pytest.raises(ConfigError, match="url") as caught:
        Store(url)
    assert "pw1" not in str(caught.value)


def test_importing_the_store_loads_no_alembic() -> None:
    code = (
        "import sys; from gunicorn_admission.webhooks.store import Store;"
        "sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_reading_needs_no_turn_of_the_writer(any_store: Store) -> None:
    count = select(func.count()).select_from(revision).where(revision.c.number == 5)
    with any_store.transaction() as writing:
        writing.execute(revision.update().values(number=5))
        with any_store.read() as reading:
            assert reading.scalar(count) == 0
    with any_store.read() as reading:
        assert reading.scalar(count) == 1


def test_reading_stays_on_one_snapshot(any_store: Store) -> None:
    with any_store.read() as reading:
        before = reading.scalar(select(revision.c.number))
        any_store.write(lambda connection: connection.execute(revision.update().values(number=8)))
        assert reading.scalar(select(revision.c.number)) == before


def test_reading_cannot_write(any_store: Store) -> None:
    with any_store.read() as reading, pytest.raises(Exception, match=r"read-?only"):
        reading.execute(insert(revision).values(id=1, number=1))
