"""How tables reach the terminal, or the file that standard output was sent to."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

__all__ = ["show"]

_WIDE = 200


def show(table: Table) -> None:
    """Print a table; what is not a terminal gets whole lines, however long."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDE)
    console.print(table)
