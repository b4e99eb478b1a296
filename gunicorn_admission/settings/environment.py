"""From the text of an environment variable to the value that a setting expects."""

from __future__ import annotations

from typing import Any, Final

from attrs import fields_dict

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings import convert
from gunicorn_admission.settings.schema import Settings

__all__ = ["decode"]

_SWITCHES: Final = {
    "1": True, "true": True, "yes": True, "on": True,
    "0": False, "false": False, "no": False, "off": False,
}  # fmt: skip
_TABLES: Final = (convert.routes, convert.shares, convert.caps, convert.optional_caps)


def decode(name: str, text: str, source: str) -> Any:
    """
    Return the value of one setting from its text, as the converter of the setting wants it.

    Switches are ``true`` or ``false`` (``1 0 yes no on off``), mappings are JSON, lists are
    JSON or comma-separated, ``none`` is ``None`` where ``None`` is the default.

    Args:
        name: A setting.
        text: Not empty.
        source: For the error.

    Raises:
        ConfigError: The text cannot be read as such.
    """
    field = fields_dict(Settings)[name]
    if text.lower() == "none" and field.default is None:
        return None
    kind: object = field.converter
    if kind is convert.switch:
        if text.lower() not in _SWITCHES:
            raise ConfigError(name, text, "true or false", "1 and 0 work too", source)
        return _SWITCHES[text.lower()]
    if kind in (convert.paths, convert.seconds_pair) and not text.startswith("["):
        return [item for part in text.split(",") if (item := part.strip())]
    if kind is convert.optional_caps and text.isdecimal():
        return int(text)
    if kind in _TABLES or text.startswith("["):
        return _json(name, text, source)
    return text


def _json(name: str, text: str, source: str) -> Any:
    import json  # only where there is some

    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(
            name, text, 'JSON such as {"/payments": "high"}', f"quote it in shells: {error}", source
        ) from None
