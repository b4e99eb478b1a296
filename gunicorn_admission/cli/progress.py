"""A bar while much is worked off: on a terminal only, and on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["bar"]


@contextmanager
def bar(title: str, total: int, *, wanted: bool = True) -> Iterator[Callable[[], None]]:
    """
    Show a bar while the block runs.

    Args:
        title: What is going on.
        total: How often what is yielded will be called.
        wanted: Whether it takes long enough to be worth one.
    """
    console = Console(stderr=True)
    if not (wanted and console.is_terminal):
        yield lambda: None
        return
    columns = TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda: progress.advance(task)
