"""How far a long verb has come: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

from typing import Self

from rich.console import Console
from rich.progress import Progress as Bar

__all__ = ["Progress"]


class Progress:
    """
    A context manager that is called with how much is done, and of how much.

    Args:
        what: What is counted.
    """

    def __init__(self, what: str) -> None:
        console = Console(stderr=True)
        self._bar = Bar(console=console, disable=not console.is_terminal, transient=True)
        self._task = self._bar.add_task(what, total=None)

    def __call__(self, done: int, total: int | None = None) -> None:
        self._bar.update(self._task, completed=done, total=total)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
