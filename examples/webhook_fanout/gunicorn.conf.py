"""Four threads with admission in front of them; the sources say how urgent their events are."""

from __future__ import annotations

from gunicorn_admission.hooks import install

worker_class = "gthread"
threads = 4

install(globals(), routes={"/reports": "low"})
