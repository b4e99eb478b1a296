"""From the records of a run to its figures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.overload.figures import Figures, percentile
from benchmarks.overload.plan import Plan
from benchmarks.overload.records import HANDLED, Generated, Outcome, Record, read
from benchmarks.overload.scenarios import CAPACITY, HEALTH, Scenario

__all__ = ["Run", "Sample", "recovery"]

_BIN = 0.5
_BINS = 3
_SHARE = 0.9


class Sample(NamedTuple):
    """What the server had used at a moment of the monotonic clock."""

    at: float
    cpu_seconds: float
    memory_bytes: int


class Handled(NamedTuple):
    """One run of the handler."""

    id: int
    began: float
    ended: float


@dataclass(frozen=True, kw_only=True)
class Run:
    """Everything that was written down during a run."""

    scenario: Scenario
    plan: Plan
    records: list[Record]
    generated: Generated
    handled: list[Handled]
    samples: list[Sample]

    @classmethod
    def collect(
        cls, scenario: Scenario, plan: Plan, folder: Path, handled: Path, samples: list[Sample]
    ) -> Run:
        """Read what the generator and the application have left."""
        records, generated = read(folder)
        data = handled.read_bytes()
        whole = len(data) - len(data) % HANDLED.size
        runs = [Handled(*values) for values in HANDLED.iter_unpack(data[:whole])]
        return cls(
            scenario=scenario,
            plan=plan,
            records=records,
            generated=generated,
            handled=runs,
            samples=samples,
        )

    def span(self, name: str) -> tuple[float, float]:
        """Begin and end of a phase on the monotonic clock."""
        at = [phase.name for phase in self.plan.phases].index(name)
        begin = self.generated.began + self.plan.starts()[at]
        return begin, begin + self.plan.phases[at].seconds

    def asked(self, phase: str, kind: str | None = None) -> list[Record]:
        """Requests due in a phase: of a kind, or the whole mix without the health checks."""
        begin, end = self.span(phase)
        return [
            record
            for record in self.records
            if begin <= record.due < end and self._is(record, kind)
        ]

    def _is(self, record: Record, kind: str | None) -> bool:
        name = self.plan.kinds[record.kind].name
        return name != HEALTH if kind is None else name == kind

    def figures(self, contender: str, scenario: str, round: int, profile: str) -> Figures:
        """All figures."""
        main = self.scenario.main
        begin, end = self.span(main)
        asked = self.asked(main)
        latencies = _latencies(asked, Outcome.SERVED)
        refusals = _latencies(asked, Outcome.SHED)
        health = self.asked(main, HEALTH)
        after = self.asked("after") if self._has_after else []
        shed = self.generated.shed
        return Figures(
            contender=contender,
            scenario=scenario,
            round=round,
            seed=self.plan.seed,
            connections="kept" if self.plan.keep_alive else "new",
            profile=profile,
            offered=len(asked) / (end - begin),
            goodput=self._goodput(asked),
            served=_share(asked, Outcome.SERVED),
            high=_share(self.asked(main, "high"), Outcome.SERVED),
            default=_share(self.asked(main, "default"), Outcome.SERVED),
            low=_share(self.asked(main, "low"), Outcome.SERVED),
            answered=_share(asked, Outcome.SERVED, Outcome.SHED),
            p50=percentile(latencies, 0.5),
            p99=percentile(latencies, 0.99),
            high_p99=percentile(_latencies(self.asked(main, "high"), Outcome.SERVED), 0.99),
            refused=len(refusals) / (end - begin),
            refused_p50=percentile(refusals, 0.5),
            refused_p99=percentile(refusals, 0.99),
            gave_up=_count(asked, Outcome.GAVE_UP),
            broken=_count(self.records, Outcome.BROKEN),
            failed=_count(asked, Outcome.FAILED),
            health=_share(health, Outcome.SERVED),
            health_p99=percentile(_latencies(health, Outcome.SERVED), 0.99),
            served_after=_share(after, Outcome.SERVED) if after else None,
            recovery=recovery(self) if after else None,
            runs=len(self.handled),
            wasted=self._wasted(),
            running=sum(run.began < end < run.ended for run in self.handled),
            retry_after=self.generated.shed_with_retry_after / shed if shed else None,
            cpu_ms=self._cpu_ms(begin, end, len(asked)),
            memory_mb=max(sample.memory_bytes for sample in self.samples) / 1e6,
            late_p99=percentile([1000 * (r.sent - r.due) for r in self.records], 0.99) or 0.0,
            load=os.getloadavg()[0],
        )

    @property
    def _has_after(self) -> bool:
        return any(phase.name == "after" for phase in self.plan.phases)

    def _goodput(self, asked: Sequence[Record]) -> float | None:
        if not self._has_after:
            return _share(asked, Outcome.SERVED)
        slower = self.scenario.slower
        if slower is None:
            return None
        begin, end = self.span(self.scenario.main)
        could = min(CAPACITY / slower * (end - begin), len(asked))
        done = sum(
            record.outcome == Outcome.SERVED and begin <= record.ended < end
            for record in self.records
            if self._is(record, None)
        )
        return done / could if could else None

    def _wasted(self) -> float:
        """Share of handler runs that ended after their client had gone."""
        if not self.handled:
            return 0.0
        gone = {
            id: record.ended
            for id, record in enumerate(self.records)
            if record.outcome in (Outcome.GAVE_UP, Outcome.BROKEN)
        }
        return sum(run.ended >= gone.get(run.id, run.ended + 1) for run in self.handled) / len(
            self.handled
        )

    def _cpu_ms(self, begin: float, end: float, requests: int) -> float | None:
        """CPU time a request between two moments, as far as the samples tell."""
        inside = [sample for sample in self.samples if begin <= sample.at <= end]
        if len(inside) < 2 or not requests:
            return None
        used = inside[-1].cpu_seconds - inside[0].cpu_seconds
        return used / (inside[-1].at - inside[0].at) * (end - begin) / requests * 1000


def recovery(run: Run) -> float | None:
    """
    Seconds from the end of the main phase until the server is well again.

    That is the first of three bins of 0.5 s in a row in each of which 90 % are served, nine
    tenths of these no slower than three times the warm-up (or 100 ms).
    """
    warm = percentile(_latencies(run.asked("warm"), Outcome.SERVED), 0.9)
    bound = max(100.0, 3 * (warm or 0.0))
    begin, end = run.span("after")
    bins: list[list[Record]] = [[] for _ in range(int((end - begin) / _BIN + 1e-9))]
    for record in run.asked("after"):
        at = int((record.due - begin) / _BIN)
        if at < len(bins):
            bins[at].append(record)

    def well(records: list[Record]) -> bool:
        return not records or (
            _share(records, Outcome.SERVED) >= _SHARE
            and (percentile(_latencies(records, Outcome.SERVED), 0.9) or 0.0) <= bound
        )

    good = [well(records) for records in bins]
    for at in range(len(good) - _BINS + 1):
        if all(good[at : at + _BINS]):
            return at * _BIN
    return None


def _count(records: Sequence[Record], *outcomes: Outcome) -> int:
    return sum(record.outcome in outcomes for record in records)


def _share(records: Sequence[Record], *outcomes: Outcome) -> float:
    return _count(records, *outcomes) / max(1, len(records))


def _latencies(records: Sequence[Record], outcome: Outcome) -> list[float]:
    """In milliseconds."""
    return [1000 * record.seconds for record in records if record.outcome == outcome]
