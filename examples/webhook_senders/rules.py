"""Which answers a provider retries, and when: its documented facts, made into numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gunicorn_admission.webhooks.providers import load_provider

#: Retries of a provider that says for how long it retries, but not how often.
USUAL = 12
#: Seconds until a provider that does not say takes a delivery as failed.
DEADLINE = 10.0
#: Providers for which 200 is success, and no other 2xx.
ONLY_200 = {"linear", "mailgun", "paddle"}
#: An answer that ends the retries of a delivery at once.
ENDS = {"kit": {410}, "standard_webhooks": {410}, "mailgun": {406}}
#: Answers that are retried, where it is not all but success.
RETRIED = {
    "bitbucket": lambda status: status >= 500,
    "hubspot": lambda status: status >= 500 or status == 429,
    "zendesk": lambda status: status in (409, 429, 503),
}


@dataclass(frozen=True)
class Rules:
    """
    What one provider does about a delivery that failed.

    Attributes:
        provider: Its name.
        deadline: Seconds until no answer is a failure.
        delays: Seconds before each retry.
        documented: Whether the provider publishes the delays; else they grow by halves over the
            time for which it says that it retries.
        signed_anew: Whether a retry has a signature of its own time.
        respects_retry_after: Whether ``Retry-After`` can make it wait longer.
        disabled_after: Failures in a row after which it gives the endpoint up, or ``None``.
    """

    provider: str
    deadline: float
    delays: tuple[float, ...]
    documented: bool
    signed_anew: bool
    respects_retry_after: bool
    disabled_after: int | None

    def succeeded(self, status: int) -> bool:
        """Whether an answer is success."""
        return status == 200 if self.provider in ONLY_200 else 200 <= status < 300

    def retries(self, status: int | None) -> bool:
        """Whether an answer is retried; ``None`` is a timeout or a failed connection."""
        if status is None:
            return True
        if self.succeeded(status) or status in ENDS.get(self.provider, ()):
            return False
        return RETRIED.get(self.provider, lambda _: True)(status)


def rules_of(provider: str) -> Rules:
    """Return the rules of a provider, from the facts that the package has of it."""
    facts = load_provider(provider).facts
    retries = facts.retries
    delays = retries.delays
    if not delays and retries.count != 0:
        delays = tuple(growing(retries.count or USUAL, retries.span or 86_400.0))
    return Rules(
        provider=provider,
        deadline=facts.deadline or DEADLINE,
        delays=delays,
        documented=bool(retries.delays) or retries.count == 0,
        signed_anew=retries.signed_anew is True,
        respects_retry_after=facts.respects_retry_after is True,
        disabled_after=facts.disable.failures if facts.disable else None,
    )


def growing(count: int, span: float) -> Iterator[float]:
    """So many delays, each half longer than the one before, that add up to a time."""
    weights = [1.5**n for n in range(count)]
    return (span * weight / sum(weights) for weight in weights)
