"""
Fill :class:`Settings` from four places and remember where each value came from.

Keyword arguments beat names in gunicorn's config file, which beat the environment, which
beats a TOML file, which beats the defaults. A name that nobody knows is an error
everywhere: a typo that is passed over in silence looks like protection and is none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from attrs import fields, frozen

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.environment import decode
from gunicorn_admission.settings.nearest import did_you_mean
from gunicorn_admission.settings.schema import Settings

__all__ = ["CONF_PREFIX", "DEFAULT_FILE", "ENVIRONMENT_PREFIX", "Source", "load", "locate"]

CONF_PREFIX: Final = "admission_"
ENVIRONMENT_PREFIX: Final = "GUNICORN_ADMISSION_"
DEFAULT_FILE: Final = "gunicorn_admission.toml"

_FILE: Final = ENVIRONMENT_PREFIX + "FILE"
#: Read elsewhere: by conf.py, below, and by the webhooks half.
_NOT_SETTINGS: Final = (
    _FILE,
    *(ENVIRONMENT_PREFIX + name for name in ("CONF", "PAGES", "STORE_URL")),
)
# Kubernetes puts such variables into every pod beside a Service named gunicorn-admission.
_SERVICE_LINK: Final = re.compile(
    r"(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)
_TABLES: Final = ("gunicorn_admission", "tool.gunicorn_admission")
_NAMES: Final = tuple(field.name for field in fields(Settings))


@frozen
class Source:
    """
    Where a value came from.

    Attributes:
        kind: ``keyword argument``, ``gunicorn config``, ``environment``, ``file`` or ``default``.
        name: As it is written there; a file is named before its key.
    """

    kind: str
    name: str

    def __str__(self) -> str:
        return self.kind if self.kind == "default" else f"{self.kind} {self.name}"


_Found = Iterator[tuple[str, Any, Source]]


def load(
    kwargs: Mapping[str, Any] | None = None,
    *,
    conf: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    toml_path: str | os.PathLike[str] | None = None,
) -> tuple[Settings, dict[str, Source]]:
    """
    Return the settings and where each of them came from.

    Args:
        kwargs: Keyword arguments of a call such as ``hooks.install``.
        conf: The names of gunicorn's config file; those that start with ``admission_`` are
            settings, functions, classes and modules excepted.
        environ: ``os.environ`` or a stand-in; ``None`` reads no environment. An empty value
            counts as not set, and ``none`` sets ``None``.
        toml_path: A file with a table ``[gunicorn_admission]`` or
            ``[tool.gunicorn_admission]``. ``None`` takes the one that the environment names
            in ``GUNICORN_ADMISSION_FILE``, else ``gunicorn_admission.toml`` in the working
            directory where it exists.

    Raises:
        ConfigError: A name is unknown (the nearest one is named), or a value cannot work.

    Thread safety: pure, apart from reading the file.
    """
    values: dict[str, Any] = {}
    sources = {name: Source("default", name) for name in _NAMES}
    for found in (
        _from_toml(toml_path, environ or {}),
        _from_environment(environ or {}),
        _from_conf(conf or {}),
        _from_kwargs(kwargs or {}),
    ):
        for name, value, source in found:
            values[name], sources[name] = value, source
    try:
        return Settings(**values), sources
    except ConfigError as error:
        raise locate(error, sources) from None


def locate(error: ConfigError, sources: Mapping[str, Source]) -> ConfigError:
    """
    Return the same error with the place that the value came from.

    Args:
        error: One about a setting, such as those of :meth:`Settings.derive`.
        sources: From :func:`load`.
    """
    setting = re.split(r"\W", error.field, maxsplit=1)[0]
    source = sources.get(setting)
    where = error.source or (None if source is None else str(source))
    return ConfigError(error.field, error.value, error.expected, error.hint, where)


def _known(name: str, written: str, value: object, prefix: str, where: str) -> str:
    if name not in _NAMES:
        meant = did_you_mean(written, [_spell(known, prefix) for known in _NAMES])
        raise ConfigError(written, value, "a known setting", meant, where)
    return name


def _spell(name: str, prefix: str) -> str:
    return prefix + (name.upper() if prefix == ENVIRONMENT_PREFIX else name)


def _from_kwargs(kwargs: Mapping[str, Any]) -> _Found:
    for name, value in kwargs.items():
        yield (
            _known(name, name, value, "", "keyword argument"),
            value,
            Source("keyword argument", name),
        )


def _from_conf(conf: Mapping[str, Any]) -> _Found:
    for written, value in conf.items():
        if not written.startswith(CONF_PREFIX) or callable(value) or isinstance(value, ModuleType):
            continue
        name = written.removeprefix(CONF_PREFIX)
        source = Source("gunicorn config", written)
        yield _known(name, written, value, CONF_PREFIX, "gunicorn config"), value, source


def _from_environment(environ: Mapping[str, str]) -> _Found:
    for written, value in environ.items():
        rest = written.removeprefix(ENVIRONMENT_PREFIX)
        if rest == written or written in _NOT_SETTINGS or _SERVICE_LINK.fullmatch(rest):
            continue
        name = _known(rest.lower(), written, value, ENVIRONMENT_PREFIX, "environment")
        if value.strip():
            source = Source("environment", written)
            yield name, decode(name, value.strip(), str(source)), source


def _from_toml(path: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> _Found:
    named = path if path is not None else environ.get(_FILE) or None
    file = Path(DEFAULT_FILE if named is None else named)
    if named is None and not file.is_file():
        return
    table = _read_table(file, _FILE if path is None else "toml_path")
    for name, value in table.items():
        _known(name, name, value, "", f"file {file}")
        yield name, value, Source("file", f"{file}: {name}")


def _read_table(file: Path, field: str) -> Mapping[str, Any]:
    import tomllib  # only where there is a file to read

    try:
        document = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(field, str(file), "a readable file", str(error)) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(field, str(file), "a valid TOML file", str(error)) from error
    tool = document.get("tool")
    places = (document, tool if isinstance(tool, dict) else {})
    tables = (place.get("gunicorn_admission") for place in places)
    found = [table for table in tables if isinstance(table, dict)]
    if len(found) == 1 or not document:
        return found[0] if found else {}
    raise ConfigError(
        field, str(file), f"one table, [{_TABLES[0]}] or [{_TABLES[1]}]",
        "keep one of the two" if found else f"write [{_TABLES[0]}] above the settings",
    )  # fmt: skip
