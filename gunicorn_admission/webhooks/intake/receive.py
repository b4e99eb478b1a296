"""
One request, from its first byte to its answer: find the source, read, verify, commit, answer.

The order is fixed. Nothing changes any state before the signature is good, nothing is answered
2xx before the commit, and whatever goes wrong on our side is a 503 and never a silent loss.
"""

from __future__ import annotations

import hashlib
import logging
import math
import random
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from gunicorn_admission.classify.announce import announce
from gunicorn_admission.settings.patterns import parse_pattern
from gunicorn_admission.settings.rules import RouteRule
from gunicorn_admission.webhooks.fanout.routing import Routing
from gunicorn_admission.webhooks.intake.answer import Answer, Result, answer, challenge
from gunicorn_admission.webhooks.intake.body import Incomplete, TooLarge, drain, read_body
from gunicorn_admission.webhooks.intake.envelope import (
    Envelope,
    content_type_of,
    headers_of,
    kept_headers,
    traceparent_of,
)
from gunicorn_admission.webhooks.intake.inbox import Batch, NonceReused, Router, keep
from gunicorn_admission.webhooks.intake.notes import Notes
from gunicorn_admission.webhooks.intake.priority import raise_priority
from gunicorn_admission.webhooks.intake.source import Source
from gunicorn_admission.webhooks.intake.sources import Ready, Sources, StoreUnavailable
from gunicorn_admission.webhooks.metrics import Metrics, recorder
from gunicorn_admission.webhooks.pages import Alarm, Channel, choose_channels
from gunicorn_admission.webhooks.providers import Reason, Refused
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.errors import StoreError, StoreTimeout

__all__ = ["Receiver"]

#: Stands for all names that are no source: a stranger must not make metrics.
_UNKNOWN: Final = "(unknown)"
#: Why a genuine event may fail to verify by our own fault.
_OURS: Final = {Reason.KEY_UNAVAILABLE, Reason.URL_MISSING, Reason.NO_ACTIVE_SECRET}
#: What else a signature fails by while one of the secrets could not be read.
_OF_SECRET: Final = {Reason.WRONG_SIGNATURE}
#: Part of the sender's deadline that is kept for the way back, and its bounds in seconds.
_MARGIN: Final = 0.15, 0.1, 1.0


class Receiver:
    """
    Takes webhooks in, whatever the framework in front.

    Args:
        store: Where events are kept.
        sources: Configured in code; more may be in the store.
        prefix: Path in front of the source's name, as it is announced to admission.
        router: Who decides which consumers have an event; by default the subscriptions.
        metrics: Counts.
        refresh: Seconds after which sources and secrets are read again.
        pages: Channels that are told when events cannot enter; by default those of the
            environment's ``GUNICORN_ADMISSION_PAGES``.
        retry_after: Smallest and largest ``Retry-After`` of a 503, in seconds.
        clock: Seconds since the epoch, which signed times are compared with.
        monotonic: Seconds, for deadlines.
        chance: Uniform in [0, 1), for jitter.

    Raises:
        ConfigError: A source or secret cannot work.

    Thread safety: may be called from any thread; made before a fork or after.
    """

    def __init__(
        self,
        store: Store,
        sources: Iterable[Source] = (),
        *,
        prefix: str = "/hooks",
        router: Router | None = None,
        metrics: Metrics = recorder,
        refresh: float = 5.0,
        pages: Iterable[str | Channel] | None = None,
        retry_after: tuple[float, float] = (5.0, 15.0),
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.store = store
        self.prefix = prefix.rstrip("/")
        self.sources = Sources(
            sources, store, refresh=refresh, changed=self._announce, monotonic=monotonic
        )
        self._router: Router = Routing(store) if router is None else router
        self._retry_after = retry_after
        self._clock = clock
        self._monotonic = monotonic
        self._chance = chance
        self._notes = Notes(metrics, monotonic, Alarm(choose_channels(pages), clock=clock))
        announce(self.rules)

    def rules(self) -> list[RouteRule]:
        """Return what the sources say about their requests, for admission in front of them."""
        return [self._rule(source) for source in self.sources.all()]

    def peek(self, name: str) -> Ready | None:
        """Return a source as :meth:`receive` will find it, or ``None``; never raises."""
        try:
            return self.sources.find(name)
        except StoreUnavailable:
            return None

    def receive(
        self,
        name: str,
        environ: Mapping[str, Any],
        read: Callable[[int, float], bytes] | None = None,
    ) -> Answer:
        """
        Take one request in; never raises.

        Args:
            name: Of the source, from the path.
            environ: Of WSGI.
            read: Returns the raw body, given the most bytes and the longest silence in
                seconds, and raises as :func:`~gunicorn_admission.webhooks.intake.body.read_body`;
                for frameworks that may have read it already.
        """
        label = _UNKNOWN
        began = self._monotonic() - _waited(environ)
        try:
            made, label = self._receive(name, environ, read, began)
        except Exception as error:
            # Not the text of the error: a database's may show what was to be stored.
            label = name if self.sources.knows(name) else label
            self._notes.failed(logging.ERROR, Result.ERROR, label, type(error).__name__, error)
            made = self._answer(Result.ERROR)
        self._notes.ended(label, made.result)
        return made

    def _receive(
        self,
        name: str,
        environ: Mapping[str, Any],
        read: Callable[[int, float], bytes] | None,
        began: float,
    ) -> tuple[Answer, str]:
        try:
            ready = self.sources.find(name)
        except StoreUnavailable:
            drain(environ, _SMALL)
            return self._answer(Result.UNAVAILABLE), _UNKNOWN
        if ready is None:
            drain(environ, _SMALL)
            return self._answer(Result.UNKNOWN), _UNKNOWN
        source = ready.source
        if environ["REQUEST_METHOD"] != "POST":
            drain(environ, _SMALL)
            return self._answer(Result.METHOD), source.name
        if not source.enabled:
            drain(environ, source.largest)
            return self._answer(Result.DISABLED), source.name
        try:
            if read is None:
                body = read_body(environ, source.largest, source.patience)
            else:
                body = read(source.largest, source.patience)
        except TooLarge:
            drain(environ, source.largest)
            about = f"more than {source.largest} bytes; max_body of the source bounds it"
            self._notes.failed(logging.ERROR, Result.TOO_LARGE, source.name, about)
            return self._answer(Result.TOO_LARGE), source.name
        except Incomplete as error:
            about = f"{error.got} of {error.announced} bytes came"
            if error.got == 0:
                about += "; did something in front of the intake read the body?"
            self._notes.failed(logging.WARNING, Result.INCOMPLETE, source.name, about)
            return self._answer(Result.INCOMPLETE), source.name
        return self._take(ready, body, environ, began), source.name

    def _take(self, ready: Ready, body: bytes, environ: Mapping[str, Any], began: float) -> Answer:
        """Verify a body and keep what is in it."""
        source, headers = ready.source, headers_of(environ)
        now = self._clock()
        url = source.signed_url(str(environ.get("QUERY_STRING") or ""))
        outcome = source.provider.verify(body, headers, url, ready.secrets, now)
        if isinstance(outcome, Refused):
            return self._refuse(ready, outcome, body, environ)
        self._notes.genuine(ready, outcome, now)
        if outcome.challenge is not None:
            return challenge(outcome.challenge)
        if not outcome.items:
            return self._answer(Result.EMPTY)
        if source.promote is not None:
            raise_priority(environ, source.promote(outcome))
        envelope = Envelope(
            source=source.name,
            verified=outcome,
            key_id=ready.key_ids[outcome.secret],
            headers=kept_headers(headers),
            content_type=content_type_of(environ),
            traceparent=traceparent_of(environ),
            received_at=round(now * 1e6),
            body_sha256=hashlib.sha256(body).digest(),
        )
        return self._keep(source, Batch.of(envelope, body), began)

    def _keep(self, source: Source, batch: Batch, began: float) -> Answer:
        """Commit, in what is left of the sender's deadline."""
        verified = self._monotonic()
        share, least, most = _MARGIN
        patience = source.patience - min(max(share * source.patience, least), most)
        left = began + patience - verified
        if left <= 0:
            return self._late(source)
        try:
            kept = self.store.write(
                lambda connection: keep(connection, batch, self._router), timeout=left
            )
        except NonceReused:
            self._notes.reused(source.name)
            return self._answer(Result.REFUSED)
        except StoreTimeout:
            return self._late(source)
        except StoreError as error:
            self._notes.failed(logging.ERROR, Result.UNAVAILABLE, source.name, str(error))
            return self._answer(Result.UNAVAILABLE)
        self._notes.kept(source.name, kept, self._monotonic() - verified)
        return self._answer(Result.STORED if kept.stored else Result.DUPLICATE)

    def _late(self, source: Source) -> Answer:
        about = f"not committed within the deadline of {source.patience:g} s"
        self._notes.failed(logging.ERROR, Result.LATE, source.name, about)
        return self._answer(Result.LATE)

    def _refuse(
        self, ready: Ready, refused: Refused, body: bytes, environ: Mapping[str, Any]
    ) -> Answer:
        reason = refused.reason
        ours = reason in _OURS or (reason in _OF_SECRET and not ready.whole)
        self._notes.refused(ready, refused, body, environ, ours=ours)
        return self._answer(Result.UNVERIFIABLE if ours else Result.REFUSED)

    def _answer(self, result: Result) -> Answer:
        low, high = self._retry_after
        return answer(result, max(1, math.ceil(low + (high - low) * self._chance())))

    def _rule(self, source: Source) -> RouteRule:
        facts = source.provider.facts
        failures = facts.disable.failures if facts.disable else None
        return RouteRule(
            pattern=parse_pattern(f"={self.prefix}/{source.name}"),
            name=f"hooks/{source.name}",
            priority=source.priority,
            deadline=source.patience,
            retries=facts.retries_at_all,
            # Each worker counts for itself, and what fails elsewhere counts too: turn back in time.
            max_refusals=None if failures is None else max(1, failures // 2),
        )

    def _announce(self) -> None:
        """Tell admission of new sources; what it knows already it keeps until the next start."""
        announce(self.rules)


_SMALL: Final = 65536


def _waited(environ: Mapping[str, Any]) -> float:
    """Seconds that the request waited in admission, which the sender's deadline counts too."""
    waited = environ.get("gunicorn_admission.queue_delay")
    return waited if isinstance(waited, float) and waited > 0 else 0.0
