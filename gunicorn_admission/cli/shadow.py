"""``gunicorn-admission shadow``: try a consumer without effects, promote it, take it back."""

from __future__ import annotations

import json
import sys

import click

from gunicorn_admission.cli.operator import actor
from gunicorn_admission.cli.store_option import store_option
from gunicorn_admission.settings.durations import parse_duration
from gunicorn_admission.webhooks.fanout.shadow import ShadowDiff, promote, rollback, shadow_diff
from gunicorn_admission.webhooks.store import Store

__all__ = ["shadow"]


@click.group()
def shadow() -> None:
    """Try a consumer without effects, then promote it, or take it back.

    A subscription made with --mode shadow takes its deliveries and does nothing with them.
    """


@shadow.command()
@store_option
@click.argument("name")
@click.option("--since", help="Only events of the last so many seconds, minutes, hours: 90m.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def diff(store: Store, name: str, since: str | None, as_json: bool) -> None:
    """Hold what NAME was given against what the intake stored.

    Exit codes: 0 they agree, 1 they do not, 2 wrong usage.
    """
    after = None
    if since is not None:
        after = store.now() - round(parse_duration(since, "since") * 1e6)
    found = shadow_diff(store, name, since=after)
    if as_json:
        click.echo(json.dumps(found.as_dict()))
    else:
        _show(found)
    sys.exit(0 if found.agrees else 1)


@shadow.command(name="promote")
@store_option
@click.argument("name")
@click.option("--force", is_flag=True, help="Also where it does not agree with the intake.")
def promote_(store: Store, name: str, force: bool) -> None:
    """Give NAME its effects, from the next event on."""
    found = promote(store, name, force=force, actor=actor())
    click.echo(
        f"{name} is active. {found.acknowledged} events that it saw in shadow stay without "
        f"effect; deliveries replay delivers them."
    )


@shadow.command(name="rollback")
@store_option
@click.argument("name")
def rollback_(store: Store, name: str) -> None:
    """Disable NAME; its ledger stays, it goes on collecting, and others are not touched."""
    rollback(store, name, actor=actor())
    click.echo(
        f"{name} is disabled and goes on collecting. When it returns, what it has completed "
        "stays completed."
    )


def _show(found: ShadowDiff) -> None:
    click.echo(
        f"{found.name} ({found.mode.value}): {found.acknowledged} of {found.events} events "
        f"acknowledged, {found.waiting} wait, {found.missing} missing, "
        f"{found.unexpected} not expected"
    )
    if found.slowest is not None:
        click.echo(
            f"from intake to acknowledgement: median {found.median:.3f} s, slowest "
            f"{found.slowest:.3f} s"
        )
    for what, named in (
        ("missing", found.missing_events),
        ("not expected", found.unexpected_events),
    ):
        for event in named:
            click.echo(f"  {what}: {event}")
    click.echo("agrees with the intake" if found.agrees else "does not agree with the intake")
