"""GitHub: an HMAC of the body, no timestamp, and no retry at all."""

from __future__ import annotations

from datetime import date
from typing import ClassVar

from attrs import frozen

from gunicorn_admission.webhooks.providers.facts import (
    DAY,
    Coverage,
    EventIdAt,
    Facts,
    Redelivery,
    Retries,
)
from gunicorn_admission.webhooks.providers.outcome import IdSource
from gunicorn_admission.webhooks.providers.provider import Claim, Description, Provider, Request
from gunicorn_admission.webhooks.providers.signatures import prefixed

__all__ = ["GitHub"]


@frozen(kw_only=True)
class GitHub(Provider):
    """Webhooks of GitHub repositories, organizations and Apps. The secret is the hook's."""

    facts: ClassVar[Facts] = Facts(
        name="github",
        title="GitHub",
        docs="https://docs.github.com/en/webhooks/using-webhooks/best-practices-for-using-webhooks",
        checked=date(2026, 11, 30),
        covers=Coverage.BODY,
        event_id=EventIdAt(header="X-GitHub-Delivery", signed=False),
        deadline=10.0,
        max_body=25 * 1024 * 1024,
        retries=Retries(count=0),
        redelivery=Redelivery(
            listing="GET /repos/{owner}/{repo}/hooks/{hook_id}/deliveries?status=failure",
            resend="POST /repos/{owner}/{repo}/hooks/{hook_id}/deliveries/{delivery_id}/attempts",
            window=3 * DAY,
        ),
        respects_retry_after=False,
        notes=(
            "A delivery that is refused does not come again by itself: redeliver it.",
            "A redelivery has the same X-GitHub-Delivery.",
            "An event whose payload would be larger than 25 MB is never sent.",
            "GitHub Enterprise Server waits 30 s.",
            "The same deliveries exist under /orgs/{org}/hooks and /app/hook; global, "
            "Marketplace and Sponsors hooks have none.",
            "A hook without a secret sends no signature and is refused.",
        ),
    )

    def claim(self, request: Request) -> Claim:
        """Read ``X-Hub-Signature-256``; the older SHA-1 header is not looked at."""
        signature = prefixed(request, "X-Hub-Signature-256", "sha256=")
        return Claim(signatures=(signature,), messages=((request.body,),))

    def describe(self, request: Request) -> Description:
        """Read id and event name from the headers: the body need not be parsed."""
        return Description(
            event_id=request.headers.find_id("X-GitHub-Delivery"),
            id_source=IdSource.HEADER,
            event_type=request.headers.hint("X-GitHub-Event"),
        )
