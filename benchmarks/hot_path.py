"""
The limiter alone: what it adds to a request, as ratios to the primitives it replaces.

    python -m benchmarks.hot_path [--rounds 7] [--seconds 0.2] [--json FILE]
"""

from __future__ import annotations

from functools import partial

from benchmarks.comparison import Comparison, command, interleaved
from benchmarks.contention import LOOPS, nanoseconds, refusals
from benchmarks.footprint import footprint
from benchmarks.hand_off import SLOTS, HandOff, hand_through

__all__ = ["measure"]

THREADS = (1, 16, 64)
WAITERS = (4, 16, 64)
OURS = ("acquire + release", "offer + finish of a ticket")


def measure(rounds: int, seconds: float) -> list[Comparison]:
    """Everything here; each figure takes ``seconds``, each ratio comes ``rounds`` times."""
    return [
        *(one for threads in THREADS for one in _pairs(threads, rounds, seconds)),
        _refusal(rounds, seconds),
        *(one for waiters in WAITERS for one in _hand_off(waiters, rounds)),
        *footprint(),
    ]


def _pairs(threads: int, rounds: int, seconds: float) -> list[Comparison]:
    figures = interleaved(
        {name: partial(nanoseconds, make(), threads, seconds) for name, make in LOOPS.items()},
        rounds,
    )
    where = "alone" if threads == 1 else f"{threads} threads"
    return [
        Comparison(
            what=f"{ours}, {where}",
            unit="ns",
            ours=figures[ours],
            peer=peer,
            theirs=figures[peer],
        )
        for ours in OURS
        for peer in LOOPS
        if peer not in OURS
    ]


def _refusal(rounds: int, seconds: float) -> Comparison:
    ours, theirs = refusals()
    figures = interleaved(
        {
            "ours": partial(nanoseconds, ours, 1, seconds),
            "theirs": partial(nanoseconds, theirs, 1, seconds),
        },
        rounds,
    )
    return Comparison(
        what="refusal, alone",
        unit="ns",
        ours=figures["ours"],
        peer="exhausted BoundedSemaphore",
        theirs=figures["theirs"],
    )


def _hand_off(waiters: int, rounds: int) -> list[Comparison]:
    figures: dict[str, list[HandOff]] = {name: [] for name in SLOTS}

    def once(name: str) -> float:
        figures[name].append(hand_through(SLOTS[name], waiters))
        return 0.0

    interleaved({name: partial(once, name) for name in SLOTS}, rounds)
    return [
        Comparison(
            what=f"hand-off, {waiters} waiters, {what}",
            unit="us",
            ours=[one[column] for one in figures["ours"]],
            peer=peer,
            theirs=[one[column] for one in figures[peer]],
        )
        for column, what in enumerate(("until it runs", "CPU"))
        for peer in SLOTS
        if peer != "ours"
    ]


def main() -> None:
    command(__doc__, measure)


if __name__ == "__main__":
    main()
