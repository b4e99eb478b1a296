"""
Where the settings of an application come from.

Keyword arguments beat ``app.config``, which beats the environment, which beats a TOML file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from attrs import fields

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings import Settings, Source, load
from gunicorn_admission.settings.nearest import did_you_mean

__all__ = ["OWN", "PREFIX", "load_settings"]

PREFIX: Final = "ADMISSION_"
OWN: Final = ("keyword argument", "app.config")
"""Kinds of sources that belong to the application alone."""

_NAMES: Final = tuple(field.name for field in fields(Settings))
_CONFIG: Final = "app.config"


def load_settings(
    keywords: Mapping[str, Any],
    config: Mapping[str, Any],
    environ: Mapping[str, str] = os.environ,
) -> tuple[Settings, dict[str, Source]]:
    """
    Return the settings of an application and where each of them came from.

    Args:
        keywords: Those of the extension.
        config: ``app.config``; names that start with ``ADMISSION_`` are ours.
        environ: For ``GUNICORN_ADMISSION_*``.

    Raises:
        ConfigError: A name is unknown (the nearest one is named), or a value cannot work.
    """
    written = dict(_configured(config))
    try:
        settings, sources = load({**written, **keywords}, environ=environ)
    except ConfigError as error:
        kind, _, name = (error.source or "").rpartition(" ")
        if kind != "keyword argument" or name in keywords or name not in written:
            raise
        source = str(_source(name))
        raise ConfigError(error.field, error.value, error.expected, error.hint, source) from None
    sources |= {name: _source(name) for name in written if name not in keywords}
    return settings, sources


def _configured(config: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found = []
    for key, value in config.items():
        if not key.startswith(PREFIX):
            continue
        name = key.removeprefix(PREFIX).lower()
        if name not in _NAMES:
            known = [PREFIX + known.upper() for known in _NAMES]
            raise ConfigError(key, value, "a known setting", did_you_mean(key, known), _CONFIG)
        found.append((name, value))
    return found


def _source(name: str) -> Source:
    return Source(_CONFIG, PREFIX + name.upper())
