"""
A database that blocks, and an overload: plain gunicorn first, then gunicorn with admission.

    python demo.py [--quick] [--plain] [--picture PNG]
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from figures import Run, count, share
from live import Progress
from rich.console import Console
from scenario import HEALTH, phases
from server import DidNotStart, generator, gunicorn
from table import comparison

PICTURE = Path(__file__).resolve().parent / "out" / "comparison.png"
LATE = 0.05  # seconds; a generator later than this (p99) has measured itself


def serve(title: str, console: Console, *, admission: bool, quick: bool) -> Run:
    """Start a server, put the load on it, stop it; everything lives in a temporary folder."""
    plan = phases(quick)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            gunicorn(folder, admission=admission) as port,
            generator(folder, port, quick=quick) as load,
        ):
            Progress(console, title, plan).follow(load, folder / "requests")
        return Run.load(title, plan, folder)


def verdict(plain: Run, admitted: Run) -> list[str]:
    """What keeps admission from being clearly better; empty when nothing does."""
    faults = []
    health = [share(run.asked(HEALTH.name)) for run in (plain, admitted)]
    if health[1] < 0.95 or health[1] < health[0] + 0.2:
        faults.append(f"health checks answered: {health[0]:.0%} plain, {health[1]:.0%} admitted")
    served = [count(run.asked(), "served") for run in (plain, admitted)]
    if served[1] < 1.2 * served[0]:
        faults.append(f"requests served: {served[0]} plain, {served[1]} admitted")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="shorter phases; fail unless better")
    parser.add_argument("--plain", action="store_true", help="only the half without admission")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="the PNG to write")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    console = Console()
    titles = {"plain": False} if options.plain else {"plain": False, "admission": True}
    try:
        runs = [
            serve(title, console, admission=admission, quick=options.quick)
            for title, admission in titles.items()
        ]
    except DidNotStart as error:
        console.print(error, markup=False)
        return 1
    except KeyboardInterrupt:
        return 130
    console.print(comparison(runs))
    for run in runs:
        if run.lateness() > LATE:
            console.print(
                f"Note: the load was late ({run.title}); this machine is too busy to tell."
            )
    from plot import draw  # after the runs: loading it would take their processor time

    draw(runs, options.picture)
    console.print(f"Picture: {options.picture}", soft_wrap=True, highlight=False)
    faults = verdict(*runs) if len(runs) == 2 else []
    for fault in faults:
        console.print(f"Not clearly better: {fault}")
    return bool(options.quick and faults)


if __name__ == "__main__":
    sys.exit(main())
