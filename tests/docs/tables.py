"""The tables of the store as a page: what the schema says, and what its comments say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Column, Table
from sqlalchemy.dialects import postgresql

from gunicorn_admission.webhooks.store import schema

__all__ = ["tables_page"]

_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]
_COMMENT = re.compile(r"^#: ?(.*)$")
_TABLE = re.compile(r"^\w+ = Table\($")
_NAME = re.compile(r'^    "(\w+)",$')
_COLUMN = re.compile(r'^    Column\("(\w+)".*\),(?:  # (.*))?$')


def tables_page() -> str:
    """All tables, in the order of the files that define them."""
    folder = Path(schema.__file__).parent
    return "\n".join(
        part
        for path in sorted(folder.glob("*.py"), key=_order)
        for part in _file(path.read_text("utf-8"))
    )


def _order(path: Path) -> tuple[bool, str]:
    return path.stem != "intake", path.stem


def _file(text: str) -> Iterator[str]:
    about: list[str] = []
    notes: dict[str, str] = {}
    name: str | None = None
    for line in text.splitlines():
        if comment := _COMMENT.match(line):
            about.append(comment[1])
        elif _TABLE.match(line):
            name = ""
        elif name == "" and (found := _NAME.match(line)):
            name = found[1]
        elif name and (column := _COLUMN.match(line)):
            notes[column[1]] = column[2] or ""
        elif name and line.startswith(")"):
            yield from _table(schema.metadata.tables[name], " ".join(about), notes)
            about, notes, name = [], {}, None
        elif not line and name is None:
            about = []


def _table(table: Table, about: str, notes: dict[str, str]) -> Iterator[str]:
    yield f"## {table.name}\n"
    yield f"{_plain(about)}\n"
    yield "| column | type | | |"
    yield "|---|---|---|---|"
    for column in table.columns:
        kind = str(column.type.compile(_DIALECT)).lower()
        yield f"| `{column.name}` | {kind} | {_role(column)} | {_plain(notes[column.name])} |"
    yield ""


def _role(column: Column[object]) -> str:
    roles = ["key"] if column.primary_key else []
    roles += [f"of `{key.column.table.name}`" for key in column.foreign_keys]
    if column.nullable:
        roles.append("may be NULL")
    return ", ".join(roles)


def _plain(text: str) -> str:
    text = text.replace("``", "`").replace("|", "\\|")
    return text[:1].upper() + text[1:]
