"""What a process holds: descriptors, threads, memory (Linux: read from ``/proc``)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

__all__ = ["Holding", "grown", "holding"]


class Holding(NamedTuple):
    """
    One look at a process.

    Attributes:
        descriptors, threads: How many.
        memory: Resident, in MiB.
    """

    descriptors: int
    threads: int
    memory: float


def holding(pid: int) -> Holding | None:
    """Look at a process; ``None`` when it is gone."""
    process = Path(f"/proc/{pid}")
    try:
        pages = int((process / "statm").read_text().split()[1])
        descriptors, threads = (len(os.listdir(process / name)) for name in ("fd", "task"))
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Holding(descriptors, threads, pages * os.sysconf("SC_PAGE_SIZE") / 2**20)


def grown(samples: list[Holding]) -> list[str]:
    """
    Say what the last third of the samples held more of than the second, beyond chance.

    The first third warms up. Descriptors and threads follow the load, so the least of each
    third is compared; memory may creep by a tenth while the allocator settles.
    """
    third = len(samples) // 3
    before, after = samples[third : 2 * third], samples[2 * third :]
    found = []
    for name, factor, some in (("descriptors", 1.0, 2), ("threads", 1.0, 0), ("memory", 1.1, 3)):
        first = min(getattr(one, name) for one in before)
        last = min(getattr(one, name) for one in after)
        if last > first * factor + some:
            found.append(f"{name} grew from {first:g} to {last:g}")
    return found
