"""Sends the events of one provider to one URL, and retries by that provider's rules."""

from __future__ import annotations

import base64
import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from .payloads import Sign, event
from .rules import Rules, rules_of
from .signing import Sent

#: Posts a request, given where to and how long to wait; the status and headers of the answer.
Post = Callable[[str, Sent, float], "Answered"]


@dataclass(frozen=True)
class Answered:
    """An answer; ``status`` is ``None`` where none came in time."""

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Outcome:
    """What became of all events that were sent."""

    delivered: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    disabled: bool = False
    answers: Counter[str] = field(default_factory=Counter)
    retried: int = 0


def post(where: str, sent: Sent, deadline: float) -> Answered:
    """Send a request and give up after the deadline, as providers do."""
    parts = urlsplit(where)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=deadline)
    try:
        headers = {"Content-Type": "application/json", **sent.headers}
        connection.request("POST", target, sent.body, headers)
        response = connection.getresponse()
        response.read()
        return Answered(response.status, {k.lower(): v for k, v in response.getheaders()})
    except (OSError, http.client.HTTPException):
        return Answered(None)
    finally:
        connection.close()


class Simulator:
    """
    A stand-in for one provider. It is not the provider: it does what its documentation says.

    Args:
        provider: Its name.
        key: What it signs with; see :func:`signing_key`.
        where: The URL to post to.
        public_url: What it takes for its URL, where that is signed; by default ``where``.
        speed: How many times faster than real its retries come.
        post: Sends a request.
        clock: Seconds since the epoch.
        sleep: Waits.

    Thread safety: :meth:`deliver` may be called from many threads.
    """

    def __init__(
        self,
        provider: str,
        key: Any,
        where: str,
        *,
        public_url: str | None = None,
        speed: float = 1.0,
        post: Post = post,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.rules: Rules = rules_of(provider)
        self.outcome = Outcome()
        self._key, self._where, self._speed = key, where, speed
        self._public_url = public_url or where
        self._post, self._clock, self._sleep = post, clock, sleep
        self._failures = 0
        self._lock = threading.Lock()  # guards the outcome and the run of failures

    def deliver(self, number: int, text: str = "10 €, 🎉") -> bool:
        """Send one event until it is taken or given up; whether it was taken."""
        event_id, sign = event(self.rules.provider, number, self._public_url, text)
        sent = sign(self._key, self._clock())
        for attempt, delay in enumerate((0.0, *self.rules.delays)):
            if self.outcome.disabled:
                break
            if attempt:
                sent = self._again(sent, sign, attempt, delay)
            answered = self._post(self._where, sent, self.rules.deadline)
            if self._took(event_id, answered, attempt):
                return True
            if not self.rules.retries(answered.status):
                break
            self._wait(answered)
            if answered.headers.get("x-slack-no-retry") == "1":
                break
        with self._lock:
            self.outcome.lost.append(event_id)
        return False

    def _again(self, sent: Sent, sign: Sign, attempt: int, delay: float) -> Sent:
        self._sleep(delay / self._speed)
        if self.rules.signed_anew:
            sent = sign(self._key, self._clock())
        return sent._replace(headers={**sent.headers, **_numbered(self.rules.provider, attempt)})

    def _wait(self, answered: Answered) -> None:
        text = answered.headers.get("retry-after", "")
        if self.rules.respects_retry_after and text.isdigit():
            self._sleep(int(text) / self._speed)

    def _took(self, event_id: str, answered: Answered, attempt: int) -> bool:
        status = answered.status
        taken = status is not None and self.rules.succeeded(status)
        most = self.rules.disabled_after
        with self._lock:
            self.outcome.answers[str(status or "none")] += 1
            self.outcome.retried += attempt > 0
            self._failures = 0 if taken else self._failures + 1
            if taken:
                self.outcome.delivered.append(event_id)
            elif most is not None and self._failures > most:
                self.outcome.disabled = True
        return taken


def _numbered(provider: str, attempt: int) -> dict[str, str]:
    """What a provider says about a retry in its headers."""
    return {
        "slack": {"X-Slack-Retry-Num": str(attempt), "X-Slack-Retry-Reason": "http_error"},
        "bitbucket": {"X-Attempt-Number": str(attempt + 1)},
        "square": {"square-retry-number": str(attempt), "square-retry-reason": "http_error"},
    }.get(provider, {})


def signing_key(provider: str, secret: str) -> Any:
    """
    Return what a provider signs with, for a secret as the receiver has it.

    SendGrid signs with a private key, which a receiver never has: give it in PEM.
    """
    if provider in ("standard_webhooks", "gitlab"):
        text = secret.removeprefix("whsec_")
        return base64.b64decode(text + "=" * (-len(text) % 4))
    if provider == "sendgrid":
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        return load_pem_private_key(secret.encode(), None)
    return secret
