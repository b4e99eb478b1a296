"""Verbs of ``gate`` that check the ledger: audit, against itself; reconcile, against a bill."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from gunicorn_admission.cli.gate_shown import show_bill, show_findings
from gunicorn_admission.cli.operator import actor
from gunicorn_admission.cli.store_option import store_option
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.durations import parse_duration
from gunicorn_admission.settings.nearest import did_you_mean
from gunicorn_admission.webhooks.gates.audit import audit_ledger, repair
from gunicorn_admission.webhooks.gates.bill import compare, read_bill
from gunicorn_admission.webhooks.gates.standings import gated_consumers
from gunicorn_admission.webhooks.store import Store

__all__ = ["audit", "check_known", "reconcile"]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@store_option
@click.argument("consumer", required=False)
@click.option(
    "--grace",
    default="0s",
    show_default=True,
    help="How long after its lease a reservation may stand until it is a leak.",
)
@click.option(
    "--repair",
    "repairs",
    is_flag=True,
    help="Write the sums of the entries into the counters first.",
)
@_JSON
def audit(
    store: Store, consumer: str | None, grace: str, repairs: bool, as_json: bool
) -> None:  # fmt: skip
    """Recompute all counters from the entries, and look for reservations that are left over.

    Exit code 1: something was found. It reads one snapshot, so workers may run meanwhile.
    """
    now, grace_us = store.now(), round(parse_duration(grace, "grace") * 1e6)
    with store.read() as connection:
        names = gated_consumers(connection)
    if consumer is not None:
        check_known(consumer, names)
        names = [consumer]
    repaired = 0
    if repairs:
        for name in names:
            repaired += store.write(
                lambda connection, name=name: repair(  # type: ignore[misc]
                    connection, name, now=now, actor=actor()
                )
            )
    with store.read() as connection:
        found = audit_ledger(connection, now=now, consumer=consumer, grace_us=grace_us)
    if as_json:
        document = {"repaired": repaired, "findings": [each.as_dict() for each in found]}
        click.echo(json.dumps(document, indent=2))
    else:
        if repaired:
            click.echo(f"Repaired {repaired} windows.")
        show_findings(found)
    sys.exit(1 if found else 0)


@click.command()
@store_option
@click.option("--bill", type=_FILE, required=True, help="CSV or JSON: period, unit, amount.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="Drift that is fine, in percent of what is billed.",
)
@_JSON
def reconcile(store: Store, bill: Path, tolerance: float, as_json: bool) -> None:  # fmt: skip
    """Hold the ledger against a bill, by period and unit. Exit code 1: they differ.

    The file has a header (or is a JSON list of objects) with the columns period (2026-11-30,
    2026-11, 2026-W49, total), unit and amount, and consumer where it says so.
    """
    lines = read_bill(bill)
    with store.read() as connection:
        found = compare(connection, lines)
    if as_json:
        click.echo(
            json.dumps(
                [{**each.as_dict(), "ok": each.within(tolerance)} for each in found], indent=2
            )
        )
    else:
        show_bill(found, tolerance)
    sys.exit(0 if all(each.within(tolerance) for each in found) else 1)


def check_known(consumer: str, names: list[str]) -> None:
    """Refuse a consumer without a gate."""
    if consumer not in names:
        hint = did_you_mean(consumer, names) if names else "no consumer has a gate yet: gate set"
        raise ConfigError("consumer", consumer, "a consumer that has a gate", hint)
