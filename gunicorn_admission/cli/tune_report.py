"""What ``gunicorn-admission tune`` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import click
from rich.markup import escape
from rich.table import Table

from gunicorn_admission.cli.tables import show
from gunicorn_admission.settings import format_duration
from gunicorn_admission.sim.figures import Figures
from gunicorn_admission.sim.tune.access_log import AccessLog
from gunicorn_admission.sim.tune.advise import Advice
from gunicorn_admission.sim.tune.candidates import CONFIGURED
from gunicorn_admission.sim.tune.certainty import Certainty
from gunicorn_admission.sim.tune.replay import Deployment
from gunicorn_admission.sim.tune.windows import Traffic

__all__ = ["document", "report"]

_MOST_CLASSES = 8


def report(
    log: AccessLog,
    traffic: Traffic,
    deployment: Deployment,
    advice: Advice,
    sure: Certainty,
    given: Mapping[str, object],
) -> None:
    """
    Print it for people: what was found, what was tried, what is recommended, how sure.

    Args:
        given: Settings that were options of the command, and are part of the advice.
    """
    for line in _found(log, traffic, deployment, advice):
        click.echo(line)
    click.echo()
    show(_table(advice))
    click.echo()
    chosen = advice.chosen.candidate
    click.echo(f"Recommended: {chosen.name}")
    keywords = {} if chosen.name == CONFIGURED else {**chosen.settings, **given}
    if keywords or chosen.threads:
        click.echo("  in gunicorn.conf.py:")
        if chosen.threads:
            click.echo(f"    threads = {chosen.threads}")
        words = "".join(f", {name}={value!r}" for name, value in keywords.items())
        click.echo(f"    install(globals(){words})")
    click.echo(
        f"How sure: {sure.level}. {advice.agreement:.0%} of {len(advice.fits)} resamples of the "
        "log alone say the same."
    )
    for doubt in sure.doubts:
        click.echo(f"  - {doubt}")


def document(
    log: AccessLog, traffic: Traffic, deployment: Deployment, advice: Advice, sure: Certainty
) -> dict[str, object]:
    """Return the same for programs."""
    fit, chosen = advice.fit, advice.chosen.candidate
    connections = sorted(one.capacity.connections for one in advice.fits)
    return {
        "log": {
            "lines": log.lines,
            "requests": traffic.requests,
            "exempt": log.exempt,
            "unreadable": log.unreadable,
            "refused": sum(log.refused),
            "format": log.format.text,
            "seconds": round(traffic.span, 3),
        },
        "deployment": {
            "threads": deployment.threads,
            "workers": deployment.workers,
            "patience": round(deployment.patience, 3),
        },
        "fit": {
            "service_seconds": fit.mean,
            "sigma": fit.sigma,
            "dispersion": traffic.dispersion,
            "classes": {
                one.partition: seconds
                for one, seconds in zip(traffic.classes, fit.means, strict=True)
            },
            "capacity": {
                "known": fit.capacity.known,
                "connections": fit.capacity.connections,
                "contention": fit.capacity.contention,
                "per_second": fit.per_second,
                "resamples": [connections[0], connections[-1]],
            },
        },
        "loads": {
            name: {"title": scenario.title, "rate": scenario.arrivals / scenario.seconds}
            for name, scenario in advice.scenarios.items()
        },
        "results": [
            {**figures.to_dict(), "candidate": row.candidate.name, "load": load}
            for row in advice.rows
            for load, figures in row.loads.items()
        ],
        "recommended": {
            "candidate": chosen.name,
            "settings": dict(chosen.settings),
            "threads": chosen.threads or deployment.threads,
        },
        "certainty": {
            "level": sure.level,
            "agreement": advice.agreement,
            "resamples": len(advice.fits),
            "doubts": list(sure.doubts),
        },
    }


def _found(
    log: AccessLog, traffic: Traffic, deployment: Deployment, advice: Advice
) -> Iterator[str]:
    fit, stretch = advice.fit, advice.stretch
    begin = datetime.fromtimestamp(stretch.start, UTC)
    left_out = f", {log.exempt} probes left out" if log.exempt else ""
    yield f"Read {traffic.requests} requests over {_span(traffic.span)}{left_out}."
    yield f"  format         {log.format.text}"
    yield (
        f"  rate           {_rate(traffic.requests / max(traffic.span, 1e-9))} on average, "
        f"{_rate(stretch.arrivals / stretch.seconds)} in the busiest "
        f"{_span(stretch.seconds)} (from {begin:%Y-%m-%d %H:%M:%S} UTC)"
        + (f", in bursts of about {traffic.dispersion:.0f}" if traffic.dispersion >= 1.5 else "")
    )
    classes = sorted(
        zip(traffic.classes, fit.means, strict=True), key=lambda pair: pair[1], reverse=True
    )
    shown = ", ".join(f"{one.partition} {_time(mean)}" for one, mean in classes[:_MOST_CLASSES])
    more = len(classes) - _MOST_CLASSES
    yield f"  usual time     {_time(fit.mean)}: {shown}" + (f" and {more} more" * (more > 0))
    yield f"  in threads     {traffic.busiest:.3g} at most, as a mean of {_span(traffic.width)}"
    capacity = fit.capacity
    seen = sorted(one.capacity.connections for one in advice.fits)
    if capacity.known:
        yield (
            f"  capacity       about {_rate(fit.per_second)}, {capacity.connections} at once "
            f"({seen[0]} to {seen[-1]} in the resamples)"
            + f", {capacity.contention:.1%} slower for each one more"
            * bool(capacity.contention)
        )
    else:
        yield f"  capacity       not seen; at least {_rate(fit.per_second)} is assumed"
    yield (
        f"  assumed        {deployment.workers} x {deployment.threads} threads, clients that "
        f"wait {format_duration(round(deployment.patience, 1))}"
    )


def _rate(value: float) -> str:
    return f"{value:.3g}/s" if value < 1000 else f"{value:,.0f}/s"


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _table(advice: Advice) -> Table:
    logged, over = advice.scenarios["logged"], advice.scenarios["overload"]
    table = Table(
        title=f"Replayed: {logged.title}, and {over.title}",
        caption=f"mean of {len(advice.fits)} resamples; times in ms; * recommended",
        box=None,
        pad_edge=False,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("settings", no_wrap=True)
    found = advice.rows[0].loads["overload"].priorities
    priorities = [name for name in ("high", "default", "low") if name in found]
    if len(priorities) < 2:
        priorities = []
    for load in ("logged", "over"):
        for title in ("goodput/s", *priorities, "shed", "queue p99", "p99"):
            table.add_column(f"{load}\n{title}", justify="right")
    for row in advice.rows:
        mark = " *" if row is advice.chosen else ""
        cells = [cell for figures in row.loads.values() for cell in _cells(figures, priorities)]
        table.add_row(escape(row.candidate.name) + mark, *cells)
    return table


def _cells(row: Figures, priorities: Sequence[str]) -> Iterator[str]:
    yield f"{row.goodput:.1f} ±{row.spread:.1f}" if row.seeds > 1 else f"{row.goodput:.1f}"
    for name in priorities:
        yield f"{row.priorities[name]:.3f}"
    yield f"{row.refused:.3f}"
    for seconds in (row.delay_p99, row.p99):
        yield "-" if seconds is None else f"{1000 * seconds:.0f}"
