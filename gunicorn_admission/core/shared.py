"""A bound that other processes have a part in; what the controller asks of it."""

from __future__ import annotations

from typing import Protocol

__all__ = ["SharedBound"]


class SharedBound(Protocol):
    """
    Slots that are counted beyond this limiter, such as for all workers of a node.

    It is called under the limiter's lock, once a slot is given or taken back, so it must
    neither block nor let go of the interpreter: memory only, no system call.
    """

    def take(self, name: str, now_ns: int) -> bool:
        """Count one request of that class, if it has room; never beyond the bound."""

    def has_room(self, name: str, now_ns: int) -> bool:
        """Whether :meth:`take` would probably succeed; leaves word that somebody asks."""

    def force(self, name: str) -> None:
        """Count one request of that class, whatever the bound says (nothing is refused)."""

    def give(self, name: str) -> None:
        """Take back what :meth:`take` or :meth:`force` has counted."""

    def move(self, old: str, new: str, now_ns: int, *, force: bool) -> bool:
        """Count a request under another class; without ``force`` only if that has room."""

    def bound(self) -> int:
        """The bound over all classes; 0 for none."""

    def total(self) -> int:
        """What all hold together now."""
