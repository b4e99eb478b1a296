"""The one option of all verbs that work on a store."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from gunicorn_admission.cli.extras import needs

with needs("the store"):
    from gunicorn_admission.webhooks.store import Store

__all__ = ["store_option"]

R = TypeVar("R")


def store_option(verb: Callable[..., R]) -> Callable[..., R]:
    """
    Give a verb ``--url`` and, as its first argument, the store there; closed afterwards.

    ``@click.command()`` stands above it, other options may stand above or below.
    """

    @click.option(
        "--url",
        envvar="GUNICORN_ADMISSION_STORE_URL",
        show_envvar=True,
        default="sqlite:///webhooks.db",
        show_default=True,
        help="The store: sqlite:///path or postgresql://user@host/database.",
    )
    @functools.wraps(verb)
    def with_store(*, url: str, **options: Any) -> R:
        with Store(url) as store:
            return verb(store, **options)

    return with_store
