"""
Threads around the core: the lock, the waiting, the waking.

``threaded.py`` is the limiter itself and the place to start reading; ``watchdog.py`` does
what is due by time, ``permit.py`` is what a caller holds. May import ``settings``, ``core``
and ``errors`` only.
"""

from __future__ import annotations

from gunicorn_admission.limiter.observer import Observer
from gunicorn_admission.limiter.permit import Permit
from gunicorn_admission.limiter.registry import Registry
from gunicorn_admission.limiter.threaded import Limiter

__all__ = ["Limiter", "Observer", "Permit", "Registry"]
