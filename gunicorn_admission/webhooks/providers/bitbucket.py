"""Bitbucket Cloud: an HMAC of the body in GitHub's old header."""

from __future__ import annotations

from datetime import date
from typing import ClassVar

from attrs import frozen

from gunicorn_admission.webhooks.providers.facts import Coverage, EventIdAt, Facts, Retries
from gunicorn_admission.webhooks.providers.outcome import IdSource
from gunicorn_admission.webhooks.providers.provider import Claim, Description, Provider, Request
from gunicorn_admission.webhooks.providers.signatures import prefixed

__all__ = ["Bitbucket"]


@frozen(kw_only=True)
class Bitbucket(Provider):
    """Webhooks of Bitbucket Cloud. The secret is the hook's."""

    facts: ClassVar[Facts] = Facts(
        name="bitbucket",
        title="Bitbucket",
        docs="https://support.atlassian.com/bitbucket-cloud/docs/troubleshoot-webhooks/",
        checked=date(2026, 11, 30),
        covers=Coverage.BODY,
        event_id=EventIdAt(header="X-Request-UUID", signed=False),
        deadline=10.0,
        max_body=256 * 1024,
        retries=Retries(count=2, after="500 to 599"),
        respects_retry_after=False,
        unsure=("respects_retry_after",),
        notes=(
            "An event whose payload would be larger than 256 KB may silently never be sent.",
            "X-Attempt-Number counts the attempts.",
            "Requests can be sent again in the web interface only.",
        ),
    )

    def claim(self, request: Request) -> Claim:
        """Read ``X-Hub-Signature``, which must be of SHA-256 here."""
        signature = prefixed(request, "X-Hub-Signature", "sha256=")
        return Claim(signatures=(signature,), messages=((request.body,),))

    def describe(self, request: Request) -> Description:
        """Read id and event key from the headers."""
        return Description(
            event_id=request.headers.find_id("X-Request-UUID"),
            id_source=IdSource.HEADER,
            event_type=request.headers.hint("X-Event-Key"),
        )
