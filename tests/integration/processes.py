"""What the kernel knows about a server's processes (Linux: read from ``/proc``)."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

__all__ = ["children", "kill_group", "wait_gone"]


def _stat(pid: int) -> tuple[str, int]:
    """State letter and process group of a process; ``("X", 0)`` when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "X", 0
    state, _parent, process_group = text.rpartition(")")[2].split()[:3]
    return state, int(process_group)


def children(pid: int) -> list[int]:
    """Living children of a process, oldest first."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [child for child in map(int, text.split()) if _stat(child)[0] not in "XZ"]


def _group(leader: int) -> list[int]:
    """Living members of a process group; a dead one that nobody reaped does not count."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    members = [(pid, *_stat(pid)) for pid in pids]
    return [pid for pid, state, of in members if of == leader and state not in "XZ"]


def wait_gone(leader: int, timeout: float) -> list[int]:
    """Wait until a process group has no living member; those that are left after all."""
    deadline = time.monotonic() + timeout
    while (left := _group(leader)) and time.monotonic() < deadline:
        time.sleep(0.005)
    return left


def kill_group(leader: int) -> None:
    """End what is left of a group that the caller started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
