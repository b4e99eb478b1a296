"""
Concurrency limits: how many requests may run at once, learnt from those that finished.

One algorithm a file; ``base.py`` says what each must offer, so start reading there.
``FixedLimit``, ``AIMDLimit``, ``VegasLimit`` and ``Gradient2Limit`` are published
algorithms, kept exact so that results can be compared; ``WindowedLimit`` feeds any of
them one sample a time window. ``AdaptiveLimit`` is ours, and the default.
"""

from __future__ import annotations

from gunicorn_admission.core.limits.adaptive import AdaptiveLimit
from gunicorn_admission.core.limits.aimd import AIMDLimit
from gunicorn_admission.core.limits.base import BoundedLimit, Limit
from gunicorn_admission.core.limits.fixed import FixedLimit
from gunicorn_admission.core.limits.gradient2 import Gradient2Limit
from gunicorn_admission.core.limits.vegas import VegasLimit
from gunicorn_admission.core.limits.windowed import WindowedLimit

__all__ = [
    "AIMDLimit",
    "AdaptiveLimit",
    "BoundedLimit",
    "FixedLimit",
    "Gradient2Limit",
    "Limit",
    "VegasLimit",
    "WindowedLimit",
]
