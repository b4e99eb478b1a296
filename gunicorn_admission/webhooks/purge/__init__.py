"""
Remove what is old enough: events that everybody is done with, and later the records of them.

Start at ``purge.py``, which goes through the tables; ``age.py`` says how old is old enough.
"""

from __future__ import annotations

from gunicorn_admission.webhooks.purge.age import Age
from gunicorn_admission.webhooks.purge.purge import Purged, purge

__all__ = ["Age", "Purged", "purge"]
