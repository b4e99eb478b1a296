"""How sources, and what was found of a captured request, are shown. No secret is among it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from gunicorn_admission.webhooks.intake.diagnose import Diagnosis
from gunicorn_admission.webhooks.intake.reference import describe_reference
from gunicorn_admission.webhooks.intake.register import Registered
from gunicorn_admission.webhooks.providers import Refused, Verified

__all__ = ["cells", "document_of", "tell", "verdict"]


def cells(row: Registered) -> tuple[str, ...]:
    """Return the cells of a source's row."""
    source = row.source
    keys = []
    for key in source.secrets:
        end = "" if key.not_after is None else f", until {_iso(key.not_after)}"
        keys.append(f"{key.key_id} ({describe_reference(key.value)}{end})")
    return (
        source.name,
        source.provider.facts.name,
        source.priority.name.lower() if source.enabled else "disabled",
        f"{source.patience:g} s",
        "; ".join(keys),
        str(row.events),
        "" if row.last_at is None else _iso(row.last_at / 1e6),
    )


def document_of(row: Registered) -> dict[str, Any]:
    """Return a source for JSON."""
    source = row.source
    return {
        "name": source.name,
        "provider": source.provider.facts.name,
        "public_url": source.url or None,
        "priority": source.priority.name.lower(),
        "deadline": source.patience,
        "max_body": source.largest,
        "enabled": source.enabled,
        "secrets": [
            {
                "key_id": key.key_id,
                "kept": describe_reference(key.value),
                "not_after": None if key.not_after is None else _iso(key.not_after),
            }
            for key in source.secrets
        ],
        "events": row.events,
        "last_event": None if row.last_at is None else _iso(row.last_at / 1e6),
    }


def verdict(found: Diagnosis) -> dict[str, Any]:
    """Return what was found of a request, for JSON."""
    outcome = found.outcome
    document: dict[str, Any] = {"verified": isinstance(outcome, Verified)}
    if isinstance(outcome, Verified):
        document |= {"key_id": found.key_id, "events": [item.event_id for item in outcome.items]}
    else:
        document |= {"reason": outcome.reason.value, "header": outcome.header}
    return {**document, "findings": list(found.findings)}


def tell(found: Diagnosis) -> None:
    """Print what was found of a request, for people."""
    outcome = found.outcome
    if isinstance(outcome, Refused):
        header = f" ({outcome.header})" if outcome.header else ""
        click.echo(f"Not believed: {outcome.reason.value}{header}")
    else:
        click.echo(f"Genuine, signed with {found.key_id}.")
        for item in outcome.items:
            click.echo(f"  {item.event_id}  {item.event_type or ''}".rstrip())
        if outcome.challenge is not None:
            click.echo("  a challenge, which would be answered")
    for finding in found.findings:
        click.echo(f"- {finding}")


def _iso(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
