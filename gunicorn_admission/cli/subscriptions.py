"""``gunicorn-admission subscriptions``: who gets which events, and how each of them stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from gunicorn_admission.cli.selecting import actor, iso
from gunicorn_admission.cli.store_option import store_option
from gunicorn_admission.cli.tables import show as show_table
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.durations import format_duration
from gunicorn_admission.webhooks.fanout.backfill import backfill as run_backfill
from gunicorn_admission.webhooks.fanout.statistics import ConsumerStatistics, statistics
from gunicorn_admission.webhooks.fanout.subscription import Subscription
from gunicorn_admission.webhooks.fanout.subscriptions import Subscriptions
from gunicorn_admission.webhooks.store import Store

__all__ = ["subscriptions"]

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

_SETTINGS = (
    click.option(
        "--filter",
        "pattern",
        metavar="JSON",
        help='Which events: \'{"type": [{"prefix": "invoice."}]}\', or @FILE.',
    ),
    click.option("--retention", help="How long its events are kept at least, such as 30d."),
    click.option("--lease", help="How long a dead worker's event waits for another, such as 60s."),
    click.option("--objective", help="Page when its oldest event is older, such as 5m."),
    click.option(
        "--severity",
        type=click.Choice(["critical", "warning", "info", "none"]),
        help="How urgent its pages are; none pages nobody. Of a new one: warning.",
    ),
    click.option("--runbook", metavar="URL", help="Where its pages send who reads them."),
    click.option("--order-by", metavar="PATH", help="Deliver in order of body.customer.id, ..."),
    click.option("--max-attempts", type=click.IntRange(1), help="Attempts until a dead letter."),
    click.option("--backoff", help="Longest first pause between attempts, such as 2s."),
    click.option("--backoff-cap", help="Longest pause of all, such as 1h."),
)


def _settings(verb: Any) -> Any:
    for option in reversed(_SETTINGS):
        verb = option(verb)
    return verb


@click.group()
def subscriptions() -> None:
    """Who gets which events, and how each of them stands."""


@subscriptions.command()
@store_option
@_JSON
def ls(store: Store, as_json: bool) -> None:
    """Show all subscriptions and what waits there.

    Exit code 1: one is later than its recovery objective.
    """
    known = {one.name: one for one in Subscriptions(store).all()}
    standing = statistics(store)
    if as_json:
        rows = [{**_document(known[one.name]), **one.as_dict()} for one in standing]
        click.echo(json.dumps(rows, indent=2))
    else:
        table = Table(box=None, pad_edge=False)
        for title in ("subscription", "mode", "waiting", "oldest", "objective", "filter"):
            table.add_column(title, overflow="fold")
        for one in standing:
            cells = (one.name, one.mode.value, _backlog(one), _age(one.oldest_age))
            objective = _age(one.objective)
            pattern = json.dumps(known[one.name].filter)
            style = "bold red" if one.is_late else None
            table.add_row(*(escape(c) for c in (*cells, objective, pattern)), style=style)
        show_table(table)
    if any(one.is_late for one in standing):
        raise SystemExit(1)


@subscriptions.command()
@store_option
@click.argument("name")
@_JSON
def show(store: Store, name: str, as_json: bool) -> None:
    """Show one subscription: its settings, what waits, and what became of the rest."""
    one = Subscriptions(store).get(name)
    (standing,) = statistics(store, [name], counters=True)
    document = {**_document(one), **standing.as_dict()}
    if as_json:
        click.echo(json.dumps(document, indent=2))
        return
    for key, value in document.items():
        click.echo(f"{key}: {json.dumps(value) if isinstance(value, dict) else value}")


@subscriptions.command()
@store_option
@click.argument("name")
@click.option(
    "--start-at",
    default="now",
    show_default=True,
    help="now, earliest, seq:N or SOURCE/EVENT_ID: the first event it gets.",
)
@click.option(
    "--mode",
    type=click.Choice(["active", "shadow", "paused", "disabled"]),
    default="active",
    show_default=True,
    help="What becomes of what it collects.",
)
@_settings
def create(store: Store, name: str, start_at: str, mode: str, **options: Any) -> None:
    """Let a consumer have events, from now on or from an earlier one.

    \b
      gunicorn-admission subscriptions create entitlements
      gunicorn-admission subscriptions create usage-analytics --mode shadow \\
          --filter '{"source": ["stripe"], "type": [{"prefix": "invoice."}]}'
    """
    made = Subscriptions(store, actor=actor()).create(
        name, start_at=start_at, mode=mode, **_values(options)
    )
    click.echo(f"Created {name}: {made.mode.value}, from event {made.start_seq} on.")
    if made.is_backfilling:
        click.echo(
            "Earlier events are added by its workers, or at once by: "
            f"gunicorn-admission subscriptions backfill {name}"
        )


@subscriptions.command()
@store_option
@click.argument("name")
@_settings
def update(store: Store, name: str, **options: Any) -> None:
    """Change settings. A filter and an order hold for events that come from now on.

    \b
      gunicorn-admission subscriptions update entitlements --objective 2m
    """
    book = Subscriptions(store, actor=actor())
    values = _values(options, book.get(name))
    if not values:
        raise ConfigError("update", name, "one option at least", "see --help")
    book.update(name, **values)
    click.echo(f"Changed {name}: {', '.join(values)}.")


@subscriptions.command()
@store_option
@click.argument("name")
def pause(store: Store, name: str) -> None:
    """Deliver nothing for now. Events are collected; their age still counts."""
    Subscriptions(store, actor=actor()).pause(name)
    click.echo(f"Paused {name}. Its events are collected.")


@subscriptions.command()
@store_option
@click.argument("name")
def resume(store: Store, name: str) -> None:
    """Deliver (again), beginning with what was collected."""
    Subscriptions(store, actor=actor()).resume(name)
    (standing,) = statistics(store, [name])
    click.echo(f"Resumed {name}: {standing.waiting} events wait.")


@subscriptions.command()
@store_option
@click.argument("name")
def disable(store: Store, name: str) -> None:
    """Deliver nothing and page nobody. Events are collected within retention."""
    Subscriptions(store, actor=actor()).disable(name)
    click.echo(f"Disabled {name}. Its ledger stays: on its return nothing is done twice.")


@subscriptions.command()
@store_option
@click.argument("name")
@click.confirmation_option(prompt="Remove the subscription and its deliveries?")
def remove(store: Store, name: str) -> None:
    """Remove a subscription and its deliveries. Events and its ledger stay."""
    unfinished = Subscriptions(store, actor=actor()).remove(name)
    click.echo(f"Removed {name}; {unfinished} deliveries were not finished.")


@subscriptions.command()
@store_option
@click.argument("name")
def backfill(store: Store, name: str) -> None:
    """Add what is missing of the events that are older than the subscription."""
    Subscriptions(store).get(name)
    click.echo(f"Added {run_backfill(store, name)} events to {name}.")


def _values(options: dict[str, Any], old: Subscription | None = None) -> dict[str, Any]:
    """Return what was given, as :class:`Subscription` names it."""
    values: dict[str, Any] = {
        name: options[name]
        for name in ("retention", "lease", "objective", "severity", "runbook", "order_by")
        if options[name] is not None
    }
    if options["pattern"] is not None:
        values["filter"] = _pattern(options["pattern"])
    retry = {
        key: options[name]
        for key, name in (
            ("max_attempts", "max_attempts"),
            ("base", "backoff"),
            ("cap", "backoff_cap"),
        )
        if options[name] is not None
    }
    if retry:
        values["retry"] = {**(old.retry.as_dict() if old else {}), **retry}
    return values


def _pattern(text: str) -> Any:
    try:
        return json.loads(Path(text[1:]).read_text("utf-8") if text.startswith("@") else text)
    except OSError as error:
        raise ConfigError("filter", text, "a file that can be read", str(error)) from None
    except ValueError as error:
        raise ConfigError("filter", text, "JSON", str(error)) from None


def _document(one: Subscription) -> dict[str, Any]:
    return {
        "name": one.name,
        "filter": dict(one.filter),
        "retry": one.retry.as_dict(),
        "retention": one.retention,
        "lease": one.lease,
        "severity": "none" if one.severity is None else one.severity.value,
        "runbook": one.runbook,
        "order_by": one.order_by,
        "start_seq": one.start_seq,
        "is_backfilling": one.is_backfilling,
        "created_at": iso(one.created_at),
        "mode_since": iso(one.mode_since),
    }


def _backlog(one: ConsumerStatistics) -> str:
    parts = [f"{count} {state}" for state, count in sorted(one.backlog.items())]
    return ", ".join(parts) or "0"


def _age(seconds: float | None) -> str:
    return "" if seconds is None else format_duration(round(seconds))
