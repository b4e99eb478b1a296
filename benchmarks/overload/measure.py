"""One run: start a contender, put the load of a scenario on it, take its figures."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.overload.contenders import CONTENDERS
from benchmarks.overload.figures import Figures
from benchmarks.overload.plan import Plan
from benchmarks.overload.scenarios import Scenario, kinds
from benchmarks.overload.summary import Run, Sample
from benchmarks.processes import ROOT, STOP_SECONDS, Server

__all__ = ["measure"]

_SAMPLING_SECONDS = 0.25
_PATIENCE = 30.0
_QUIET_SECONDS = 0.5
_DRAINING_SECONDS = 10.0


def measure(
    name: str,
    key: str,
    scenario: Scenario,
    *,
    keep_alive: bool,
    seed: int,
    round: int,
    profile: str,
) -> Figures:
    """
    Run one contender once.

    Raises:
        DidNotStart: It could not be started.
        RuntimeError: The generator failed.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)  # nginx's worker is another user
        control, handled = folder / "control", folder / "handled"
        control.write_bytes(bytes(16))
        handled.touch()
        variables = {
            "BENCHMARK_CONTROL": str(control),
            "BENCHMARK_HANDLED": str(handled),
            "BENCHMARK_CONNECTIONS": str(scenario.connections),
            "BENCHMARK_SECONDS": str(scenario.seconds),
        }
        with CONTENDERS[name].server(folder, variables) as server:
            plan = Plan(
                port=server.port,
                keep_alive=keep_alive,
                seed=seed,
                kinds=kinds(scenario.timeout),
                phases=scenario.phases,
                control=str(control),
            )
            samples = _load(server, plan, folder)
            _drain(handled)
            run = Run.collect(scenario, plan, folder, handled, samples)
    return run.figures(name, key, round, profile)


def _load(server: Server, plan: Plan, folder: Path) -> list[Sample]:
    """Run the generator in a process of its own, watch the server meanwhile."""
    plan.save(folder / "plan.json")
    command = [sys.executable, "-m", "benchmarks.overload.loadgen"]
    generator = subprocess.Popen([*command, str(folder / "plan.json"), str(folder)], cwd=ROOT)
    samples = []
    deadline = time.monotonic() + plan.seconds + _PATIENCE
    try:
        while generator.poll() is None and time.monotonic() < deadline:
            samples.append(Sample(time.monotonic(), *server.cost()))
            time.sleep(_SAMPLING_SECONDS)
        if generator.poll() != 0:
            raise RuntimeError("the load generator failed or did not end")
    finally:
        if generator.poll() is None:
            generator.kill()
        generator.wait(STOP_SECONDS)
    return samples


def _drain(handled: Path) -> None:
    """Let runs for clients that have left end: they count as wasted."""
    deadline = time.monotonic() + _DRAINING_SECONDS
    size = -1
    while size != (size := handled.stat().st_size) and time.monotonic() < deadline:
        time.sleep(_QUIET_SECONDS)
