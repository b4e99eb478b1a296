"""``gunicorn-admission db``: the tables of the store."""

from __future__ import annotations

import json

import click

from gunicorn_admission.cli.extras import needs
from gunicorn_admission.cli.store_option import store_option
from gunicorn_admission.webhooks.store import Store

__all__ = ["db"]


@click.group()
def db() -> None:
    """Make the tables of the store, bring them up to date, and check them."""


@db.command()
@store_option
@click.option("--sql", "as_sql", is_flag=True, help="Print what would run, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def upgrade(store: Store, as_sql: bool, as_json: bool) -> None:
    """Make the tables, or bring them to what this version needs; does no harm twice.

    Run it before processes of a new version start. An SQLite file is made, readable by its owner
    only.

    \b
      gunicorn-admission db upgrade --url sqlite:///webhooks.db
      gunicorn-admission db upgrade --url postgresql://app@localhost/app --sql
    """
    with needs("gunicorn-admission db upgrade"):
        if as_sql:
            click.echo(store.upgrade_sql(), nl=False)
            return
        before, after = store.upgrade()
    if as_json:
        click.echo(json.dumps({"before": before, "after": after}))
    elif before == after:
        click.echo(f"The tables are of revision {after} already.")
    elif before is None:
        click.echo(f"Made the tables, revision {after}.")
    else:
        click.echo(f"Upgraded the tables from revision {before} to {after}.")


@db.command()
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(store: Store, as_json: bool) -> None:
    """Look whether the tables are those of this version, and an SQLite file is whole.

    Exit code 1: it is damaged. 2: the tables are missing, older or newer.
    """
    problems = store.check()
    if as_json:
        click.echo(json.dumps({"problems": problems}))
    else:
        click.echo("\n".join(problems) or "All is well.")
    if problems:
        raise SystemExit(1)
