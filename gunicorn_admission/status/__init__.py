"""
What a server says of itself over HTTP, below ``status_path``.

``probes.py`` answers liveness and readiness to anybody, and figures to this machine only.
"""

from __future__ import annotations

from gunicorn_admission.status.probes import Aside, Probes
from gunicorn_admission.status.readiness import Readiness

__all__ = ["Aside", "Probes", "Readiness"]
