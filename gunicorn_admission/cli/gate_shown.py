"""How gates, events, findings and bills are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click
from rich.markup import escape
from rich.table import Table
from sqlalchemy import Connection

from gunicorn_admission.cli.tables import show
from gunicorn_admission.webhooks.gates.audit import Finding
from gunicorn_admission.webhooks.gates.bill import Verdict
from gunicorn_admission.webhooks.gates.gate import Gate
from gunicorn_admission.webhooks.gates.standings import standings, tallies

__all__ = ["document_of", "show_bill", "show_events", "show_findings", "show_gates"]

_COUNTS = ("admitted", "completed", "deduplicated", "refused", "deferred")


def document_of(connection: Connection, gate: Gate, now: int) -> dict[str, Any]:
    """Return a gate for JSON: its policy, its ceilings with what is used, its counts."""
    sources = {(b.ceiling.unit, str(b.ceiling.span)): b.ceiling.bill_source for b in gate.bounds}
    found = tallies(connection, gate.consumer)
    counts: Mapping[str, Any] = found[0].as_dict() if found else {}
    return {
        "consumer": gate.consumer,
        "at_ceiling": gate.at_ceiling.value,
        "charge": gate.charge.value,
        "cost": dict(gate.cost),
        "ceilings": [
            {**each.as_dict(), "bill_source": sources[each.unit, each.span]}
            for each in standings(connection, gate, now)
        ],
        "counts": {name: counts.get(name, 0) for name in (*_COUNTS, "attempts")},
        "states": counts.get("states", {}),
    }


def show_gates(gates: Sequence[Mapping[str, Any]]) -> None:
    """Print gates for people."""
    if not gates:
        click.echo("No consumer has a gate. Set one: gunicorn-admission gate set CONSUMER ...")
        return
    for gate in gates:
        cost = ", ".join(f"{unit}={amount}" for unit, amount in gate["cost"].items())
        click.echo(
            f"{gate['consumer']}: at the ceiling {gate['at_ceiling']}, "
            f"charge {gate['charge']}, cost {cost}"
        )
        table = _table("ceiling", "window", "used", "reserved", "settled", "soft", "resets")
        for each in gate["ceilings"]:
            bound = "" if each["hard"] is None else f"/{each['hard']}"
            table.add_row(
                escape(each["ceiling"]),
                each["window"],
                f"{each['used']}{bound}",
                str(each["reserved"]),
                str(each["settled"]),
                "" if each["soft"] is None else str(each["soft"]),
                _clock(each["resets_at"]),
                style="bold" if each["hard"] is not None and each["used"] >= each["hard"] else None,
            )
        show(table)
        counts = ", ".join(f"{gate['counts'][name]} {name}" for name in _COUNTS)
        waiting = {name: n for name, n in gate["states"].items() if name != "completed"}
        now = "".join(f", {count} {name}" for name, count in waiting.items())
        click.echo(f"So far {counts}." + (f" Now{now[1:]}." if now else "") + "\n")


def show_events(rows: Sequence[Mapping[str, Any]], state: str) -> None:
    """Print events that are in one state."""
    if not rows:
        click.echo(f"None is {state}.")
        return
    table = _table("consumer", "event", "reason", "ceiling", "used", "since", "until", "attempts")
    for row in rows:
        table.add_row(
            escape(row["consumer"]),
            escape(f"{row['source']}/{row['event_id']}"),
            row["reason"] or "",
            escape(row["ceiling"] or ""),
            "" if row["used"] is None else str(row["used"]),
            _clock(row["since"]),
            _clock(row["until"]),
            str(row["attempts"]),
        )
    show(table)


def show_findings(found: Sequence[Finding]) -> None:
    """Print what an audit has found."""
    if not found:
        click.echo("The counters are the sums of their entries, and no reservation is left over.")
        return
    table = _table("fault", "consumer", "where", "what")
    for each in found:
        table.add_row(
            each.fault.value, escape(each.consumer), escape(each.subject), escape(each.detail)
        )
    show(table)


def show_bill(found: Sequence[Verdict], tolerance: float) -> None:
    """Print a bill beside the ledger."""
    table = _table(
        "period", "unit", "consumer", "billed", "settled", "reserved", "drift", "", "on the bill"
    )
    for each in found:
        note = each.bill_source or ""
        if not each.windows:
            note = "no ceiling counted it"
        table.add_row(
            escape(each.period),
            each.unit,
            escape(each.consumer or "all"),
            str(each.billed),
            str(each.settled),
            str(each.reserved),
            f"{each.drift:+}",
            "" if each.percent is None else f"{each.percent:+g} %",
            escape(note),
            style=None if each.within(tolerance) else "bold",
        )
    show(table)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold")
    return table


def _clock(at: int | None) -> str:
    return "" if at is None else f"{datetime.fromtimestamp(at / 1e6, UTC):%Y-%m-%dT%H:%M:%SZ}"
