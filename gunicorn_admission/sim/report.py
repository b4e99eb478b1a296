"""The picture: four aligned plots for each limit, under the same load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gunicorn_admission.sim.compare import Comparison
from gunicorn_admission.sim.run import Run
from gunicorn_admission.sim.scenario import Scenario

__all__ = ["draw"]

_COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:purple", "tab:brown", "tab:pink")
_SHADES = ("tab:grey", "white")


def draw(comparison: Comparison, path: Path) -> None:
    """
    Write a picture with a column for each limit and time to the right.

    Rows: offered, served and refused requests by class; limit and inflight; queue delay
    beside the target; success by class. Axes are shared, so columns can be compared by eye.

    Args:
        comparison: What to draw; runs under the first seed.
        path: Its ending chooses the format: ``.png`` or ``.svg``, for example.

    Raises:
        ModuleNotFoundError: matplotlib is not installed (extra ``sim``).
        ValueError: matplotlib does not know the format.
    """
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = comparison.scenario.name  # the same file each time
    from matplotlib import pyplot

    runs, scenario = comparison.runs, comparison.scenario
    picture, axes = pyplot.subplots(
        4,
        len(runs),
        squeeze=False,
        figsize=(3.4 * len(runs) + 2.2, 9.5),
        sharex=True,
        sharey="row",
        layout="constrained",
    )
    picture.suptitle(f"{scenario.name}: {scenario.title}\n{_conditions(comparison)}", fontsize=10)
    for column, run, figures in zip(axes.T, runs, comparison.rows, strict=True):
        column[0].set_title(f"{run.limit}: {figures.goodput:.4g}/s", fontweight="bold")
        _load(column[0], run)
        _limit(column[1], run)
        _delay(column[2], run)
        _success(column[3], run)
        column[3].set_xlabel("seconds")
        for axis in column:
            _shade(axis, scenario)
            axis.label_outer()
    for row in (1, 2):
        axes[row, 0].set_ylim(bottom=0)
    for axis in axes[:, -1]:
        axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize="x-small")
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without a date in it, an unchanged picture stays the same file.
    metadata = {"Date": None} if path.suffix == ".svg" else None
    picture.savefig(path, dpi=90, metadata=metadata)
    pyplot.close(picture)


def _conditions(comparison: Comparison) -> str:
    scenario = comparison.scenario
    given = ", ".join(f"{key}={value}" for key, value in scenario.settings.items())
    workers = f"{scenario.workers} workers of " if scenario.workers > 1 else ""
    return (
        f"seed {comparison.seeds[0]}, {workers}{scenario.threads} threads, "
        f"settings: {given or 'defaults'}"
    )


def _times(run: Run) -> list[float]:
    timeline = run.tally.timeline
    return [timeline.width * (at + 1) for at in range(len(timeline.limit))]


def _load(axis: Any, run: Run) -> None:
    timeline, times = run.tally.timeline, _times(run)
    for index, kind in enumerate(run.scenario.classes):
        colour = _COLOURS[index % len(_COLOURS)]
        for column, style, name in (
            (timeline.offered[index], ":", "offered"),
            (timeline.ended[index], "-", "served"),
            (timeline.refused[index], "--", "shed"),
        ):
            rates = [count / timeline.width for count in column]
            label = f"{kind.name} {name}"
            axis.plot(times, rates, style, color=colour, linewidth=0.9, label=label)
    axis.set(ylabel="requests/s")


def _limit(axis: Any, run: Run) -> None:
    timeline, times = run.tally.timeline, _times(run)
    axis.plot(times, timeline.inflight, color="tab:cyan", linewidth=0.7, label="inflight")
    axis.plot(times, timeline.limit, color="tab:red", linewidth=1.2, label="limit")
    axis.set(ylabel="requests at once")


def _delay(axis: Any, run: Run) -> None:
    timeline, times = run.tally.timeline, _times(run)
    pairs = zip(timeline.delay_sum, timeline.delay_count, strict=True)
    means = [1000 * total / count if count else 0.0 for total, count in pairs]
    most = [1000 * delay for delay in timeline.delay_most]
    target = [1000 * delay for delay in timeline.target]
    axis.plot(times, most, color="tab:olive", linewidth=0.7, label="largest")
    axis.plot(times, means, color="tab:blue", linewidth=0.9, label="mean")
    axis.plot(times, target, "--", color="black", linewidth=0.9, label="target")
    axis.set(ylabel="queue delay, ms")


def _success(axis: Any, run: Run) -> None:
    timeline, times = run.tally.timeline, _times(run)
    for index, (kind, priority) in enumerate(
        zip(run.scenario.classes, run.scenario.priorities(), strict=True)
    ):
        pairs = zip(timeline.delivered[index], timeline.first[index], strict=True)
        shares = [100 * good / sent if sent else float("nan") for good, sent in pairs]
        label = f"{kind.name} ({priority.name.lower()})"
        colour = _COLOURS[index % len(_COLOURS)]
        axis.plot(times, shares, color=colour, linewidth=0.9, label=label)
    axis.set(ylabel="served in time, %", ylim=(-4, 104))


def _shade(axis: Any, scenario: Scenario) -> None:
    begin = 0.0
    for index, phase in enumerate(scenario.phases):
        end = begin + phase.seconds
        axis.axvspan(begin, end, color=_SHADES[index % 2], alpha=0.12, linewidth=0)
        begin = end
    axis.set_xlim(0, begin)
    axis.grid(alpha=0.3)
