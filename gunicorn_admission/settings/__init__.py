"""
What users may set: one frozen object, loaded from four places, checked at once.

Start with ``schema.py``. ``load.py`` fills it (keyword arguments, gunicorn's config file,
environment, TOML), ``check.py`` refuses what cannot work, ``derive.py`` turns it into the
numbers of the core, ``describe.py`` is the table of every setting. Imports the core and
attrs only.
"""

from __future__ import annotations

from gunicorn_admission.settings.derive import Resolved
from gunicorn_admission.settings.durations import DurationLike, format_duration, parse_duration
from gunicorn_admission.settings.load import Source, load, locate
from gunicorn_admission.settings.rules import RouteRule, RuleLike, parse_rule
from gunicorn_admission.settings.schema import DEFAULT_MAX_WAIT, EXEMPT_DEFAULTS, Settings

__all__ = [
    "DEFAULT_MAX_WAIT",
    "EXEMPT_DEFAULTS",
    "DurationLike",
    "Resolved",
    "RouteRule",
    "RuleLike",
    "Settings",
    "Source",
    "format_duration",
    "load",
    "locate",
    "parse_duration",
    "parse_rule",
]
