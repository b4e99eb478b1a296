"""``gunicorn-admission events``: what was taken in, as it came."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import click
from rich.markup import escape
from rich.table import Table
from sqlalchemy import Row, Select, select

from gunicorn_admission.cli.store_option import store_option
from gunicorn_admission.cli.tables import show as show_table
from gunicorn_admission.settings.durations import parse_duration
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import events as _events

__all__ = ["events"]

#: Rows that an export holds in memory at once.
_PAGE: Final = 200

_SOURCE = click.option("--source", help="Only of this source.")
_TYPE = click.option("--type", "kind", help="Only of this type.")
_SINCE = click.option("--since", help="Only what came in the last 30m, 2h, ...")


@click.group()
def events() -> None:
    """What was taken in, as it came."""


@events.command()
@store_option
@_SOURCE
@_TYPE
@_SINCE
@click.option("-n", "--number", type=click.IntRange(1, 10_000), default=50, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ls(
    store: Store,
    source: str | None,
    kind: str | None,
    since: str | None,
    number: int,
    as_json: bool,
) -> None:
    """Show the last events, newest first."""
    wanted = [column for column in _events.c if column.name not in ("body", "headers")]
    statement = _filtered(select(*wanted), store, source, kind, since)
    with store.read() as connection:
        rows = connection.execute(statement.order_by(_events.c.seq.desc()).limit(number)).all()
    if as_json:
        click.echo(json.dumps([_about(row) for row in rows], indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for title in ("seq", "received", "source", "event id", "type", "bytes", "again", "conflicts"):
        table.add_column(title, overflow="fold")
    for row in rows:
        again, conflicts = (str(n or "") for n in (row.duplicates, row.conflicts))
        cells = (str(row.seq), _iso(row.received_at), row.source, row.event_id, row.type or "")
        table.add_row(*(escape(cell) for cell in (*cells, str(row.size), again, conflicts)))
    show_table(table)


@events.command()
@store_option
@click.argument("source")
@click.argument("event_id")
@click.option("--body", "only_body", is_flag=True, help="Only the body, byte for byte.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(store: Store, source: str, event_id: str, only_body: bool, as_json: bool) -> None:
    """Show one event: SOURCE and the sender's own id.

    \b
      gunicorn-admission events show git 72d3162e-cc78-11e3-81ab-4c9367dc0958
    """
    statement = select(_events).where(_events.c.source == source, _events.c.event_id == event_id)
    with store.read() as connection:
        row = connection.execute(statement).first()
    if row is None:
        click.echo(f"There is no event {event_id} of {source}.", err=True)
        sys.exit(1)
    if only_body:
        sys.stdout.buffer.write(row.body)
        return
    document = {**_about(row), "headers": row.headers, **_body(row.body)}
    if as_json:
        click.echo(json.dumps(document, indent=2))
        return
    body = document.pop("body", None)
    for name, value in document.items():
        if name == "headers":
            click.echo("headers:")
            for header, text in row.headers:
                click.echo(f"  {header}: {text}")
        elif value is not None:
            click.echo(f"{name}: {value}")
    if body is not None:
        click.echo(f"\n{body}")


@events.command()
@store_option
@_SOURCE
@_TYPE
@_SINCE
def export(store: Store, source: str | None, kind: str | None, since: str | None) -> None:
    """Write events to standard output, oldest first: one JSON object a line.

    A body that is UTF-8 is in "body", any other in "body_base64"; "body_sha256" is of its bytes.
    """
    for row in _pages(store, _filtered(select(_events), store, source, kind, since)):
        click.echo(json.dumps({**_about(row), "headers": row.headers, **_body(row.body)}))


def _pages(store: Store, statement: Select[Any]) -> Iterator[Row[Any]]:
    """Yield rows by pages, each read by itself: a long export holds no snapshot open."""
    last = 0
    while True:
        page = statement.where(_events.c.seq > last).order_by(_events.c.seq).limit(_PAGE)
        with store.read() as connection:
            rows = connection.execute(page).all()
        yield from rows
        if len(rows) < _PAGE:
            return
        last = rows[-1].seq


def _filtered(
    statement: Select[Any], store: Store, source: str | None, kind: str | None, since: str | None
) -> Select[Any]:
    if source is not None:
        statement = statement.where(_events.c.source == source)
    if kind is not None:
        statement = statement.where(_events.c.type == kind)
    if since is not None:
        begin = store.now() - round(parse_duration(since, "since") * 1e6)
        statement = statement.where(_events.c.received_at >= begin)
    return statement


def _about(row: Row[Any]) -> dict[str, Any]:
    return {
        "seq": row.seq,
        "source": row.source,
        "event_id": row.event_id,
        "id_source": row.id_source,
        "type": row.type,
        "received_at": _iso(row.received_at),
        "source_time": None if row.source_time is None else _iso(row.source_time),
        "delivery_id": row.delivery_id,
        "key_id": row.key_id,
        "content_type": row.content_type,
        "traceparent": row.traceparent,
        "duplicates": row.duplicates,
        "conflicts": row.conflicts,
        "size": row.size,
        "body_sha256": row.body_sha256.hex(),
    }


def _body(body: bytes) -> dict[str, str]:
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def _iso(microseconds: int) -> str:
    moment = datetime.fromtimestamp(microseconds / 1e6, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
