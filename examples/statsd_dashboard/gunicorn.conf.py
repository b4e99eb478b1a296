"""gunicorn's own statsd option is all that admission needs to send its numbers too."""

from __future__ import annotations

import os

from gunicorn_admission.hooks import install

bind = "127.0.0.1:8000"
worker_class = "gthread"
threads = 8
statsd_host = os.environ.get("STATSD_HOST", "127.0.0.1:8125")

install(globals(), routes={"/payments": "high", "/reports": "low"})
