"""``gunicorn-admission dead-letters``: events whose attempts ended, and back with them."""

from __future__ import annotations

import click

from gunicorn_admission.cli.deliveries import find_deliveries, show_deliveries
from gunicorn_admission.cli.selecting import actor, selecting
from gunicorn_admission.cli.steps import Progress
from gunicorn_admission.cli.store_option import store_option
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.fanout.redrive import redrive as run_redrive
from gunicorn_admission.webhooks.fanout.selection import Selection
from gunicorn_admission.webhooks.fanout.states import State
from gunicorn_admission.webhooks.store import Store

__all__ = ["dead_letters"]


@click.group()
def dead_letters() -> None:
    """Events whose attempts ended, and back with them."""


@dead_letters.command()
@store_option
@selecting
@click.argument("name")
@click.option(
    "-n",
    "--number",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="At most so many.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ls(store: Store, selection: Selection, name: str, number: int, as_json: bool) -> None:
    """Show the dead letters of a subscription, newest first.

    Exit code 1: there are some.
    """
    rows = find_deliveries(store, name, selection, (State.DEAD.value,), number)
    show_deliveries(rows, as_json)
    if rows:
        raise SystemExit(1)


@dead_letters.command()
@store_option
@selecting
@click.argument("name")
@click.option("--all", "everything", is_flag=True, help="All of them.")
@click.option("--dry-run", is_flag=True, help="Count, and change nothing.")
def redrive(store: Store, selection: Selection, name: str, everything: bool, dry_run: bool) -> None:
    """Deliver dead letters again, to this subscription only.

    \b
      gunicorn-admission dead-letters redrive entitlements --event stripe/evt_01892
      gunicorn-admission dead-letters redrive entitlements --error Timeout --since 2h
      gunicorn-admission dead-letters redrive entitlements --all
    """
    if selection.is_everything and not everything:
        raise ConfigError(
            "redrive", name, "--event, --source, --type, --since, --until, --error or --all",
            "say which dead letters",
        )  # fmt: skip
    with Progress("dead letters") as progress:
        count = run_redrive(
            store, name, selection, dry_run=dry_run, actor=actor(), progress=progress
        )
    click.echo(f"{'Would redrive' if dry_run else 'Redriving'} {count} dead letters of {name}.")
