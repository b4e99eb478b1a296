"""
What tests of applications need: a clock that is moved by hand.

Public API. Start reading at ``clock.py``.
"""

from __future__ import annotations

from gunicorn_admission.testing.clock import FakeClock

__all__ = ["FakeClock"]
