"""Where a secret's value is kept: ``env:NAME``, ``file:PATH``, or the text itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from gunicorn_admission.webhooks.providers.secret import bad_secret

__all__ = ["describe_reference", "is_reference", "is_unset", "read_reference"]

_ENVIRONMENT: Final = "env:"
_FILE: Final = "file:"
#: No secret is longer; a path to something else, such as a device, must not fill the memory.
_LONGEST: Final = 16_384


def read_reference(reference: str) -> str:
    """
    Return the secret that a reference names, without the line end that files have.

    Raises:
        ConfigError: The variable or file is not there. No secret is shown.
    """
    if reference.startswith(_ENVIRONMENT):
        name = reference.removeprefix(_ENVIRONMENT)
        value = os.environ.get(name)
        if value is None:
            raise bad_secret(
                f"the environment variable {name}", "set it where the server is started"
            )
        return value.strip()
    if reference.startswith(_FILE):
        path = Path(reference.removeprefix(_FILE))
        try:
            with path.open(encoding="utf-8") as file:
                return file.read(_LONGEST).strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
            raise bad_secret(f"a readable file {path}", f"{why}") from None
    return reference


def describe_reference(reference: str) -> str:
    """Return what can be shown to people: where the secret is, never what it is."""
    if is_reference(reference):
        return reference
    return "in the store"


def is_reference(text: str) -> bool:
    """Whether a text says where a secret is, and is none itself."""
    return text.startswith((_ENVIRONMENT, _FILE))


def is_unset(reference: str) -> bool:
    """Whether it names an environment variable that this process does not have."""
    name = reference.removeprefix(_ENVIRONMENT)
    return reference.startswith(_ENVIRONMENT) and name not in os.environ
