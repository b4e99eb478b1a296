"""
The built-in scenarios, as data.

``yardstick.py`` and ``overload.py`` are the two that everything is measured by; the others
are known hard cases. ``find`` and ``every`` are in ``catalogue.py``.
"""

from __future__ import annotations

from gunicorn_admission.sim.library.catalogue import every, find

__all__ = ["every", "find"]
