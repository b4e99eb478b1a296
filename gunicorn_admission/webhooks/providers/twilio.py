"""Twilio: an HMAC of the full URL and the decoded form, or of a URL that holds the body's hash."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from datetime import date
from typing import ClassVar, Final, Literal
from urllib.parse import unquote_to_bytes

from attrs import frozen

from gunicorn_admission.webhooks.providers.batch import Entry, read_batch
from gunicorn_admission.webhooks.providers.facts import Coverage, EventIdAt, Facts, Retries
from gunicorn_admission.webhooks.providers.outcome import IdSource, Reason, Refusal
from gunicorn_admission.webhooks.providers.payload import Json, as_id, as_object, as_text
from gunicorn_admission.webhooks.providers.provider import Claim, Description, Provider, Request
from gunicorn_admission.webhooks.providers.timestamps import from_iso

__all__ = ["Twilio"]

_SETTINGS: Final = "X-Twilio-Webhooks-Signature-Settings"
_ALGORITHMS: Final[dict[str, Literal["sha1", "sha256"]]] = {
    "HMAC_SHA1": "sha1",
    "HMAC_SHA256": "sha256",
}
_FORM: Final = "application/x-www-form-urlencoded"
# All fields are sorted before the signature can be checked.
_MOST_FIELDS: Final = 1000
_STATUSES: Final = (b"MessageStatus", b"CallStatus", b"SmsStatus")
_BODY_HASH: Final = re.compile(r"[?&]bodySHA256=([0-9a-f]{64})(?=[&#]|$)", re.ASCII)
_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>(?:[^/?#@]*@)?(?:\[[^\]/?#]*\]|[^/?#:@]*))"
    r"(?P<port>:[0-9]+)?(?P<rest>.*)",
    re.ASCII | re.DOTALL,
)


@frozen(kw_only=True)
class Twilio(Provider):
    """
    Callbacks of Twilio. The secret is the primary auth token, or that of a shared key.

    The URL must be the configured one, with the query string as it arrived: Twilio signs it, and
    puts the hash of a body that is no form into it.
    """

    in_base64: ClassVar[bool] = True

    facts: ClassVar[Facts] = Facts(
        name="twilio",
        title="Twilio",
        docs="https://www.twilio.com/docs/usage/webhooks/webhooks-security",
        checked=date(2026, 11, 30),
        covers=Coverage.URL_AND_FORM,
        event_id=EventIdAt(header="I-Twilio-Idempotency-Token", signed=False),
        deadline=15.0,
        retries=Retries(count=0, after="none, unless #rc= and #rp= of the URL ask for them"),
        respects_retry_after=False,
        unsure=("deadline", "retries", "respects_retry_after"),
        notes=(
            "Names and values are signed run together: a=bc and ab=c have the same signature.",
            "Nothing signed is a time: a captured request can be sent again for ever, and only "
            "its id stops it.",
            "#ct=, #rt= and #tt= of the URL change the timeouts; a fallback URL is asked next.",
            "A shared key (beta) signs with SHA-256 and says so in a header.",
        ),
    )

    def claim(self, request: Request) -> Claim:
        """Read ``X-Twilio-Signature``; what it signs depends on the kind of body."""
        signature = request.headers.require("X-Twilio-Signature").encode()
        url = request.public_url()
        hashed = _BODY_HASH.search(url)
        fields: tuple[bytes, ...] = ()
        if hashed is None:
            if _is_form(request):
                fields = tuple(_run_together(_read_form(request.body)))
            elif request.body:
                raise Refusal(Reason.BODY_NOT_SIGNED)
        urls = _spellings(url)
        if hashed is not None and not _is_hash(hashed.group(1), request.body):
            urls = ()
        return Claim(
            signatures=(signature,),
            messages=tuple((one.encode(errors="surrogatepass"), *fields) for one in urls),
            algorithm=_algorithm(request.headers.find(_SETTINGS)),
        )

    def describe(self, request: Request) -> Description:
        """Read the id from the header, and the status or the events from the body."""
        event_id = request.headers.find_id("I-Twilio-Idempotency-Token")
        if not _is_form(request):
            return Description(
                event_id=event_id,
                id_source=IdSource.HEADER,
                items=read_batch(request.body, _read_event),
            )
        fields = dict(_read_form(request.body))
        status = next((fields[name] for name in _STATUSES if name in fields), b"")
        return Description(
            event_id=event_id,
            id_source=IdSource.HEADER,
            event_type=as_text(status.decode(errors="replace")),
        )


def _algorithm(settings: str | None) -> Literal["sha1", "sha256"]:
    name = "HMAC_SHA1"
    for part in (settings or "").split(","):
        key, _, value = part.partition("=")
        if key.strip() == "algorithm":
            name = value.strip()
    algorithm = _ALGORITHMS.get(name)
    if algorithm is None:
        raise Refusal(Reason.UNSUPPORTED_ALGORITHM, _SETTINGS)
    return algorithm


def _is_form(request: Request) -> bool:
    kind = request.headers.find("Content-Type") or ""
    return kind.partition(";")[0].strip().lower() == _FORM


def _is_hash(given: str, body: bytes) -> bool:
    return hmac.compare_digest(given, hashlib.sha256(body).hexdigest())


def _read_form(body: bytes) -> list[tuple[bytes, bytes]]:
    if body.count(b"&") >= _MOST_FIELDS:
        raise Refusal(Reason.MALFORMED_BODY)
    pairs = (field.replace(b"+", b" ").partition(b"=") for field in body.split(b"&") if field)
    return [(unquote_to_bytes(name), unquote_to_bytes(value)) for name, _, value in pairs]


def _run_together(fields: Iterable[tuple[bytes, bytes]]) -> Iterable[bytes]:
    """Yield names and values as Twilio signs them: sorted, and the same pair once."""
    for name, value in sorted(set(fields)):
        yield name
        yield value


def _spellings(url: str) -> tuple[str, ...]:
    """Return the URL as it is and with or without its port: Twilio is not consistent there."""
    found = _URL.fullmatch(url)
    if found is None:
        return (url,)
    scheme, host, port, rest = found.group("scheme", "host", "port", "rest")
    standard = "" if port else ":443" if scheme == "https" else ":80"
    return (url, f"{scheme}://{host}{standard}{rest}")


def _read_event(event: Json) -> Entry:
    """Read one of the CloudEvents that Event Streams sends."""
    fields = as_object(event)
    return Entry(
        as_id(fields.get("id")),
        as_text(fields.get("type")),
        from_iso(as_text(fields.get("time"))),
    )
