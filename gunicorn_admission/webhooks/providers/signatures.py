"""The forms of signature headers that several senders share."""

from __future__ import annotations

from collections.abc import Callable

from gunicorn_admission.webhooks.providers.outcome import Reason, Refusal
from gunicorn_admission.webhooks.providers.provider import Claim, Request
from gunicorn_admission.webhooks.providers.timestamps import from_seconds

__all__ = ["prefixed", "signed_time", "timed_list"]


def prefixed(request: Request, header: str, prefix: str) -> bytes:
    """
    Return the signature of a header like ``sha256=757107ea...``.

    Raises:
        Refusal: The header is absent, unusable or has another prefix.
    """
    value = request.headers.require(header)
    if not value.startswith(prefix):
        raise Refusal(Reason.MALFORMED_HEADER, header)
    return value[len(prefix) :].encode()


def signed_time(
    request: Request, header: str, read: Callable[[str], float | None]
) -> tuple[bytes, float]:
    """
    Return the time of signing in a header of its own: as it was signed, and in seconds.

    Args:
        request: Has the header.
        header: Name of the header.
        read: From its text to seconds since the epoch, or ``None`` where it is no time.

    Raises:
        Refusal: The header is absent, unusable or no such time.
    """
    text = request.headers.require(header)
    timestamp = read(text)
    if timestamp is None:
        raise Refusal(Reason.MALFORMED_HEADER, header)
    return text.encode(), timestamp


def timed_list(
    request: Request, header: str, *, time: str, signature: str, between: str, behind_time: bytes
) -> Claim:
    """
    Read a header like ``t=1492774577,v1=...,v1=...``, in which a rotation has several signatures.

    Args:
        request: What was signed is the time, ``behind_time`` and the body.
        header: Name of the header.
        time: Name of the time in it, in seconds since the epoch.
        signature: Name of each signature in it; other names are versions that we do not take.
        between: Separates its parts.
        behind_time: Separates time and body where they are signed.

    Raises:
        Refusal: There is not one time and at least one signature in it.
    """
    times: list[str] = []
    signatures: list[bytes] = []
    for part in request.headers.require(header).split(between):
        name, _, value = part.strip().partition("=")
        if "," in value:  # the header came twice and a server joined it
            raise Refusal(Reason.DUPLICATE_HEADER, header)
        if name == time:
            times.append(value)
        elif name == signature:
            signatures.append(value.encode())
    timestamp = from_seconds(times[0]) if len(times) == 1 else None
    if timestamp is None or not signatures:
        raise Refusal(Reason.MALFORMED_HEADER, header)
    return Claim(
        signatures=tuple(signatures),
        messages=((times[0].encode(), behind_time, request.body),),
        timestamp=timestamp,
    )
