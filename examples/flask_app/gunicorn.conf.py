"""gunicorn with admission in front of its threads; the application needs no change for it."""

from __future__ import annotations

from gunicorn_admission.hooks import install

bind = "127.0.0.1:8000"
worker_class = "gthread"
threads = 16

install(globals())
