"""What the load generator is told: which requests, when, and how long clients wait."""

from __future__ import annotations

import json
import math
import random
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

__all__ = ["DATABASE_STATES", "Arrival", "Kind", "Phase", "Plan", "arrivals"]

#: By the byte in the control file that the application looks at.
DATABASE_STATES = ("normal", "slow", "hang")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """
    Requests of one kind.

    Attributes:
        name: Heads its figures.
        path: What is asked for; by POST with a signed body, unless it has a ``rate``.
        share: Part of the mix.
        rate: Instead of a share: so many GETs a second, evenly, whatever the load is.
        timeout: When its client gives up, in seconds from the scheduled time.
    """

    name: str
    path: str
    share: float = 0.0
    rate: float = 0.0
    timeout: float


@dataclass(frozen=True, kw_only=True)
class Phase:
    """
    A stretch of time.

    Attributes:
        name: Heads its figures.
        seconds: How long it is.
        rate: Requests a second; they arrive by a Poisson process.
        burst: So many arrive at once; the bursts are a Poisson process then.
        database: One of ``DATABASE_STATES``.
    """

    name: str
    seconds: float
    rate: float
    burst: int = 1
    database: str = "normal"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """
    A whole load; the same plan gives the same requests at the same times.

    Attributes:
        port: On loopback.
        keep_alive: Reuse connections; else a new one for each request.
        seed: Of everything random.
        kinds, phases: See there.
        control: File whose first byte is the state of the database.
        body: Smallest and largest body in bytes; sizes are log-uniform between.
    """

    port: int
    keep_alive: bool
    seed: int
    kinds: tuple[Kind, ...]
    phases: tuple[Phase, ...]
    control: str
    body: tuple[int, int] = (1024, 51200)

    @property
    def seconds(self) -> float:
        """From the first phase to the end of the last."""
        return sum(phase.seconds for phase in self.phases)

    def starts(self) -> list[float]:
        """When each phase begins, in seconds from the start of the first."""
        starts, at = [], 0.0
        for phase in self.phases:
            starts.append(at)
            at += phase.seconds
        return starts

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def load(cls, path: Path) -> Plan:
        """Read it back."""
        told = json.loads(path.read_text())
        told["kinds"] = tuple(Kind(**kind) for kind in told["kinds"])
        told["phases"] = tuple(Phase(**phase) for phase in told["phases"])
        told["body"] = tuple(told["body"])
        return cls(**told)


class Arrival(NamedTuple):
    """When a request is due, in seconds from the start, and its place in ``Plan.kinds``."""

    at: float
    kind: int


def arrivals(plan: Plan) -> list[Arrival]:
    """All requests of a plan in order of time; the index is the request's id."""
    chance = random.Random(plan.seed)
    shares = [kind.share for kind in plan.kinds]
    order = range(len(shares))
    due = []
    for start, phase in zip(plan.starts(), plan.phases, strict=True):
        groups = phase.rate / phase.burst
        at = start + chance.expovariate(groups)
        while at < start + phase.seconds:
            due += [Arrival(at, kind) for kind in chance.choices(order, shares, k=phase.burst)]
            at += chance.expovariate(groups)
    for index, kind in enumerate(plan.kinds):
        if kind.rate:
            ticks = range(1, math.ceil(plan.seconds * kind.rate))
            due += [Arrival(tick / kind.rate, index) for tick in ticks]
    return sorted(due)
