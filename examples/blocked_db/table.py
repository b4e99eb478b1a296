"""The closing table: both runs side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from figures import Run, count, latencies, percentile, share
from rich.table import Table
from scenario import BLOCKED, HEALTH, KINDS, OVERLOAD, RELIEVED, UNBLOCKED

Cell = Callable[[Run], str]


def comparison(runs: list[Run]) -> Table:
    """Rows of figures, a column for each run."""
    table = Table(
        title="The same load, the same application, the same database", title_style="bold"
    )
    table.add_column("")
    for run in runs:
        table.add_column(run.title, justify="right")
    for title, cell in rows(runs[0]):
        if cell is None:
            table.add_section()
        table.add_row(
            title, *(cell(run) if cell else "" for run in runs), style=None if cell else "dim"
        )
    return table


def rows(any_run: Run) -> Iterator[tuple[str, Cell | None]]:
    """Title and figure of each row; a row without a figure heads a section."""
    yield "Answered while the client waited", None
    for kind in KINDS:
        yield f"{kind.name} ({kind.priority})", lambda run, name=kind.name: _part(run, name)
    yield "all three", _part
    yield "all three, in the overload only", lambda run: _part(run, None, OVERLOAD)
    yield "payments, in the overload only", lambda run: _part(run, "payments", OVERLOAD)
    yield "Health checks answered within 1 s", None
    yield "while the database was blocked", lambda run: _part(run, HEALTH.name, BLOCKED)
    yield "in the overload", lambda run: _part(run, HEALTH.name, OVERLOAD)
    yield "in all", lambda run: _part(run, HEALTH.name)
    yield "Latency from the arrival", None
    yield "answered, median", lambda run: _milliseconds(latencies(run.asked()), 0.5)
    yield "answered, p99", lambda run: _milliseconds(latencies(run.asked()), 0.99)
    yield "refused (503), median", lambda run: _milliseconds(latencies(run.asked(), "refused"), 0.5)
    yield "Clients that got no answer", None
    patience = f"left after {any_run.plan[0].patience:g} s of silence"
    yield patience, lambda run: str(count(run.asked(), "gave_up"))
    yield "work for clients that had left", lambda run: f"{run.wasted()} of {len(run.starts)}"
    yield "Time until 90% are served again", None
    yield "after the blocked database", lambda run: _recovery(run, UNBLOCKED)
    yield "after the overload", lambda run: _recovery(run, RELIEVED)


def _part(run: Run, kind: str | None = None, phase: int | None = None) -> str:
    records = run.asked(kind, phase)
    return f"{count(records, 'served')} of {len(records)} ({share(records):.0%})"


def _milliseconds(values: list[float], part: float) -> str:
    return f"{percentile(values, part) * 1000:.0f} ms" if values else "none"


def _recovery(run: Run, phase: int) -> str:
    seconds = run.recovery(phase)
    window = run.plan[phase].end - run.plan[phase].start
    return f"more than {window:g} s" if seconds is None else f"{seconds:.1f} s"
