"""Verbs of ``gate`` about single events: release, approve, reject."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from gunicorn_admission.cli.operator import actor
from gunicorn_admission.cli.store_option import store_option
from gunicorn_admission.webhooks.gates import permits
from gunicorn_admission.webhooks.gates.standings import events_in
from gunicorn_admission.webhooks.store import Store

__all__ = ["approve", "reject", "release"]


@click.command()
@store_option
@click.argument("consumer")
@click.argument("events", nargs=-1, metavar="[SOURCE/ID]...")
@click.option("--all", "everything", is_flag=True, help="All that were refused.")
@click.option("--beyond", is_flag=True, help="Let them pass a ceiling that has no room.")
def release(
    store: Store, consumer: str, events: tuple[str, ...], everything: bool, beyond: bool
) -> None:
    """Let events run that were refused or deferred, as soon as they fit."""
    _decide(store, permits.release, consumer, events, "refused", everything, beyond=beyond)


@click.command()
@store_option
@click.argument("consumer")
@click.argument("events", nargs=-1, metavar="[SOURCE/ID]...")
@click.option("--all", "everything", is_flag=True, help="All that wait in review.")
@click.option("--beyond", is_flag=True, help="Let them pass a ceiling that has no room.")
def approve(
    store: Store, consumer: str, events: tuple[str, ...], everything: bool, beyond: bool
) -> None:
    """Let events run that wait in review, as soon as they fit."""
    _decide(store, permits.approve, consumer, events, "review", everything, beyond=beyond)


@click.command()
@store_option
@click.argument("consumer")
@click.argument("events", nargs=-1, metavar="[SOURCE/ID]...")
@click.option("--all", "everything", is_flag=True, help="All that wait in review.")
def reject(store: Store, consumer: str, events: tuple[str, ...], everything: bool) -> None:
    """Refuse events that wait in review, for good."""
    _decide(store, permits.reject, consumer, events, "review", everything)


def _decide(
    store: Store,
    verb: Callable[..., None],
    consumer: str,
    events: tuple[str, ...],
    state: str,
    everything: bool,
    **options: bool,
) -> None:
    """Decide about all of the events or, if one of them is in another state, about none."""
    if bool(events) == everything:
        raise click.UsageError("name events as source/event_id, or give --all")

    def work(connection: Any) -> int:
        keys = [_event(text) for text in events]
        if everything:
            keys = [
                (row["source"], row["event_id"]) for row in events_in(connection, consumer, state)
            ]
        for source, event_id in keys:
            verb(
                connection, consumer=consumer, source=source, event_id=event_id,
                now=store.now(), actor=actor(), **options,
            )  # fmt: skip
        return len(keys)

    done = store.write(work)
    past = {"release": "Released", "approve": "Approved", "reject": "Rejected"}[verb.__name__]
    click.echo(f"{past} {done} event{'' if done == 1 else 's'} of {consumer}.")


def _event(text: str) -> tuple[str, str]:
    source, slash, event_id = text.partition("/")
    if not (source and slash and event_id):
        raise click.UsageError(f"no event: {text!r}; write source/event_id, as in stripe/evt_1")
    return source, event_id
