"""
Admission control for threaded gunicorn: admit, queue briefly, or refuse at once.

Most users need one line at the end of their ``gunicorn.conf.py``::

    from gunicorn_admission.hooks import install; install(globals())

Start reading at ``hooks.py`` (how it gets into gunicorn), ``gthread`` (what it does in a
worker), ``limiter`` (who may run) and ``core`` (why). The names below are the public ones;
each is imported when it is first used, so that ``import gunicorn_admission`` costs little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gunicorn_admission.core.statistics import Statistics
    from gunicorn_admission.core.types import Mode, Outcome, Priority, Reason
    from gunicorn_admission.errors import AdmissionError, ConfigError, Rejected
    from gunicorn_admission.hooks import install
    from gunicorn_admission.limiter import Limiter, Permit
    from gunicorn_admission.settings import Settings
    from gunicorn_admission.worker import AdmissionWorker
    from gunicorn_admission.wsgi import AdmissionMiddleware

__all__ = [
    "AdmissionError",
    "AdmissionMiddleware",
    "AdmissionWorker",
    "ConfigError",
    "Limiter",
    "Mode",
    "Outcome",
    "Permit",
    "Priority",
    "Reason",
    "Rejected",
    "Settings",
    "Statistics",
    "install",
]

_HOMES: Final = {
    "AdmissionError": "errors",
    "AdmissionMiddleware": "wsgi",
    "AdmissionWorker": "worker",
    "ConfigError": "errors",
    "Limiter": "limiter",
    "Mode": "core.types",
    "Outcome": "core.types",
    "Permit": "limiter",
    "Priority": "core.types",
    "Reason": "core.types",
    "Rejected": "errors",
    "Settings": "settings",
    "Statistics": "core.statistics",
    "install": "hooks",
}


def __getattr__(name: str) -> object:
    """Import a public name from its module on first use (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value  # the next use does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
