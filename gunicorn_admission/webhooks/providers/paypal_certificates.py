"""The certificates that PayPal signs with: where they may come from, fetched once and kept."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Final

__all__ = ["Certificates", "fetch", "is_trusted"]

# All of the URL is bound: a host that only begins or ends like PayPal's is not PayPal's.
_TRUSTED: Final = re.compile(
    r"https://api(?:-m)?(?:\.sandbox)?\.paypal\.com/v1/notifications/certs/[A-Za-z0-9_-]{1,100}",
    re.ASCII,
)
_LARGEST: Final = 64 * 1024
_TIMEOUT: Final = 3.0
_AGAIN_AFTER: Final = 60.0
_MOST_KEPT: Final = 32
_MOST_FAILURES: Final = 1000


def is_trusted(url: str) -> bool:
    """Whether a URL is one of those where PayPal keeps its certificates."""
    return _TRUSTED.fullmatch(url) is not None


def fetch(url: str) -> bytes | None:
    """
    Fetch a certificate, or return ``None``; at most 64 KiB, and no redirect is followed.

    The proxy of the environment is used, as of ``urllib``. Each wait ends after 3 seconds.
    """
    from urllib.request import HTTPRedirectHandler, build_opener  # costs 40 ms, needed once

    class Stay(HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    try:
        with build_opener(Stay).open(url, timeout=_TIMEOUT) as answer:
            body: bytes = answer.read(_LARGEST + 1)
            return body if answer.status == 200 and len(body) <= _LARGEST else None
    except (OSError, ValueError):  # refusals, timeouts, TLS; also answers that are no HTTP
        return None


class Certificates:
    """
    Certificates by URL; each is fetched once, and a failure is remembered for a minute.

    A stranger who invents URLs causes short fetches, one at a time, in bounded tables, and
    never delays a request whose certificate is known. A request that would have to wait longer
    than one fetch takes is told that there is no certificate now, and comes again.

    Args:
        fetch: Gets a certificate from a trusted URL, or ``None``.
        clock: Seconds that only grow.

    Thread safety: reads of the tables are single dictionary look-ups; ``_fetching`` is held
    while one thread fetches and writes.
    """

    def __init__(
        self,
        fetch: Callable[[str], bytes | None] = fetch,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._fetching = threading.Lock()
        self._kept: dict[str, bytes] = {}
        self._failed_at: dict[str, float] = {}

    def __call__(self, url: str) -> bytes | None:
        """Return the certificate at a URL, in PEM, or ``None`` while it cannot be had."""
        if not is_trusted(url):
            return None
        known = self._kept.get(url)
        if known is not None or not self._fetching.acquire(timeout=_TIMEOUT):
            return known
        try:
            return self._kept.get(url) or self._fetch_anew(url)
        finally:
            self._fetching.release()

    def _fetch_anew(self, url: str) -> bytes | None:
        failed_at = self._failed_at.get(url)
        if failed_at is not None and self._clock() - failed_at < _AGAIN_AFTER:
            return None
        certificate = self._fetch(url)
        if certificate is None:
            _make_room(self._failed_at, _MOST_FAILURES)
            self._failed_at[url] = self._clock()
        else:
            _make_room(self._kept, _MOST_KEPT)
            self._kept[url] = certificate
            self._failed_at.pop(url, None)
        return certificate


def _make_room(table: dict[str, bytes] | dict[str, float], most: int) -> None:
    """Drop the oldest entry of a full table."""
    if len(table) >= most:
        del table[next(iter(table))]
