"""The figures of one run: what the records of clients and handlers say, in one line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.processes import ROOT

__all__ = ["OUT", "Figures", "append", "load", "percentile"]

#: Where ``run`` writes and ``table`` and ``goals`` read unless told otherwise.
OUT = ROOT / "benchmarks" / "out" / "overload.jsonl"


@dataclass(frozen=True, kw_only=True)
class Figures:
    """
    One contender in one scenario, once. Shares are of what was offered, milliseconds count
    from the scheduled time, and all is of the scenario's main phase unless said otherwise.

    Attributes:
        contender, scenario, round, seed, connections, profile: What was run; ``connections``
            is ``new`` or ``kept``.
        offered: Requests a second.
        goodput: Served over what the database can do in that time; of A and AB over what
            was offered; ``None`` where it can do nothing.
        served, high, default, low: Share served in time: of all, and by priority.
        answered: Share served or refused in time.
        p50, p99, high_p99: Latency of what was served.
        refused: Refusals a second.
        refused_p50, refused_p99: Latency of refusals.
        gave_up, broken, failed: Clients that got no answer in time, a broken connection,
            another status.
        health, health_p99: Share of health checks answered within 1 s, and their latency.
        served_after: As ``served``, in the phase that follows.
        recovery: Seconds from the end of the main phase until 90 % are served, at no more
            than three times the latency of the warm-up; ``None`` if that did not happen.
        runs: Of the handler, in the whole run.
        wasted: Share of them whose client had gone before they ended.
        running: Handlers running as the main phase ended.
        retry_after: Share of all refusals that said when to come back; ``None`` without any.
        cpu_ms: CPU time of the whole server, a request offered; ``None`` if the phase was too
            short to tell.
        memory_mb: Most resident memory of the whole server.
        late_p99: How late the generator was; above 10 ms the run says nothing.
        load: Load average of the machine at the end.
    """

    contender: str
    scenario: str
    round: int
    seed: int
    connections: str
    profile: str
    offered: float
    goodput: float | None
    served: float
    high: float
    default: float
    low: float
    answered: float
    p50: float | None
    p99: float | None
    high_p99: float | None
    refused: float
    refused_p50: float | None
    refused_p99: float | None
    gave_up: int
    broken: int
    failed: int
    health: float
    health_p99: float | None
    served_after: float | None
    recovery: float | None
    runs: int
    wasted: float
    running: int
    retry_after: float | None
    cpu_ms: float | None
    memory_mb: float
    late_p99: float
    load: float


def percentile(values: Iterable[float], part: float) -> float | None:
    """Interpolated; ``None`` without values."""
    ordered = sorted(values)
    if not ordered:
        return None
    place = (len(ordered) - 1) * part
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def append(path: Path, figures: Figures) -> None:
    """Add one line of JSON."""
    with path.open("a") as file:
        file.write(json.dumps(asdict(figures)) + "\n")


def load(paths: Sequence[Path]) -> list[Figures]:
    """Read lines back."""
    return [
        Figures(**json.loads(line))
        for path in paths
        for line in path.read_text().splitlines()
        if line.strip()
    ]
