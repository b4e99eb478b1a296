"""Which state the tables are in, and how they get to the one that this version needs."""

from __future__ import annotations

import io
from importlib.resources import files
from typing import Any

from sqlalchemy import Connection, inspect, text

from gunicorn_admission.webhooks.store.errors import SchemaMismatch
from gunicorn_admission.webhooks.store.schema import metadata

__all__ = ["HEAD", "check_revision", "current_revision", "statements", "upgrade"]

_PACKAGE = "gunicorn_admission.webhooks.store.migrations"
#: Not alembic's own name: the tables may stand beside an application that uses it.
_TABLE = "webhook_schema"
#: Any number that nobody else takes as an advisory lock: "gunicorn" as bytes.
_LOCK = int.from_bytes(b"gunicorn")

#: The state that this version needs. From the names of the files, since alembic takes long to load.
HEAD = max(entry.name[:4] for entry in files(_PACKAGE).iterdir() if entry.name[:4].isdigit())


def current_revision(connection: Connection) -> str | None:
    """Return the state that the database notes; ``None`` where there are no tables yet."""
    if not inspect(connection).has_table(_TABLE):
        return None
    found: str | None = connection.scalar(text(f"SELECT version_num FROM {_TABLE}"))
    return found


def check_revision(connection: Connection) -> None:
    """
    See to it that the tables are those of this version.

    Raises:
        SchemaMismatch: They are not.
    """
    found = current_revision(connection)
    if found == HEAD:
        return
    upgrade = "Hint: run gunicorn-admission db upgrade"
    if found is None:
        raise SchemaMismatch(f"the database has no tables for webhooks yet. {upgrade}")
    if found < HEAD:
        raise SchemaMismatch(f"the tables are of revision {found}, {HEAD} is needed. {upgrade}")
    raise SchemaMismatch(
        f"the tables are of revision {found}, newer than {HEAD}, which this version knows. "
        "Hint: install the version of gunicorn-admission that upgraded them, or a later one"
    )


def upgrade(connection: Connection) -> tuple[str | None, str]:
    """
    Run the steps that are missing, in the caller's transaction; processes take turns.

    Returns:
        The revision before and after.

    Raises:
        SchemaMismatch: The tables are newer than this version.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    before = current_revision(connection)
    if before is not None and before > HEAD:
        check_revision(connection)
    _run(connection=connection)
    return before, HEAD


def statements(dialect: str, present: str | None) -> str:
    """Return the missing steps as SQL, for somebody who wants to read or run it elsewhere."""
    output = io.StringIO()
    _run(starting_rev=present, dialect_name=dialect, output_buffer=output)
    return output.getvalue()


def _run(*, starting_rev: str | None = None, **options: Any) -> None:
    # Alembic takes long to load, and only this needs it.
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    folder = str(files(_PACKAGE))
    script = ScriptDirectory(folder, version_locations=[folder])

    def steps(present: Any, _context: object) -> Any:
        return script._upgrade_revs("head", present)

    offline = "output_buffer" in options
    with EnvironmentContext(
        Config(),
        script,
        fn=steps,
        as_sql=offline,
        starting_rev=starting_rev,
        destination_rev="head",
    ) as environment:
        environment.configure(
            target_metadata=metadata, version_table=_TABLE, transactional_ddl=True, **options
        )
        with environment.begin_transaction():
            environment.run_migrations()
