"""
Admission control for Flask.

Four lines protect an application::

    from flask_ext import Admission

    admission = Admission()
    admission.init_app(app)

Start reading in ``extension.py``. ``decorators.py`` leaves marks on views, ``walk.py`` makes
route rules of them, ``guard.py`` stands in front of the application, ``gate.py`` decides where
the server does not, ``dependency.py`` bounds what views call.
"""

from __future__ import annotations

from typing import Final

from flask_ext.dependency import Dependency
from flask_ext.extension import Admission, AppStatistics
from flask_ext.signals import dependency_rejected, request_shed

__all__ = [
    "PROVIDED_BY",
    "Admission",
    "AppStatistics",
    "Dependency",
    "dependency_rejected",
    "request_shed",
]

PROVIDED_BY: Final = "gunicorn-admission"
"""Tells this package from others that are called ``flask_ext`` too."""
