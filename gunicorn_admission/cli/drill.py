"""``gunicorn-admission drill``: prove on this machine that one consumer's trouble stays its own."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from gunicorn_admission.cli.extras import needs

with needs("the drill"):
    from gunicorn_admission.webhooks.drill import Check, run_drill

__all__ = ["drill"]


@click.command()
@click.option(
    "--url",
    help="A store to play on, such as postgresql://user@host/database. "
    "Default: a temporary SQLite file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def drill(url: str | None, as_json: bool) -> None:
    """Pause, duplicate, exhaust and slow down one consumer; prove that the others advance.

    A signed event goes through the real intake to three consumers in a real worker. Then
    analytics is paused, its allowance is exhausted, an event comes five times at once, one
    handler hangs, one consumer is rolled back and everything is replayed. The checks say whether
    entitlements advanced, whether duplicates were no-ops, and whether the right page, and only
    it, fired.

    With --url it needs the tables (db upgrade), touches nothing of others there, and removes its
    rows afterwards.

    Exit codes: 0 all checks passed, 1 one failed, 2 wrong usage.
    """
    with _quiet():
        report = run_drill(url, tell=(lambda check: None) if as_json else _tell)
    if as_json:
        click.echo(json.dumps(report.as_dict(), indent=2))
    else:
        failed = sum(check.result != "PASS" for check in report.checks)
        summary = "PASS" if report.passed else f"FAIL ({failed} of {len(report.checks)})"
        click.echo(f"\n{summary} on {report.store}")
    sys.exit(0 if report.passed else 1)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the log out of the way: much of what it would say is done on purpose."""
    logger = logging.getLogger("gunicorn_admission")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _tell(check: Check) -> None:
    click.echo(f"{check.result}  {check.name:<20} {check.detail}")
