"""``gunicorn-admission deliveries``: what became of events at a subscription, and once more."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.markup import escape
from rich.table import Table
from sqlalchemy import Row, select

from gunicorn_admission.cli.selecting import actor, iso, selecting
from gunicorn_admission.cli.steps import Progress
from gunicorn_admission.cli.store_option import store_option
from gunicorn_admission.cli.tables import show as show_table
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.fanout.redrive import redrive
from gunicorn_admission.webhooks.fanout.replay import replay as run_replay
from gunicorn_admission.webhooks.fanout.resolve import resolve as run_resolve
from gunicorn_admission.webhooks.fanout.selection import Selection, parse_event
from gunicorn_admission.webhooks.fanout.states import NEVER, State
from gunicorn_admission.webhooks.fanout.subscriptions import find_subscription
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import attempts, events, ledger
from gunicorn_admission.webhooks.store.schema import deliveries as _deliveries

__all__ = ["deliveries", "find_deliveries", "show_deliveries"]

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def deliveries() -> None:
    """What became of events at a subscription; retry and replay."""


@deliveries.command()
@store_option
@selecting
@click.argument("name")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in State]),
    help="Only in this state; may be repeated.",
)
@click.option(
    "-n",
    "--number",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="At most so many.",
)
@_JSON
def ls(
    store: Store,
    selection: Selection,
    name: str,
    states: tuple[str, ...],
    number: int,
    as_json: bool,
) -> None:
    """Show the last deliveries of a subscription, newest first."""
    show_deliveries(find_deliveries(store, name, selection, states, number), as_json)


@deliveries.command()
@store_option
@click.argument("name")
@click.argument("event", metavar="SOURCE/EVENT_ID")
@_JSON
def show(store: Store, name: str, event: str, as_json: bool) -> None:
    """Show one delivery with all its attempts and what the ledger says."""
    source, event_id = parse_event(event)
    with store.read() as connection:
        find_subscription(connection, name)
        rows = find_deliveries(store, name, Selection(events=[(source, event_id)]), (), 1)
        if not rows:
            click.echo(f"{name} has no delivery of {event}.", err=True)
            raise SystemExit(1)
        tries = connection.execute(
            select(attempts)
            .where(attempts.c.subscription == name, attempts.c.seq == rows[0].seq)
            .order_by(attempts.c.id)
        ).all()
        recorded = connection.execute(
            select(ledger).where(
                ledger.c.consumer == name,
                ledger.c.source == source,
                ledger.c.event_id == event_id,
            )
        ).one_or_none()
    document = {
        **_document(rows[0]),
        "ledger": None if recorded is None else recorded.state,
        "tries": [
            {
                "number": one.number,
                "started_at": iso(one.started_at),
                "ended_at": iso(one.ended_at),
                "outcome": one.outcome,
                "error": one.error,
            }
            for one in tries
        ],
    }
    if as_json:
        click.echo(json.dumps(document, indent=2))
        return
    shown = document.pop("tries")
    for key, value in document.items():
        if value is not None:
            click.echo(f"{key}: {value}")
    for one in shown:
        end = f"{one['outcome'] or 'under way'} {one['ended_at'] or ''}".rstrip()
        click.echo(f"  attempt {one['number']}: {one['started_at']} {end} {one['error'] or ''}")


@deliveries.command()
@store_option
@selecting
@click.argument("name")
@click.option("--uncertain", is_flag=True, help="Also those whose effect may have happened.")
@click.option("--dry-run", is_flag=True, help="Count, and change nothing.")
def retry(store: Store, selection: Selection, name: str, uncertain: bool, dry_run: bool) -> None:
    """Try again at once what waits for the end of its backoff.

    \b
      gunicorn-admission deliveries retry entitlements
      gunicorn-admission deliveries retry entitlements --uncertain --event stripe/evt_01892
    """
    states = [State.PENDING, *([State.UNCERTAIN] if uncertain else [])]
    count = redrive(store, name, selection, states=states, dry_run=dry_run, actor=actor())
    click.echo(f"{'Would retry' if dry_run else 'Retrying'} {count} deliveries of {name}.")


@deliveries.command()
@store_option
@click.argument("name")
@click.argument("event", metavar="SOURCE/EVENT_ID")
def resolve(store: Store, name: str, event: str) -> None:
    """Say that the effect of an uncertain delivery did happen.

    Where it did not: gunicorn-admission deliveries retry NAME --uncertain --event SOURCE/EVENT_ID
    """
    run_resolve(store, name, *parse_event(event), actor=actor())
    click.echo(f"{event} is completed at {name}.")


@deliveries.command()
@store_option
@selecting
@click.argument("name")
@click.option("--all", "everything", is_flag=True, help="All events there are.")
@click.option(
    "--force",
    is_flag=True,
    help="Also what is completed: THE EFFECT HAPPENS AGAIN and is charged again.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be delivered, and change nothing.")
@_JSON
def replay(
    store: Store,
    selection: Selection,
    name: str,
    everything: bool,
    force: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Deliver retained events to a subscription once more.

    What is completed stays completed: it is delivered, and its ledger ends it without an effect.

    \b
      gunicorn-admission deliveries replay usage-analytics --since 2h --dry-run
      gunicorn-admission deliveries replay usage-analytics --event stripe/evt_01892
    """
    if selection.is_everything and not everything:
        raise ConfigError(
            "replay", name, "--event, --source, --type, --since, --until or --all",
            "say which events",
        )  # fmt: skip
    if selection.error is not None:
        raise ConfigError(
            "error", selection.error, "nothing: events have no errors",
            "dead-letters redrive --error takes deliveries by their error",
        )  # fmt: skip
    with Progress("events") as progress:
        done = run_replay(
            store, name, selection,
            force=force, dry_run=dry_run, actor=actor(), progress=progress,
        )  # fmt: skip
    if as_json:
        click.echo(json.dumps({"dry_run": dry_run, **done.as_dict()}, indent=2))
        return
    verb = "Would deliver" if dry_run else "Delivering"
    click.echo(f"{verb} {done.delivered} events to {name}.")
    if done.again:
        click.echo(f"Completed, and done AGAIN since that is forced: {done.again}.")
    if done.completed:
        click.echo(f"Completed, so without an effect: {done.completed}.")
    if done.waiting:
        click.echo(f"Not finished anyway: {done.waiting}.")
    if done.unwanted:
        click.echo(f"Not wanted by its filter: {done.unwanted}.")


def find_deliveries(
    store: Store, name: str, selection: Selection, states: tuple[str, ...], number: int
) -> list[Row[Any]]:
    """
    Return deliveries with what identifies their events, newest first.

    Raises:
        ConfigError: There is no such subscription.
    """
    query = (
        select(
            _deliveries,
            events.c.source,
            events.c.event_id,
            events.c.type,
            events.c.received_at,
        )
        .join(events, events.c.seq == _deliveries.c.seq)
        .where(_deliveries.c.subscription == name, *selection.of_deliveries())
        .order_by(_deliveries.c.seq.desc())
        .limit(number)
    )
    if states:
        query = query.where(_deliveries.c.state.in_(states))
    with store.read() as connection:
        find_subscription(connection, name)
        return list(connection.execute(query))


def show_deliveries(rows: list[Row[Any]], as_json: bool) -> None:
    """Print deliveries as a table or JSON."""
    if as_json:
        click.echo(json.dumps([_document(row) for row in rows], indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for title in ("seq", "event", "type", "state", "attempts", "received", "next", "last error"):
        table.add_column(title, overflow="fold")
    for row in rows:
        one = _document(row)
        cells = (f"{row.source}/{row.event_id}", row.type or "", row.state, str(row.attempts))
        rest = (one["received_at"], one["next_at"] or "", row.last_error or "")
        table.add_row(*(escape(cell) for cell in (str(row.seq), *cells, *rest)))
    show_table(table)


def _document(row: Row[Any]) -> dict[str, Any]:
    is_open = row.finished_at is None and row.visible_at < NEVER
    return {
        "seq": row.seq,
        "source": row.source,
        "event_id": row.event_id,
        "type": row.type,
        "state": row.state,
        "attempts": row.attempts,
        "received_at": iso(row.received_at),
        "next_at": iso(row.visible_at) if is_open else None,
        "finished_at": iso(row.finished_at),
        "order_key": row.order_key,
        "last_error": row.last_error,
    }
