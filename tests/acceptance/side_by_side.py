"""The same load, at the same time, on gunicorn with admission and without."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.overload.plan import Kind, Plan
from benchmarks.overload.scenarios import Scenario
from benchmarks.overload.summary import Run
from benchmarks.processes import ROOT, Server, free_port, gunicorn

__all__ = ["THREADS", "Pair", "side_by_side"]

THREADS = 16
_PATIENCE = 30.0
_BODY = (64, 64)


class Pair(NamedTuple):
    """What was seen of either server."""

    ours: Run
    plain: Run


def side_by_side(app: str, scenario: Scenario, kinds: tuple[Kind, ...], folder: Path) -> Pair:
    """
    Serve an application twice, put the same load on both, take what was written down.

    Both run at once, so that whatever else the machine does, it does to both. Ours has no
    configuration: what it knows of the application is what it sees.

    Args:
        app: What gunicorn is to serve, ``module:name``.
        scenario: Phases of the load, and the size of ``benchmarks.overload.app``'s database.
        kinds: Requests, and how long their clients wait.
        folder: For all files; a subfolder a server, whose log is printed.

    Raises:
        DidNotStart: A server could not be started.
        RuntimeError: The load could not be put on one of them.
    """
    runs: dict[str, Run] = {}
    with ExitStack() as stack:
        started = []
        for name in Pair._fields:
            home = folder / name
            home.mkdir()
            stack.callback(_show, name, home / "log")
            plan = _plan(scenario, kinds, home)
            stack.enter_context(_server(app, scenario, plan, admission=name == "ours"))
            started.append((home, plan))
        generators = [_generator(plan, home, stack) for home, plan in started]
        deadline = time.monotonic() + started[0][1].seconds + _PATIENCE
        for generator in generators:
            if generator.wait(max(0.0, deadline - time.monotonic())) != 0:
                raise RuntimeError("a load generator failed")
        for home, plan in started:
            runs[home.name] = Run.collect(scenario, plan, home, home / "handled", [])
    return Pair(**runs)


def _plan(scenario: Scenario, kinds: tuple[Kind, ...], home: Path) -> Plan:
    (home / "control").write_bytes(bytes(16))
    (home / "handled").touch()
    return Plan(
        port=free_port(),
        keep_alive=False,
        seed=1,
        kinds=kinds,
        phases=scenario.phases,
        control=str(home / "control"),
        body=_BODY,
    )


def _server(app: str, scenario: Scenario, plan: Plan, *, admission: bool) -> Server:
    home = Path(plan.control).parent
    variables = {
        "BENCHMARK_CONTROL": plan.control,
        "BENCHMARK_HANDLED": str(home / "handled"),
        "BENCHMARK_CONNECTIONS": str(scenario.connections),
        "BENCHMARK_SECONDS": str(scenario.seconds),
        "GUNICORN_ADMISSION_LOG_INTERVAL": "1",  # says why, if a promise is not kept
    }
    command = gunicorn(app, plan.port, THREADS, "--log-level", "info", admission=admission)
    return Server([command], plan.port, home, variables)


def _generator(plan: Plan, home: Path, stack: ExitStack) -> subprocess.Popen[bytes]:
    plan.save(home / "plan.json")
    command = [sys.executable, "-m", "benchmarks.overload.loadgen"]
    generator = subprocess.Popen([*command, str(home / "plan.json"), str(home)], cwd=ROOT)
    stack.callback(generator.wait)
    stack.callback(generator.kill)  # nothing if it has ended
    return generator


def _show(name: str, log: Path) -> None:
    """Print what a server said; pytest shows it when the test fails."""
    print(f"-- {name} --", log.read_text(errors="replace"), sep="\n")
