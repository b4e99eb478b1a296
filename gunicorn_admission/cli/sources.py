"""``gunicorn-admission sources``: who may post to ``/hooks/<source>``, and with which secrets."""

from __future__ import annotations

import json
import secrets as randomness
import sys
import time
from datetime import UTC, datetime
from typing import Any, BinaryIO, TextIO

import click
from rich.markup import escape
from rich.table import Table

from gunicorn_admission.cli.sources_shown import cells, document_of, tell, verdict
from gunicorn_admission.cli.store_option import store_option
from gunicorn_admission.cli.tables import show
from gunicorn_admission.settings.durations import parse_duration
from gunicorn_admission.webhooks.intake.diagnose import diagnose
from gunicorn_admission.webhooks.intake.reference import is_reference
from gunicorn_admission.webhooks.intake.register import Register
from gunicorn_admission.webhooks.intake.source import Key, Source
from gunicorn_admission.webhooks.providers import Verified
from gunicorn_admission.webhooks.store import Store

__all__ = ["sources"]

_SECRET = click.option(
    "--secret",
    metavar="REFERENCE",
    help="env:NAME or file:PATH. Without it the secret itself is asked for, or read from "
    "standard input: on a command line every user of this machine could see it.",
)


@click.group()
def sources() -> None:
    """Who may post to /hooks/<source>, and with which secrets.

    Running intakes notice a change within seconds. A priority or deadline reaches admission in
    front of them at their next start.
    """


@sources.command()
@store_option
@click.argument("name")
@click.option("--provider", required=True, help="The sender, such as github or stripe.")
@_SECRET
@click.option("--public-url", default="", help="As it stands at the sender; some sign it.")
@click.option(
    "--priority",
    type=click.Choice(["high", "default", "low"]),
    help="In admission. Default: high where the sender never retries, else default.",
)
@click.option("--deadline", help="How long the sender waits, such as 5s. Default: its own.")
@click.option("--max-body", type=click.IntRange(1), help="Bytes. Default: the sender's own.")
def add(
    store: Store,
    name: str,
    provider: str,
    secret: str | None,
    public_url: str,
    priority: str | None,
    deadline: str | None,
    max_body: int | None,
) -> None:
    """Let a sender post to /hooks/NAME.

    \b
      gunicorn-admission sources add git --provider github --secret env:GIT_SECRET
      gunicorn-admission sources add billing --provider stripe --priority high < secret
    """
    chosen: dict[str, Any] = {} if priority is None else {"priority": priority}
    source = Source(
        name,
        provider=provider,
        secrets=(Key(key_id=_new_key_id(), value=_secret(secret)),),
        url=public_url,
        **chosen,
        deadline=deadline,
        max_body=max_body,
    )
    Register(store).add(source)
    click.echo(f"Added {name}: {source.provider.facts.title} may post to /hooks/{name}.")
    _warn(source)


@sources.command()
@store_option
@click.argument("name")
@_SECRET
@click.option("--key-id", help="What the new secret is called in logs. Default: made up.")
@click.option("--keep", default="24h", show_default=True, help="How long old ones are accepted.")
def rotate(store: Store, name: str, secret: str | None, key_id: str | None, keep: str) -> None:
    """Give a source a new secret; the old ones are accepted for a while.

    Do it before the sender uses the new one. Nothing needs a restart.
    """
    key = Key(key_id=key_id or _new_key_id(), value=_secret(secret))
    ended = Register(store).rotate(name, key, keep=parse_duration(keep, "keep"))
    click.echo(f"{name} accepts {key.key_id} now; {ended} older for {keep} more.")
    _warn(Source(name, provider="github", secrets=(key,)))


@sources.command(name="list")
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(store: Store, as_json: bool) -> None:
    """Show all sources, their secrets' names and what they have sent."""
    rows = Register(store).list()
    if as_json:
        click.echo(json.dumps([document_of(row) for row in rows], indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for title in ("source", "provider", "priority", "deadline", "secrets", "events", "last event"):
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(escape(cell) for cell in cells(row)))
    show(table)


@sources.command()
@store_option
@click.argument("name")
def enable(store: Store, name: str) -> None:
    """Let a source take events again."""
    Register(store).enable(name, True)
    click.echo(f"{name} takes events.")


@sources.command()
@store_option
@click.argument("name")
def disable(store: Store, name: str) -> None:
    """Answer 503 to a source for now; senders that retry come again."""
    Register(store).enable(name, False)
    click.echo(f"{name} takes no events: 503.")


@sources.command()
@store_option
@click.argument("name")
@click.confirmation_option(prompt="Its secrets are deleted; /hooks/<name> is 404 then. Go on?")
def remove(store: Store, name: str) -> None:
    """Forget a source and its secrets; its events stay."""
    Register(store).remove(name)
    click.echo(f"Removed {name}.")


@sources.command()
@store_option
@click.argument("name")
@click.option("--file", "body", type=click.File("rb"), required=True, help="The body; - is stdin.")
@click.option("-H", "--header", "lines", multiple=True, metavar="'NAME: VALUE'")
@click.option("--headers", "file", type=click.File("r"), help="A file with one header a line.")
@click.option("--query", default="", help="Query string of the request.")
@click.option("--at", help="When it came: seconds since the epoch, or ISO 8601. Default: now.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def test(
    store: Store,
    name: str,
    body: BinaryIO,
    lines: tuple[str, ...],
    file: TextIO | None,
    query: str,
    at: str | None,
    as_json: bool,
) -> None:
    """Say whether a captured request would be believed, and if not, why.

    Nothing is stored.

    \b
      gunicorn-admission sources test git --file body.json -H 'X-Hub-Signature-256: sha256=...'
    """
    register = Register(store)
    found = diagnose(
        register.get(name),
        body.read(),
        _headers((*lines, *(file or ()))),
        query.removeprefix("?"),
        _moment(at),
        [row.source for row in register.list()],
    )
    if as_json:
        click.echo(json.dumps(verdict(found), indent=2))
    else:
        tell(found)
    sys.exit(0 if isinstance(found.outcome, Verified) else 1)


def _secret(reference: str | None) -> str:
    if reference is not None:
        if not is_reference(reference):
            raise click.UsageError(
                "--secret takes env:NAME or file:PATH. Leave it out and type the secret, or give "
                "it on standard input: on a command line every user of this machine could see it"
            )
        return reference
    if sys.stdin.isatty():
        typed: str = click.prompt("Secret", hide_input=True)
        return typed.strip()
    return sys.stdin.read().strip()


def _warn(source: Source) -> None:
    for key in source.secrets:
        if key.is_elsewhere:
            click.echo(f"{key.value} is not set here: the processes that serve need it.", err=True)


def _new_key_id() -> str:
    return f"{datetime.now(UTC):%Y%m%d}-{randomness.token_hex(3)}"


def _headers(lines: tuple[str, ...]) -> list[tuple[str, str]]:
    found = []
    for line in lines:
        name, colon, value = line.strip().partition(":")
        if name and not colon:
            raise click.UsageError(f"no header: {line.strip()[:40]!r}; write 'Name: value'")
        if name:
            found.append((name.strip(), value.strip()))
    return found


def _moment(text: str | None) -> float:
    if text is None:
        return time.time()
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError("--at takes seconds since the epoch, or ISO 8601") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
