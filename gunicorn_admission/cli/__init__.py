"""
The command ``gunicorn-admission``: one verb a file, a table for people, ``--json`` for programs.

Needs the extra ``cli``. Start at ``__main__.py``. Exit codes: 0 all is well, 1 something
was found, 2 wrong usage.
"""

from __future__ import annotations
