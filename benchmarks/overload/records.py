"""What the generator writes down for each request, and about itself."""

from __future__ import annotations

import enum
import json
import struct
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

__all__ = ["HANDLED", "Generated", "Outcome", "Record", "read", "write"]

#: What the application writes for a run of its handler: id, start and end.
HANDLED = struct.Struct("<Idd")

_RECORD = struct.Struct("<BBddd")


class Outcome(enum.IntEnum):
    """How a request ended for its client."""

    SERVED = 0  # 2xx in time
    SHED = 1  # 503 or 429 in time
    FAILED = 2  # another status
    GAVE_UP = 3  # the client waited as long as it does, and disconnected
    BROKEN = 4  # reset, refused or closed without an answer


class Record(NamedTuple):
    """One request; its id is its place. Times are seconds of the monotonic clock."""

    kind: int
    outcome: Outcome
    due: float
    sent: float
    ended: float

    @property
    def seconds(self) -> float:
        """From when it was due, so that a late generator hides nothing."""
        return self.ended - self.due


@dataclass(frozen=True, kw_only=True)
class Generated:
    """
    The generator about its run.

    Attributes:
        began: Start of the first phase on the monotonic clock.
        cpu: Cores that it used, on average.
        shed, shed_with_retry_after: Refusals, and those that said when to come back.
        stale: Kept connections that the server had closed; such a request is sent again.
    """

    began: float
    cpu: float
    shed: int
    shed_with_retry_after: int
    stale: int


def write(folder: Path, records: Iterable[Record], generated: Generated) -> None:
    """Write both into a folder."""
    (folder / "requests").write_bytes(b"".join(_RECORD.pack(*record) for record in records))
    (folder / "generated.json").write_text(json.dumps(asdict(generated)))


def read(folder: Path) -> tuple[list[Record], Generated]:
    """Read both back."""
    told = _RECORD.iter_unpack((folder / "requests").read_bytes())
    records = [Record(kind, Outcome(outcome), *times) for kind, outcome, *times in told]
    return records, Generated(**json.loads((folder / "generated.json").read_text()))
