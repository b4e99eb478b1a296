"""
One page of memory for all workers of a node: who they are, what they hold, how they are.

Start with ``page.py``, the layout. ``master.py`` is the master's part and hands out places,
``row.py`` is a worker's and writes them, ``slots.py`` is the bound that workers share, and
``reader.py`` reads it all. Knows nothing of gunicorn but attributes of its workers.
"""

from __future__ import annotations

from gunicorn_admission.scoreboard.master import Board, board
from gunicorn_admission.scoreboard.page import Page
from gunicorn_admission.scoreboard.reader import WorkerFigures, read
from gunicorn_admission.scoreboard.row import Row
from gunicorn_admission.scoreboard.slots import NodeSlots, is_starved

__all__ = ["Board", "NodeSlots", "Page", "Row", "WorkerFigures", "board", "is_starved", "read"]
