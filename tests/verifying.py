"""Short calls of a provider on requests of ``tests/senders.py``."""

from __future__ import annotations

from collections.abc import Mapping

from gunicorn_admission.webhooks.providers import (
    Outcome,
    Provider,
    Secret,
    Verified,
    load_provider,
)
from tests.senders import AT, Sent

KEY = "s3cr3t"


def verify(
    provider: str | Provider, sent: Sent, *secrets: str, now: float = AT, url: str | None = None
) -> Outcome:
    if isinstance(provider, str):
        provider = load_provider(provider)
    accepted = [Secret(value) for value in secrets or (KEY,)]
    return provider.verify(sent.body, sent.headers, sent.url if url is None else url, accepted, now)


def good(outcome: Outcome) -> Verified:
    assert isinstance(outcome, Verified), outcome
    return outcome


def changed(sent: Sent, headers: Mapping[str, str | None]) -> Sent:
    """The request with some headers set, and those removed that are ``None``."""
    merged = {**sent.headers, **headers}
    return sent._replace(headers={name: text for name, text in merged.items() if text is not None})
