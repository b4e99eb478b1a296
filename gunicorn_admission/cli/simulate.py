"""``gunicorn-admission simulate``: a scenario under several limits, in virtual time."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from gunicorn_admission.cli.extras import needs
from gunicorn_admission.cli.progress import bar
from gunicorn_admission.cli.seeds import parse_seeds
from gunicorn_admission.cli.tables import show
from gunicorn_admission.errors import ConfigError

if TYPE_CHECKING:
    from gunicorn_admission.sim.compare import Comparison
    from gunicorn_admission.sim.figures import Figures

__all__ = ["simulate"]

#: Expected arrivals from which on a bar is shown while they are worked off.
_LONG = 20_000


@click.command()
@click.argument("scenario", required=False)
@click.option(
    "--compare",
    default="adaptive,gradient2,vegas,aimd,oracle",
    show_default=True,
    metavar="LIMIT,...",
    help="adaptive, gradient2, vegas, aimd, fixed:N, pool (all threads), oracle (the best fixed "
    "one), none (no admission).",
)
@click.option(
    "--seeds",
    default="3",
    show_default=True,
    metavar="N|N,N,...",
    help="How many, or which.",
)
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw a .png or .svg."
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Processes; all cores unless said otherwise.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--list", "listing", is_flag=True, help="Show the scenarios and stop.")
def simulate(
    scenario: str | None,
    compare: str,
    seeds: str,
    plot: Path | None,
    jobs: int | None,
    as_json: bool,
    listing: bool,
) -> None:
    """Run SCENARIO in virtual time, with the real controller and the real limits.

    \b
      gunicorn-admission simulate yardstick-A --compare adaptive,fixed:10,oracle
      gunicorn-admission simulate retry-storm --seeds 10 --plot storm.png

    Every limit meets the same arrivals. Figures are means over the seeds.
    """
    if listing:
        _list(as_json)
        return
    if scenario is None:
        raise click.UsageError("name a scenario; --list shows them")
    with needs("gunicorn-admission simulate"):
        from gunicorn_admission.sim import compare as comparing
        from gunicorn_admission.sim.library import find
        from gunicorn_admission.sim.limits import names
    chosen, limits, numbers = find(scenario), names(compare), parse_seeds(seeds)
    if plot is not None:
        _check(plot)
    runs = len(limits) * len(numbers)
    with bar(chosen.name, runs, wanted=runs * chosen.arrivals > _LONG) as done:
        comparison = comparing.compare(
            chosen, limits, numbers, processes=jobs or os.cpu_count() or 1, done=done
        )
    if plot is not None:
        from gunicorn_admission.sim.report import draw

        draw(comparison, plot)
    if as_json:
        click.echo(json.dumps(_document(comparison), indent=2))
    else:
        show(_table(comparison))


def _check(plot: Path) -> None:
    """Refuse before the work, not after it, what cannot be drawn."""
    with needs("--plot"):
        import matplotlib.backend_bases
    known = matplotlib.backend_bases.FigureCanvasBase.get_supported_filetypes()
    if plot.suffix[1:] not in known:
        raise ConfigError("plot", str(plot), ", ".join(f".{k}" for k in sorted(known)), "try .png")


def _list(as_json: bool) -> None:
    from gunicorn_admission.sim.library import every

    if as_json:
        listed = [{"name": one.name, "title": one.title} for one in every()]
        click.echo(json.dumps({"scenarios": listed}, indent=2))
        return
    for one in every():
        click.echo(f"{one.name:22} {one.title}")


def _document(comparison: Comparison) -> dict[str, object]:
    scenario = comparison.scenario
    return {
        "scenario": scenario.name,
        "title": scenario.title,
        "seeds": list(comparison.seeds),
        "results": [row.to_dict() for row in comparison.rows],
    }


def _table(comparison: Comparison) -> Table:
    scenario, rows = comparison.scenario, comparison.rows
    priorities = [name for name in ("high", "default", "low") if name in rows[0].priorities]
    after = any(row.success_after is not None for row in rows)
    seeds = len(comparison.seeds)
    table = Table(
        title=f"{scenario.name}: {scenario.title}",
        caption=f"mean of {seeds} seeds; times in ms" if seeds > 1 else "times in ms",
        box=None,
        pad_edge=False,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("limit", no_wrap=True)
    for title in ("goodput/s", "of best", *priorities):
        table.add_column(title, justify="right")
    if after:
        table.add_column("after", justify="right")
    for title in ("p99", "queue p99", "shed p99", "shed", "gave up", "limit", "from", "to"):
        table.add_column(title, justify="right")
    best = max(row.goodput for row in rows)
    for row in rows:
        table.add_row(row.limit, *_cells(row, best, priorities, after))
    return table


def _cells(row: Figures, best: float, priorities: Sequence[str], after: bool) -> Iterator[str]:
    yield f"{row.goodput:.1f} ±{row.spread:.1f}" if row.seeds > 1 else f"{row.goodput:.1f}"
    yield f"{row.goodput / best:.3f}" if best else "-"
    for name in priorities:
        yield f"{row.priorities[name]:.3f}"
    if after:
        yield "-" if row.success_after is None else f"{row.success_after:.3f}"
    for seconds in (row.p99, row.delay_p99, row.refusal_p99):
        yield "-" if seconds is None else f"{1000 * seconds:.0f}"
    yield f"{row.refused:.3f}"
    yield f"{row.gave_up:.3f}"
    yield f"{row.limit_mean:.1f}"
    yield f"{row.limit_low:.0f}"
    yield f"{row.limit_high:.0f}"
