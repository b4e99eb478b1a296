"""
Holding the ledger against a bill: a ceiling whose unit is not on a bill bounds nothing real.

A bill is a list of amounts, each of one unit in one period: a CSV file with a header, or a JSON
list of objects, with the columns ``period`` (``2026-11-30``, ``2026-11``, ``2026-W49``,
``total``), ``unit``, ``amount``, and ``consumer`` where it says so.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import asdict, frozen
from sqlalchemy import Connection, select

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.gates.units import check_amount, check_unit
from gunicorn_admission.webhooks.store.schema import ceilings, windows

__all__ = ["Line", "Verdict", "compare", "read_bill"]

_COLUMNS: Final = ("period", "unit", "amount")


@frozen(kw_only=True)
class Line:
    """One amount on a bill; ``consumer`` is ``None`` where it is of all of them."""

    period: str
    unit: str
    amount: int
    consumer: str | None = None


@frozen(kw_only=True)
class Verdict:
    """
    A line of the bill beside what the ledger says.

    Attributes:
        settled: What the ledger says was spent.
        reserved: What is still open there: it may explain the drift.
        drift: Billed less settled; positive is spend that no ceiling has seen.
        percent: Drift in percent of what is billed; ``None`` where nothing was billed.
        bill_source: The note of the ceiling: where the unit stands on the bill.
        windows: How many windows of the ledger were added up; none: nothing bounds the unit.
    """

    period: str
    unit: str
    consumer: str | None
    billed: int
    settled: int
    reserved: int
    drift: int
    percent: float | None
    bill_source: str | None
    windows: int

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return asdict(self)

    def within(self, percent: float) -> bool:
        """Whether the drift is at most so many percent of what is billed."""
        return abs(self.drift) * 100 <= percent * self.billed


def read_bill(path: Path) -> list[Line]:
    """
    Read a bill from a CSV or JSON file.

    Raises:
        ConfigError: It is neither, a column is missing, or an amount is not a whole number.
    """
    text = path.read_text("utf-8-sig")
    rows: Sequence[Any]
    if text.lstrip()[:1] in ("[", "{"):
        try:
            rows = json.loads(text)
        except ValueError as error:
            raise _bad(path, f"broken JSON ({error})") from None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise _bad(path, "JSON that is not a list of objects")
    else:
        reader = csv.DictReader(text.splitlines(), skipinitialspace=True)
        rows = list(reader)
    if not rows:
        raise _bad(path, "empty")
    return [_line(row, f"{path.name}:{number}") for number, row in enumerate(rows, 1)]


def _bad(path: Path, what: str) -> ConfigError:
    return ConfigError(
        "bill", str(path), f"CSV with a header, or a JSON list, with {', '.join(_COLUMNS)}",
        f"the file is {what}",
    )  # fmt: skip


def _line(row: Mapping[str, Any], where: str) -> Line:
    for column in _COLUMNS:
        if row.get(column) in (None, ""):
            raise ConfigError(
                f"bill {where}", dict(row), f"the columns {', '.join(_COLUMNS)}",
                f"{column} is missing; name the columns in the first line",
            )  # fmt: skip
    amount = row["amount"]
    if isinstance(amount, str) and amount.strip().isdecimal():
        amount = int(amount)
    return Line(
        period=str(row["period"]).strip(),
        unit=check_unit(str(row["unit"]).strip(), f"bill {where} unit"),
        amount=check_amount(amount, f"bill {where} amount"),
        consumer=str(row["consumer"]).strip() if row.get("consumer") else None,
    )


def compare(connection: Connection, bill: Iterable[Line]) -> list[Verdict]:
    """
    Return each line of the bill beside the ledger.

    A line of a day, a month or a year is held against the windows whose name begins with it. Of
    a consumer's ceilings for one unit, that which saw most is added up, so that spend under
    several ceilings is counted once.
    """
    return [_verdict(connection, line) for line in bill]


def _verdict(connection: Connection, line: Line) -> Verdict:
    statement = (
        select(ceilings, windows.c.key, windows.c.reserved, windows.c.settled)
        .join(windows, windows.c.ceiling == ceilings.c.id)
        .where(ceilings.c.unit == line.unit)
    )
    if line.consumer is not None:
        statement = statement.where(ceilings.c.consumer == line.consumer)
    found: dict[str, dict[int, list[Any]]] = {}
    for row in connection.execute(statement.order_by(ceilings.c.id)):
        if _covers(line.period, row.key):
            found.setdefault(row.consumer, {}).setdefault(row.id, []).append(row)
    # Ceilings of one consumer saw the same spend, unless one is younger: the fullest is right.
    chosen = [
        max(by_ceiling.values(), key=lambda rows: sum(row.settled for row in rows))
        for by_ceiling in found.values()
    ]
    rows = [row for each in chosen for row in each]
    settled = sum(row.settled for row in rows)
    drift = line.amount - settled
    return Verdict(
        period=line.period,
        unit=line.unit,
        consumer=line.consumer,
        billed=line.amount,
        settled=settled,
        reserved=sum(row.reserved for row in rows),
        drift=drift,
        percent=round(drift * 100 / line.amount, 3) if line.amount else None,
        bill_source=next((row.bill_source for row in rows if row.bill_source), None),
        windows=len(rows),
    )


def _covers(period: str, key: str) -> bool:
    """Whether a window is the period, or a part of it: 2026-11-30 is of 2026-11."""
    return key == period or key.startswith((f"{period}-", f"{period}T"))
