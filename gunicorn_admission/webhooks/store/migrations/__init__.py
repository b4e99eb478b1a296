"""
Steps from one state of the tables to the next, run in order by ``db upgrade``.

A file is named by its number and what it adds; its number is the revision that a database notes.
A step that has been released is not edited any more: what has to change becomes the next step.
"""

from __future__ import annotations

__all__: list[str] = []
