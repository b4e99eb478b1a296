"""What a sender is told: the few answers of the intake, and who is to blame in each."""

from __future__ import annotations

import enum
import json
from http import HTTPStatus
from typing import Final

from attrs import frozen

__all__ = ["Answer", "Result", "answer", "challenge"]


class Result(enum.Enum):
    """How a request ended; a closed list, whose values are metric labels."""

    STORED = "stored"
    DUPLICATE = "duplicate"  # all of its events were stored before
    CHALLENGE = "challenge"  # a question that a sender asks of a new URL
    EMPTY = "empty"  # genuine, and nothing in it to keep
    REFUSED = "refused"  # the signature is not good
    UNKNOWN = "unknown"  # no such source
    METHOD = "method"  # not a POST
    TOO_LARGE = "too_large"
    INCOMPLETE = "incomplete"  # the body did not come whole
    DISABLED = "disabled"  # by an operator
    UNVERIFIABLE = "unverifiable"  # we lack what it takes to verify it
    LATE = "late"  # not committed before the sender gives up
    UNAVAILABLE = "unavailable"  # the store cannot be reached
    ERROR = "error"  # a bug of ours


#: Status, and what the body says.
_SAID: Final = {
    Result.STORED: (200, "The event is stored."),
    Result.DUPLICATE: (200, "The event was stored before."),
    Result.EMPTY: (200, "There is nothing to store."),
    Result.REFUSED: (401, "The signature is not accepted."),
    Result.UNKNOWN: (404, "There is no such source."),
    Result.METHOD: (405, "Webhooks are posted."),
    Result.TOO_LARGE: (413, "The body is larger than this source may send."),
    Result.INCOMPLETE: (503, "The body did not arrive whole."),
    Result.DISABLED: (503, "This source takes no events for now."),
    Result.UNVERIFIABLE: (503, "The signature cannot be checked for now."),
    Result.LATE: (503, "The event could not be stored in time."),
    Result.UNAVAILABLE: (503, "The event could not be stored."),
    Result.ERROR: (503, "The event could not be stored."),
}


@frozen(kw_only=True)
class Answer:
    """
    One answer, for any framework.

    Attributes:
        result: What happened.
        status: HTTP status code.
        headers: Pairs, without Content-Length.
        body: Bytes.
    """

    result: Result
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def status_line(self) -> str:
        """Status code and phrase, as WSGI wants them."""
        return f"{self.status} {HTTPStatus(self.status).phrase}"


def answer(result: Result, retry_after: int) -> Answer:
    """
    Make the answer to a request.

    2xx only for what is stored. Never 410 or 3xx, which end subscriptions. 503 for all that may
    be our fault or pass, since several senders do not retry after other errors.

    Args:
        result: Any but a challenge.
        retry_after: Whole seconds, jittered; used with a 503 (RFC 9110 section 10.2.3).
    """
    status, detail = _SAID[result]
    headers = [("Cache-Control", "no-store")]
    if status < 300:
        said: dict[str, object] = {"result": result.value}
        headers.append(("Content-Type", "application/json"))
    else:
        phrase = HTTPStatus(status).phrase
        said = {"type": "about:blank", "title": phrase, "status": status, "detail": detail}
        headers.append(("Content-Type", "application/problem+json"))
    if status == 503:
        said["retry_after"] = retry_after
        headers.append(("Retry-After", str(retry_after)))
    elif status == 401:
        headers.append(("WWW-Authenticate", "Webhook-Signature"))  # RFC 9110 section 15.5.2
    elif status == 405:
        headers.append(("Allow", "POST"))
    return Answer(
        result=result, status=status, headers=tuple(headers), body=json.dumps(said).encode() + b"\n"
    )


def challenge(text: str) -> Answer:
    """Answer a verified question with its text, which no browser may take for a page."""
    headers = (
        ("Content-Type", "text/plain; charset=utf-8"),
        ("X-Content-Type-Options", "nosniff"),
        ("Cache-Control", "no-store"),
    )
    return Answer(result=Result.CHALLENGE, status=200, headers=headers, body=text.encode())
