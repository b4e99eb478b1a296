"""The picture: what each kind of request got, the health check, and latency, over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from figures import Run, served_over_time
from matplotlib import pyplot
from scenario import BLOCKED, HEALTH, KINDS, OVERLOAD

COLOURS = {"payments": "tab:blue", "updates": "tab:orange", "analytics": "tab:green"}
SHADES = {BLOCKED: "tab:red", OVERLOAD: "tab:purple"}
ENDINGS = {"served": "tab:blue", "refused": "tab:olive", "gave_up": "tab:red"}


def draw(runs: list[Run], path: Path) -> None:
    """Write a PNG with a column for each run and time to the right."""
    figure, axes = pyplot.subplots(
        3,
        len(runs),
        squeeze=False,
        figsize=(13, 8),
        sharex=True,
        sharey="row",
        layout="constrained",
    )
    figure.suptitle("The same load, the same application, the same database")
    for column, run in zip(axes.T, runs, strict=True):
        _served(column[0], run)
        _health(column[1], run)
        _latency(column[2], run)
        column[0].set_title(run.title, fontweight="bold", pad=16)
        column[2].set_xlabel("seconds")
        for axis in column:
            _shade(axis, run)
            axis.label_outer()
    for axis in axes[:, -1]:
        axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize="small", markerscale=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _served(axis: Any, run: Run) -> None:
    for kind in KINDS:
        points = [(at, 100 * part) for at, part in served_over_time(run.asked(kind.name))]
        label = f"{kind.name} ({kind.priority})"
        axis.plot(*zip(*points, strict=True), color=COLOURS[kind.name], label=label)
    axis.set(ylabel="served in time, %", ylim=(-4, 104))


def _health(axis: Any, run: Run) -> None:
    for good, colour, label in (
        (True, "tab:green", "answered"),
        (False, "tab:red", "not within 1 s"),
    ):
        checks = [r for r in run.asked(HEALTH.name) if (r.outcome == "served") == good]
        taken = [1000 * (r.ended - r.scheduled) for r in checks]
        axis.scatter([r.scheduled for r in checks], taken, s=9, color=colour, label=label)
    axis.set(ylabel="health check, ms", yscale="log")


def _latency(axis: Any, run: Run) -> None:
    for outcome, colour in ENDINGS.items():
        ended = [r for r in run.asked() if r.outcome == outcome]
        taken = [1000 * (r.ended - r.scheduled) for r in ended]
        label = outcome.replace("_", " ")
        axis.scatter([r.scheduled for r in ended], taken, s=3, alpha=0.5, color=colour, label=label)
    axis.set(ylabel="from due to end, ms", yscale="log")


def _shade(axis: Any, run: Run) -> None:
    for index, colour in SHADES.items():
        phase = run.plan[index]
        axis.axvspan(phase.start, phase.end, color=colour, alpha=0.1, linewidth=0)
        top = axis.get_xaxis_transform()
        axis.text(phase.start, 1.01, phase.title, transform=top, fontsize="x-small", color=colour)
    axis.grid(alpha=0.3)
