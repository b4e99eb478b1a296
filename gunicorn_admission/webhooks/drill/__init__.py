"""
The failure drill: does one consumer's trouble stay its own, and does the right page fire?

Start at ``checks.py`` (what is tried, in order). ``stage.py`` sets it up: a sender, the real
intake, three consumers in a real worker, and what they did.
"""

from __future__ import annotations

from gunicorn_admission.webhooks.drill.run import Check, Report, run_drill

__all__ = ["Check", "Report", "run_drill"]
