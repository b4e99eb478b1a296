"""
From an access log to settings: what would have become of this traffic under each of them?

``access_log.py`` reads what gunicorn wrote (``log_format.py``, ``guess.py``), ``windows.py``,
``fit.py`` and ``capacity.py`` find arrivals, service times and capacity in it, ``replay.py``
makes a scenario of that, ``candidates.py`` says what is tried, ``advise.py`` tries it and chooses,
``certainty.py`` says how much that is worth.
"""

from __future__ import annotations
