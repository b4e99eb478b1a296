"""What to say when a part that was not installed is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["MissingExtra", "needs"]

_EXTRAS = {
    "click": "cli",
    "rich": "cli",
    "simpy": "sim",
    "matplotlib": "sim",
    "sqlalchemy": "sql",
    "alembic": "sql",
    "psycopg": "postgres",
}


class MissingExtra(Exception):
    """A package of an extra is not installed; the message says what to install."""


@contextmanager
def needs(what: str) -> Iterator[None]:
    """
    Turn the failed import of an extra's package into one sentence.

    Args:
        what: What needs it, for the sentence.

    Raises:
        MissingExtra: A package of an extra could not be imported.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        raise MissingExtra(
            f"{what} needs {package}, which is not installed: "
            f"pip install 'gunicorn-admission[{_EXTRAS[package]}]'"
        ) from None
