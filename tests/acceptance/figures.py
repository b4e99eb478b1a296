"""What the records of a run say about what was promised."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.overload.figures import percentile
from benchmarks.overload.records import Outcome, Record
from benchmarks.overload.summary import Handled, Run

__all__ = ["latency", "share", "started_for_nobody"]


def share(records: Sequence[Record], outcome: Outcome = Outcome.SERVED) -> float:
    """Part of the requests that ended so."""
    return sum(record.outcome == outcome for record in records) / len(records)


def latency(records: Sequence[Record], part: float) -> float:
    """
    Percentile of the time until a client had its answer, in milliseconds.

    One that gave up or was broken off counts with the time it waited: leaving it out would
    make a server look quick that does not answer.
    """
    value = percentile((1000 * record.seconds for record in records), part)
    assert value is not None, "nothing was asked"
    return value


def started_for_nobody(run: Run) -> list[Handled]:
    """Runs of the handler that began after their client had closed its connection."""
    left = {
        id: record.ended
        for id, record in enumerate(run.records)
        if record.outcome is Outcome.GAVE_UP
    }
    return [one for one in run.handled if one.began > left.get(one.id, one.began)]
