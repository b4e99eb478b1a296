"""The options that say which events or deliveries a verb means."""

from __future__ import annotations

import functools
import getpass
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.durations import parse_duration
from gunicorn_admission.webhooks.fanout.selection import Selection, parse_event
from gunicorn_admission.webhooks.store import Store

__all__ = ["actor", "iso", "selecting"]

R = TypeVar("R")


def selecting(verb: Callable[..., R]) -> Callable[..., R]:
    """
    Give a verb the options of a :class:`Selection`, which it gets as ``selection``.

    ``@store_option`` stands above it: the store's clock says what "2h ago" is.
    """

    @click.option(
        "--event", "events", multiple=True, metavar="SOURCE/ID", help="This event; may be repeated."
    )
    @click.option("--source", help="Only of this source.")
    @click.option("--type", "kind", help="Only of this type; invoice.* takes all that begin so.")
    @click.option("--since", help="Only what came since: 2h (ago), or 2026-12-01T14:00Z.")
    @click.option("--until", help="Only what came before: as --since.")
    @click.option("--error", help="Only where the last error contains this.")
    @functools.wraps(verb)
    def with_selection(
        store: Store,
        *,
        events: tuple[str, ...],
        source: str | None,
        kind: str | None,
        since: str | None,
        until: str | None,
        error: str | None,
        **options: Any,
    ) -> R:
        selection = Selection(
            events=[parse_event(event) for event in events],
            source=source,
            type=kind,
            since=_moment(since, store, "since"),
            until=_moment(until, store, "until"),
            error=error,
        )
        return verb(store, selection=selection, **options)

    return with_selection


def _moment(text: str | None, store: Store, field: str) -> int | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            return store.now() - round(parse_duration(text, field) * 1e6)
        except ConfigError:
            raise ConfigError(
                field, text, "a duration such as 2h, or a time such as 2026-12-01T14:00Z",
                "a duration is how long ago",
            ) from None  # fmt: skip
    if moment.tzinfo is None:
        raise ConfigError(field, text, "a time with its zone", f"write {text}Z for UTC")
    return round(moment.timestamp() * 1e6)


def iso(microseconds: int | None) -> str | None:
    """Return a time of the store as people and programs write it."""
    if microseconds is None:
        return None
    moment = datetime.fromtimestamp(microseconds / 1e6, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def actor() -> str:
    """Return who runs the command, for the audit."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):  # a container's user that has no name
        return "cli"
