"""
Stands in for ``gunicorn_admission.gthread`` where only the hooks are under test.

A configuration puts it there: ``sys.modules["gunicorn_admission.gthread"] = recorder``.
It records what the hooks call, next to the records of the test app.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gunicorn_admission.settings import Settings
from tests.integration.apps import record

__all__ = ["finish_request", "install"]


def install(worker: Any, settings: Settings) -> SimpleNamespace:
    """Record what a worker gets; the object that it returns records its ``stop``."""
    record(
        "install",
        {"PATH_INFO": ""},
        limit=settings.limit,
        max_queue=settings.max_queue,
        threads=worker.cfg.threads,
    )
    return SimpleNamespace(mode="gate", stop=lambda: record("stop", {"PATH_INFO": ""}))


def finish_request(worker: Any, environ: dict[str, Any]) -> None:
    """Record the end of a request; the environ is empty when none could be made."""
    record("finish", {"PATH_INFO": environ.get("PATH_INFO", "")})
