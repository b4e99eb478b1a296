"""``gunicorn-admission gate``: what each consumer may spend, and what it has spent."""

from __future__ import annotations

import json
from typing import Any

import click

from gunicorn_admission.cli.gate_checks import audit, check_known, reconcile
from gunicorn_admission.cli.gate_permits import approve, reject, release
from gunicorn_admission.cli.gate_shown import document_of, show_events, show_gates
from gunicorn_admission.cli.operator import actor
from gunicorn_admission.cli.store_option import store_option
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.gates import (
    AtCeiling,
    Ceiling,
    Charge,
    GatePolicy,
    configure,
)
from gunicorn_admission.webhooks.gates.configure import policy_of
from gunicorn_admission.webhooks.gates.gate import Gate, load_gate, lock_gate
from gunicorn_admission.webhooks.gates.spans import parse_span
from gunicorn_admission.webhooks.gates.standings import events_in, gated_consumers
from gunicorn_admission.webhooks.store import Store

__all__ = ["gate"]

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_STATES = ("refused", "deferred", "review", "rejected", "approved", "failed", "reserved", "dead")


@click.group()
def gate() -> None:
    """What each consumer may spend, what it has spent, and what was decided.

    \b
      gunicorn-admission gate set usage-analytics 500 requests --per day --zone Europe/Berlin
      gunicorn-admission gate show usage-analytics
      gunicorn-admission gate show usage-analytics --events refused
      gunicorn-admission gate release usage-analytics stripe/evt_01892
    """


@gate.command(name="show")
@store_option
@click.argument("consumer", required=False)
@click.option("--events", "state", type=click.Choice(_STATES), help="List events in this state.")
@click.option(
    "--limit", type=click.IntRange(1), default=100, show_default=True, help="At most so many."
)
@_JSON
def show_(store: Store, consumer: str | None, state: str | None, limit: int, as_json: bool) -> None:
    """Show ceilings with what is used of them, and counts; of one consumer or of all."""
    now = store.now()
    with store.read() as connection:
        names = gated_consumers(connection)
        if consumer is not None:
            check_known(consumer, names)
            names = [consumer]
        if state is not None:
            rows = [row for name in names for row in events_in(connection, name, state, limit)]
            if as_json:
                click.echo(json.dumps(rows, indent=2))
            else:
                show_events(rows, state)
            return
        found = [document_of(connection, _load(connection, name), now) for name in names]
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        show_gates(found)


@gate.command(name="set")
@store_option
@click.argument("consumer")
@click.argument("hard", required=False)
@click.argument("unit", required=False)
@click.option(
    "--per",
    default="day",
    show_default=True,
    help="hour, day, week, month, total, or a duration such as 24h (rolling).",
)
@click.option("--zone", help="IANA time zone of a calendar window. Default: UTC.")
@click.option("--soft", type=int, help="Tell once a window when this is crossed.")
@click.option("--bill-source", help="Where the unit stands on the bill.")
@click.option("--remove", is_flag=True, help="End the ceiling of that unit and window.")
@click.option(
    "--at-ceiling",
    type=click.Choice([each.value for each in AtCeiling]),
    help="What happens to events that no longer fit. Default: refuse.",
)
@click.option(
    "--charge",
    type=click.Choice([each.value for each in Charge]),
    help="What is charged. Default: event.",
)
@click.option(
    "--cost",
    "costs",
    multiple=True,
    metavar="UNIT=AMOUNT",
    help="What an event costs that names no cost of its own.",
)
def set_(
    store: Store,
    consumer: str,
    hard: str | None,
    unit: str | None,
    per: str,
    zone: str | None,
    soft: int | None,
    bill_source: str | None,
    remove: bool,
    at_ceiling: str | None,
    charge: str | None,
    costs: tuple[str, ...],
) -> None:  # fmt: skip
    """Set a ceiling of HARD UNIT, or what holds at all ceilings of a consumer.

    It applies at once, also to what is under way; what was spent stays. HARD may be "none" where
    --soft is given. Deferral is refused where the subscription does not keep events that long.

    \b
      gunicorn-admission gate set usage-analytics 500 requests --zone America/New_York --soft 400
      gunicorn-admission gate set usage-analytics 2000000 tokens --per month --cost tokens=1200
      gunicorn-admission gate set usage-analytics --at-ceiling defer --charge actual
    """
    amounts = dict(_amount(text) for text in costs)
    if hard is not None and unit is None:
        raise click.UsageError("give the unit too: 500 requests")
    bound = None
    if hard is not None and unit is not None and not remove:
        bound = Ceiling(_whole(hard), unit, per=per, zone=zone, soft=soft, bill_source=bill_source)
    place = (unit, str(parse_span(per, zone)))

    def work(connection: Any) -> tuple[bool, GatePolicy]:
        lock_gate(connection, consumer)
        known = load_gate(connection, consumer)
        before = GatePolicy([]) if known is None else policy_of(known)
        kept = [each for each in before.ceilings if (each.unit, str(each.span)) != place]
        if unit is None:
            kept = list(before.ceilings)
        elif remove and len(kept) == len(before.ceilings):
            there = ", ".join(f"{each.unit} per {each.span}" for each in before.ceilings)
            raise ConfigError(
                "ceiling", " per ".join(map(str, place)), f"one that {consumer} has",
                f"it has {there or 'none'}",
            )  # fmt: skip
        after = GatePolicy(
            [*kept, *([bound] if bound else [])],
            cost={**before.cost, **amounts},
            charge=charge or before.charge,
            at_ceiling=at_ceiling or before.at_ceiling,
        )
        changed = configure(connection, consumer, after, now=store.now(), actor=actor())
        return changed, after

    changed, policy = store.write(work)
    click.echo(f"{consumer}: {_words(policy)}." + ("" if changed else " Nothing was changed."))


def _whole(text: str) -> int | None:
    if text == "none":
        return None
    try:
        return int(text.replace("_", ""))
    except ValueError:
        raise ConfigError(
            "hard", text, "a whole number, or none",
            "money is counted in micro-units: 5 USD are 5_000_000 usd_micros",
        ) from None  # fmt: skip


def _amount(text: str) -> tuple[str, int]:
    unit, _, amount = text.partition("=")
    try:
        return unit, int(amount)
    except ValueError:
        raise ConfigError("cost", text, "UNIT=AMOUNT", "for example tokens=1200") from None


def _load(connection: Any, consumer: str) -> Gate:
    found = load_gate(connection, consumer)
    assert found is not None  # it is among the names, and gates are not deleted
    return found


def _words(policy: GatePolicy) -> str:
    ceilings = "; ".join(str(each) for each in policy.ceilings) or "no ceiling"
    return f"{ceilings}; at the ceiling {policy.at_ceiling.value}, charge per " + (
        policy.charge.value if policy.charge is not Charge.ACTUAL else "actual cost"
    )


for verb in (release, approve, reject, audit, reconcile):
    gate.add_command(verb)
