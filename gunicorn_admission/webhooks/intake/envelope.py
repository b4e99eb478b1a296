"""What is kept of a request beside its events: headers without credentials, trace context."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from gunicorn_admission.webhooks.providers import Verified

__all__ = ["Envelope", "content_type_of", "headers_of", "kept_headers", "traceparent_of"]

#: Names whose values open something. Signatures are no credentials: they fit one body only.
#: GitLab's token is both, and is left out.
_CREDENTIAL: Final = re.compile(
    r"authorization|proxy-authorization|cookie|set-cookie|x-gitlab-token"
    r"|.*(?:password|passwd|secret|credential|session|csrf).*"
    r"|.*(?:api-?key|auth-token|access-token|security-token|id-token|jwt-assertion)"
)
#: Characters of one value, and of all names and values together, that are kept.
_LONGEST: Final = 4096
_MOST: Final = 32_768

_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


@frozen(kw_only=True)
class Envelope:
    """
    One verified request.

    Attributes:
        source: Name of the source.
        verified: What the sender's rules say of it.
        key_id: Of the secret that matched.
        headers: Pairs, without credentials.
        content_type: Or ``None``.
        traceparent: W3C trace context, or ``None``.
        received_at: Microseconds since the epoch.
        body_sha256: Of the whole body.
    """

    source: str
    verified: Verified
    key_id: str
    headers: list[list[str]]
    content_type: str | None
    traceparent: str | None
    received_at: int
    body_sha256: bytes


def headers_of(environ: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return all request headers of a WSGI environ, with names as they are usually written."""
    found = [
        (key[5:].replace("_", "-").title(), str(value))
        for key, value in environ.items()
        if key.startswith("HTTP_")
    ]
    content_type = environ.get("CONTENT_TYPE")
    if content_type:
        found.append(("Content-Type", str(content_type)))
    return found


def kept_headers(headers: list[tuple[str, str]]) -> list[list[str]]:
    """Return what may be stored: no credentials, nothing endless, nothing a database refuses."""
    kept, room = [], _MOST
    for name, value in headers:
        if len(value) > _LONGEST or _is_credential(name):
            continue
        room -= len(name) + len(value)
        if room < 0:
            break
        kept.append([name, _storable(value)])
    return kept


def content_type_of(environ: Mapping[str, Any]) -> str | None:
    """Return what the sender says its body is, or ``None``."""
    return _storable(str(environ.get("CONTENT_TYPE") or "")[:255]) or None


def _storable(text: str) -> str:
    """Text as WSGI has it, one character a byte; databases take no zero byte in a text."""
    return text.encode("latin-1", "replace").decode("latin-1").replace("\x00", "")


@functools.lru_cache(maxsize=256)
def _is_credential(name: str) -> bool:
    return _CREDENTIAL.fullmatch(name.lower()) is not None


def traceparent_of(environ: Mapping[str, Any]) -> str | None:
    """Return the trace context of a request where it has a valid one."""
    text = str(environ.get("HTTP_TRACEPARENT") or "")
    return text if _TRACEPARENT.fullmatch(text) else None
