"""``gunicorn-admission purge``: remove what is old enough."""

from __future__ import annotations

import json

import click

from gunicorn_admission.cli.store_option import store_option
from gunicorn_admission.settings.durations import parse_duration
from gunicorn_admission.webhooks.purge import Age, Purged
from gunicorn_admission.webhooks.purge import purge as run
from gunicorn_admission.webhooks.store import Store

__all__ = ["purge"]


@click.command()
@store_option
@click.option(
    "--events", default="30d", show_default=True, help="Keep events at least so long: 30d, 12h."
)
@click.option(
    "--records",
    default="90d",
    show_default=True,
    help="Keep what prevents a second delivery from being done again at least so long.",
)
@click.option("--dry-run", is_flag=True, help="Count, and remove nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def purge(store: Store, events: str, records: str, dry_run: bool, as_json: bool) -> None:
    """Remove events that everybody is done with, and records of them that nobody needs.

    An event stays while a subscription is not done with it or keeps it (its retention), and as
    long as its sender may deliver it again. Runs beside everything else, in short steps; put it
    into cron.

    \b
      gunicorn-admission purge --dry-run
      gunicorn-admission purge --events 14d

    Exit code 1: events that are old enough stay, because a subscription is not done with them.
    """
    age = Age(events=parse_duration(events, "events"), records=parse_duration(records, "records"))
    purged = run(store, age, dry_run=dry_run)
    if as_json:
        document = {
            "dry_run": dry_run,
            "removed": purged.removed,
            "size": purged.size,
            "dead_letters": purged.dead_letters,
            "held": purged.held,
        }
        click.echo(json.dumps(document, indent=2))
    else:
        for line in _lines(purged, dry_run):
            click.echo(line)
    if purged.held:
        raise SystemExit(1)


def _lines(purged: Purged, dry_run: bool) -> list[str]:
    verb = "Would remove" if dry_run else "Removed"
    lines = [f"{verb} {number} rows of {table}." for table, number in purged.removed.items()]
    if purged.size:
        lines.append(f"Bodies: {purged.size} bytes.")
    if purged.dead_letters:
        lines.append(f"Dead letters among them: {purged.dead_letters}.")
    lines += [
        f"{number} events stay: {name} is not done with them."
        for name, number in sorted(purged.held.items())
    ]
    return lines or ["Nothing is old enough."]
