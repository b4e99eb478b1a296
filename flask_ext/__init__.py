"""
Admission control for Flask.

Four lines protect an application::

    from flask_ext import Admission

    admission = Admission()
    admission.init_app(app)

Start reading in ``extension.py``. ``decorators.py`` leaves marks on views, ``walk.py`` makes
route rules of them, ``guard.py`` stands in front of the application, ``gate.py`` decides where
the server does not, ``dependency.py`` bounds what views call. ``webhooks.py`` is apart from all
that: it takes webhooks in, and needs the extra ``sql``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from flask_ext.dependency import Dependency
from flask_ext.extension import Admission, AppStatistics
from flask_ext.signals import dependency_rejected, request_shed

if TYPE_CHECKING:
    from flask_ext.webhooks import Webhooks

__all__ = [
    "PROVIDED_BY",
    "Admission",
    "AppStatistics",
    "Dependency",
    "Webhooks",
    "dependency_rejected",
    "request_shed",
]

PROVIDED_BY: Final = "gunicorn-admission"
"""Tells this package from others that are called ``flask_ext`` too."""


def __getattr__(name: str) -> Any:
    """Import ``Webhooks`` on first use: only it needs a database (PEP 562)."""
    if name != "Webhooks":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from flask_ext.webhooks import Webhooks

    globals()[name] = Webhooks
    return Webhooks
