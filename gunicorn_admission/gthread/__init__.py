"""
Admission inside gunicorn's threaded worker.

``install.py`` is where to start; ``executor.py`` is the waiting room that takes the place of
the worker's thread pool, ``gate.py`` the end of the way in WSGI. ``capabilities.py`` lists
every private part of gunicorn that is used, and since when it exists.
"""

from __future__ import annotations

from gunicorn_admission.gthread.install import Installed, finish_request, install

__all__ = ["Installed", "finish_request", "install"]
