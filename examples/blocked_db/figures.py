"""From what a run wrote to the figures that the table and the plot show."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from load import Record, read
from scenario import HEALTH, Phase

BIN = 0.5  # seconds
RECOVERED = 0.9  # share served, in three bins in a row


class Run(NamedTuple):
    """All that was seen of one server; times are seconds since the first phase began."""

    title: str
    plan: tuple[Phase, ...]
    records: list[Record]
    starts: dict[int, float]  # request id -> when its handler began

    @classmethod
    def load(cls, title: str, plan: tuple[Phase, ...], folder: Path) -> Run:
        """Read what the generator and the application wrote into ``folder``."""
        with (folder / "requests").open() as lines:
            zero = float(next(lines))
            records = [read(line) for line in lines]
        journal = struct.iter_unpack("<Id", (folder / "handlers").read_bytes())
        return cls(title, plan, records, {id: start - zero for id, start in journal})

    def asked(self, kind: str | None = None, phase: int | None = None) -> list[Record]:
        """Records of a kind (None: of all but health) that were due in a phase (None: in all)."""
        begin, end = (0.0, float("inf")) if phase is None else self.plan[phase][1:3]
        return [
            record
            for record in self.records
            if (record.kind == kind or (kind is None and record.kind != HEALTH.name))
            and begin <= record.scheduled < end
        ]

    def wasted(self) -> int:
        """Handler runs that began when their client had left already."""
        gone = {record.id: record.ended for record in self.records if record.outcome == "gave_up"}
        return sum(start >= gone.get(id, float("inf")) for id, start in self.starts.items())

    def recovery(self, phase: int) -> float | None:
        """Seconds from the start of a phase until 90% are served and stay so; None for never."""
        shares = [share for _, share in served_over_time(self.asked(phase=phase))]
        for index in range(len(shares) - 2):
            if all(share >= RECOVERED for share in shares[index : index + 3]):
                return index * BIN
        return None

    def lateness(self) -> float:
        """99th percentile of how late the generator itself was; seconds."""
        return percentile([record.sent - record.scheduled for record in self.records], 0.99)


def count(records: Iterable[Record], outcome: str) -> int:
    """How many ended so."""
    return sum(record.outcome == outcome for record in records)


def share(records: Sequence[Record], outcome: str = "served") -> float:
    """Which part ended so; 0 of none."""
    return count(records, outcome) / len(records) if records else 0.0


def latencies(records: Iterable[Record], outcome: str = "served") -> list[float]:
    """Seconds from the scheduled arrival to the end."""
    return [record.ended - record.scheduled for record in records if record.outcome == outcome]


def percentile(values: Sequence[float], part: float) -> float:
    """The value below which ``part`` of the values lie; nan of none."""
    return sorted(values)[int(part * (len(values) - 1))] if values else float("nan")


def served_over_time(records: Iterable[Record]) -> list[tuple[float, float]]:
    """Middle of each bin of arrival times, and the share of it that was served."""
    filled: dict[int, list[Record]] = {}
    for record in records:
        filled.setdefault(int(record.scheduled / BIN), []).append(record)
    return [((index + 0.5) * BIN, share(filled[index])) for index in sorted(filled)]
