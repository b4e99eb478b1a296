"""
A gunicorn configuration to name: ``gunicorn -c python:gunicorn_admission.conf app:app``.

gunicorn takes only one ``-c``, so this module loads the user's own configuration
(``GUNICORN_ADMISSION_CONF``, a file or ``python:module``; else ``./gunicorn.conf.py`` if it
exists), passes its names on, and puts admission control behind its hooks. Settings come
from ``admission_*`` names and from the environment. Not for import by other code.
"""

from __future__ import annotations

# Underscores, since every other name of a configuration belongs to the user.
import os as _os
from collections.abc import MutableMapping as _MutableMapping
from typing import Any as _Any

from gunicorn.app.base import Application as _Application
from gunicorn.config import get_default_config_file as _get_default_config_file

from gunicorn_admission.errors import ConfigError as _ConfigError
from gunicorn_admission.hooks import install as _install

_VARIABLE = "GUNICORN_ADMISSION_CONF"
_MODULE = "python:"
_FILE = "file:"


def _location() -> str | None:
    """Where the user's configuration is; relative to where gunicorn was started."""
    named = _os.environ.get(_VARIABLE)
    if not named:
        default: str | None = _get_default_config_file()
        return default
    if not named.startswith(_MODULE):
        named = named.removeprefix(_FILE)
        if not _os.path.isfile(named):
            raise _ConfigError(
                _VARIABLE,
                named,
                f"an existing file, seen from {_os.getcwd()}, or {_MODULE}a.module",
                "correct the path, or unset it to use ./gunicorn.conf.py",
                "environment",
            )
    return named


def _load(location: str) -> dict[str, _Any]:
    """Read it by gunicorn's own loader, so that it sees and fails as without us."""
    loader = _Application.__new__(_Application)  # not started: its loaders use no state
    if location.startswith(_MODULE):
        names = loader.get_config_from_module_name(location.removeprefix(_MODULE))
    else:
        names = loader.get_config_from_filename(location)
    return {name: value for name, value in names.items() if not name.startswith("_")}


def _chain(namespace: _MutableMapping[str, _Any]) -> None:
    location = _location()
    if location is not None:
        namespace.update(_load(location))
    _install(namespace)


_chain(globals())
