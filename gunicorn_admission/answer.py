"""
The refusal as a client sees it: an honest status, when to come back, and why.

RFC 9110 sections 10.2.3 (Retry-After, delta-seconds) and 15.6.4 (503); RFC 9457 (problem
details); RFC 9111 section 5.2.2.5 (no-store: a cached 503 would outlive the overload).
"""

from __future__ import annotations

import json
import math
import time
from email.utils import formatdate
from http import HTTPStatus

from gunicorn_admission.core.policy import SECOND
from gunicorn_admission.core.types import Reason

__all__ = ["REASON_HEADER", "Answer", "answer", "date_line", "raw_answer"]

REASON_HEADER = "Admission-Reason"

_DETAILS = {
    Reason.OVERLOADED: "All capacity is in use by requests of at least this priority.",
    Reason.PREDICTED_WAIT: "The queue is longer than a request of this priority may wait.",
    Reason.QUEUE_FULL: "The queue is full.",
    Reason.EVICTED: "The request gave its place in the queue to one of higher priority.",
    Reason.EXPIRED: "The request waited as long as it may.",
    Reason.DEADLINE: "The request could not be answered before its sender gives up.",
    Reason.ABANDONED: "The client left while the request waited.",
    Reason.STALLED: "Requests of this kind do not finish at present.",
    Reason.PAUSED: "The service is paused.",
    Reason.STOPPING: "The worker is shutting down.",
}

#: Rendered answers by their few distinct forms, bounded by reasons x seconds x 2 x 2, as
#: what stands before and after the date.
_rendered: dict[tuple[int, Reason, int, bool, bool], tuple[bytes, bytes]] = {}
_MOST_RENDERED = 4096


class Answer:
    """
    One refusal, ready to be sent.

    Attributes:
        status: Status line without the version, such as ``"503 Service Unavailable"``.
        headers: Pairs for ``start_response``.
        body: The problem details, as JSON.
    """

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: str, headers: list[tuple[str, str]], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


def retry_seconds(retry_after_ns: int) -> int:
    """Whole seconds for the header; at least 1, since 0 invites an immediate retry."""
    return max(1, math.ceil(retry_after_ns / SECOND))


def answer(reason: Reason, retry_after_ns: int, status: int = 503) -> Answer:
    """
    Make the refusal for a WSGI application to return.

    Args:
        reason: Why; shown in the body and in the ``Admission-Reason`` header.
        retry_after_ns: When a retry has a chance, already jittered. Nanoseconds.
        status: 503, or 429 where the sender is the cause.
    """
    seconds = retry_seconds(retry_after_ns)
    phrase = HTTPStatus(status).phrase
    problem = {
        "type": "about:blank",
        "title": phrase,
        "status": status,
        "detail": f"{_DETAILS[reason]} Retry after {seconds} s.",
        "reason": reason.value,
        "retry_after": seconds,
    }
    body = json.dumps(problem).encode() + b"\n"
    headers = [
        ("Content-Type", "application/problem+json"),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
        ("Retry-After", str(seconds)),
        (REASON_HEADER, reason.value),
    ]
    return Answer(f"{status} {phrase}", headers, body)


def raw_answer(
    reason: Reason, retry_after_ns: int, status: int, *, keep_alive: bool, with_body: bool
) -> bytes:
    """
    Return the bytes of a whole HTTP/1.1 response.

    Args:
        reason, retry_after_ns, status: As for :func:`answer`.
        keep_alive: Whether the connection stays open.
        with_body: False for HEAD.
    """
    key = status, reason, retry_seconds(retry_after_ns), keep_alive, with_body
    rendered = _rendered.get(key)
    if rendered is None:
        made = answer(reason, retry_after_ns, status)
        before = f"HTTP/1.1 {made.status}\r\nServer: gunicorn\r\n".encode("latin-1")
        lines = ["Connection: keep-alive" if keep_alive else "Connection: close"]
        lines += [f"{name}: {value}" for name, value in made.headers]
        after = "\r\n".join([*lines, "", ""]).encode("latin-1")
        if with_body:
            after += made.body
        if len(_rendered) >= _MOST_RENDERED:
            _rendered.clear()
        rendered = _rendered[key] = before, after
    before, after = rendered
    return before + date_line() + after


#: The last second for which a date was rendered, and that line.
_date: tuple[int, bytes] = 0, b""


def date_line() -> bytes:
    """
    Return the Date field of an answer that is made now, with its line end.

    An origin server with a clock sends one (RFC 9110 section 6.6.1). Rendered once a second.
    """
    global _date
    second = int(time.time())
    date = _date  # read once: another thread may replace it
    if date[0] != second:
        date = _date = second, f"Date: {formatdate(second, usegmt=True)}\r\n".encode()
    return date[1]
