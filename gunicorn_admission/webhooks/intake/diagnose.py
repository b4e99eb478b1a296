"""
Why a captured request is not believed: what is tried beside the plain verification.

Each cause is shown by finding what would have made the signature good, never guessed. What is
tried here is for an operator's own terminal; the intake does none of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import urlsplit

from attrs import evolve, frozen

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.intake.source import Key, Source
from gunicorn_admission.webhooks.providers import (
    Outcome,
    Provider,
    Reason,
    Refused,
    Secret,
    Verified,
    load_provider,
)
from gunicorn_admission.webhooks.providers.facts import Coverage, Tolerance

__all__ = ["Diagnosis", "diagnose"]

_OF_URL = (Coverage.URL_AND_BODY, Coverage.URL_AND_FORM)
_ANY_TIME = Tolerance()


@frozen(kw_only=True)
class Diagnosis:
    """
    What was found.

    Attributes:
        outcome: Of the plain verification.
        key_id: Of the secret that matched, where one did.
        findings: Sentences for people, the most telling first; none where all is well.
    """

    outcome: Outcome
    key_id: str | None
    findings: tuple[str, ...]


def diagnose(
    source: Source,
    body: bytes,
    headers: Sequence[tuple[str, str]],
    query: str,
    now: float,
    others: Iterable[Source] = (),
) -> Diagnosis:
    """
    Verify a captured request as the intake would, and say why it fails.

    Args:
        source: That it was sent to.
        body: As it was captured.
        headers: Of the request.
        query: Query string of the request.
        now: When it came, in seconds since the epoch.
        others: Sources whose secrets may have signed it by mistake.
    """
    keys, findings = _readable(source)
    url = source.signed_url(query)
    outcome = source.provider.verify(body, headers, url, [secret for _, secret in keys], now)
    if isinstance(outcome, Verified):
        key_id = keys[outcome.secret][0].key_id
        return Diagnosis(outcome=outcome, key_id=key_id, findings=tuple(findings))
    case = _Case(source=source, body=body, headers=headers, url=url, now=now, query=query)
    findings += _explain(case, outcome, keys, others)
    return Diagnosis(outcome=outcome, key_id=None, findings=tuple(dict.fromkeys(findings)))


@frozen(kw_only=True)
class _Case:
    source: Source
    body: bytes
    headers: Sequence[tuple[str, str]]
    url: str
    now: float
    query: str

    def good(
        self,
        secrets: Iterable[Secret],
        *,
        body: bytes | None = None,
        url: str | None = None,
        provider: Provider | None = None,
    ) -> bool:
        """Whether the signature is good at any time, with something changed."""
        provider = evolve(provider or self.source.provider, tolerance=_ANY_TIME)
        endless = [Secret(secret.value) for secret in secrets]
        body = self.body if body is None else body
        url = self.url if url is None else url
        outcome = provider.verify(body, self.headers, url, endless, self.now)
        return isinstance(outcome, Verified)


def _readable(source: Source) -> tuple[list[tuple[Key, Secret]], list[str]]:
    keys: list[tuple[Key, Secret]] = []
    findings: list[str] = []
    for key in source.secrets:
        try:
            secret = key.read()
            source.provider.check_secret(secret)
            keys.append((key, secret))
        except ConfigError as error:
            findings.append(f"secret {key.key_id!r} cannot be used: {error}")
    return keys, findings


def _explain(
    case: _Case, refused: Refused, keys: list[tuple[Key, Secret]], others: Iterable[Source]
) -> Iterator[str]:
    facts = case.source.provider.facts
    reason, header = refused.reason, refused.header
    if reason is Reason.MISSING_HEADER:
        yield (
            f"the request has no {header}. {facts.title} sends none where no secret is set there, "
            "and a proxy may take it away; or another sender posts here"
        )
        yield from _other_sender(case, keys)
    elif reason is Reason.URL_MISSING:
        yield (
            f"{facts.title} signs the public URL and this source has none: remove and add it "
            "again with --public-url, as it stands at the sender"
        )
    elif reason in (Reason.TOO_OLD, Reason.IN_THE_FUTURE):
        age = refused.age or 0.0
        yield (
            f"the signature is good, and made {abs(age):.0f} s "
            f"{'ago' if age > 0 else 'in the future'}: one of the clocks is wrong, or this was "
            "captured a while ago (then say when, with --at)"
        )
    elif reason is Reason.NO_ACTIVE_SECRET:
        yield "no secret of this source is active: rotate one in"
        yield from _keys_that_ended(case, keys)
    elif reason is Reason.WRONG_SIGNATURE:
        found = list(_wrong(case, keys, others))
        yield from found or [
            "none of the secrets made this signature for this body: compare the secret with the "
            "sender's, and capture the body as bytes, in front of any proxy that may change it"
        ]
    else:
        yield f"{reason.value}{f' ({header})' if header else ''}"


def _wrong(case: _Case, keys: list[tuple[Key, Secret]], others: Iterable[Source]) -> Iterator[str]:
    secrets = [secret for _, secret in keys]
    yield from _keys_that_ended(case, keys)
    for words, body in _rewritten(case.body):
        if body != case.body and case.good(secrets, body=body):
            yield f"the body was changed on the way: {words}"
            break  # the simplest explanation; the others contain it
    if case.source.provider.facts.covers in _OF_URL:
        for url in _urls(case):
            if case.good(secrets, url=url):
                yield f"the sender signs another URL than the one configured here: {url}"
    for other in others:
        if other.name != case.source.name and case.good(s for _, s in _readable(other)[0]):
            yield f"this is signed with the secret of the source {other.name!r}"


def _keys_that_ended(case: _Case, keys: list[tuple[Key, Secret]]) -> Iterator[str]:
    for key, secret in keys:
        if not secret.is_active(case.now) and case.good([secret]):
            yield f"this is signed with the secret {key.key_id!r}, which has ended"


def _other_sender(case: _Case, keys: list[tuple[Key, Secret]]) -> Iterator[str]:
    """A sender whose signature headers are all there, whatever the secret is."""
    names = {name.lower() for name, _ in case.headers}
    for name, header in _SIGNED_BY.items():
        if header.lower() in names and name != case.source.provider.facts.name:
            title = load_provider(name).facts.title
            yield f"it has {header}, which {title} sends: is the source's provider right?"


_SIGNED_BY = {
    "github": "X-Hub-Signature-256",
    "gitlab": "X-Gitlab-Event",
    "hookdeck": "X-Hookdeck-Signature",
    "hubspot": "X-HubSpot-Signature-v3",
    "kit": "X-Kit-Signature",
    "linear": "Linear-Signature",
    "paddle": "Paddle-Signature",
    "paypal": "PAYPAL-TRANSMISSION-SIG",
    "sendgrid": "X-Twilio-Email-Event-Webhook-Signature",
    "shopify": "X-Shopify-Hmac-Sha256",
    "slack": "X-Slack-Signature",
    "square": "x-square-hmacsha256-signature",
    "standard_webhooks": "webhook-signature",
    "stripe": "Stripe-Signature",
    "twilio": "X-Twilio-Signature",
    "zendesk": "X-Zendesk-Webhook-Signature",
}


def _rewritten(body: bytes) -> Iterator[tuple[str, bytes]]:
    """What a body may have been before somebody changed it, and what that was."""
    yield "line ends were changed", body.replace(b"\r\n", b"\n")
    yield "line ends were changed", body.replace(b"\n", b"\r\n")
    stripped = body.rstrip(b"\r\n")
    for end in (b"", b"\n", b"\r\n"):
        longer = len(stripped) + len(end) > len(body)
        yield ("its last line end is missing" if longer else "a line end was added"), stripped + end
    yield "a byte order mark was added", body.removeprefix(b"\xef\xbb\xbf")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return
    for separators in ((",", ":"), (", ", ": ")):
        for ascii_only in (True, False):
            text = json.dumps(value, separators=separators, ensure_ascii=ascii_only)
            yield "its JSON was parsed and written again", text.encode(errors="surrogatepass")


def _urls(case: _Case) -> Iterator[str]:
    """What the sender may have instead of the configured URL."""
    parts = urlsplit(case.source.url)
    host = {name.lower(): value for name, value in case.headers}.get("host", parts.netloc)
    seen = {case.url}
    for scheme in ("https", "http"):
        for netloc in dict.fromkeys((parts.netloc, host)):
            for path in (parts.path, parts.path.rstrip("/"), parts.path.rstrip("/") + "/"):
                for query in dict.fromkeys((case.query, parts.query, "")):
                    url = f"{scheme}://{netloc}{path}" + (f"?{query}" if query else "")
                    if url not in seen:
                        seen.add(url)
                        yield url
