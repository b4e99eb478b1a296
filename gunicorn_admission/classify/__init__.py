"""
Request to class: which rule, priority and traffic class, before anything is spent on it.

Start with ``routes.py``. ``request_line.py`` reads the first line in front of the parser,
``table.py`` matches. Only the method and the path count; no header is trusted.
"""

from __future__ import annotations

from gunicorn_admission.classify.request_class import RequestClass
from gunicorn_admission.classify.routes import Classifier

__all__ = ["Classifier", "RequestClass"]
