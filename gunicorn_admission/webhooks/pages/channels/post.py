"""How a page is posted; shared by the channels that speak HTTP."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping

import httpx

from gunicorn_admission.webhooks.pages.channels.channel import ChannelError, address

__all__ = ["post_json"]

_TIMEOUT = httpx.Timeout(10.0, connect=3.0)


class _Quiet(threading.local):
    """httpx logs each URL at INFO; those of pages hold secrets, so it is quiet about these."""

    is_on = False

    def filter(self, record: logging.LogRecord) -> bool:
        return not self.is_on


_quiet = _Quiet()
logging.getLogger("httpx").addFilter(_quiet.filter)


def post_json(url: str, document: object, headers: Mapping[str, str] | None = None) -> None:
    """
    Post a document; no redirect is followed, because a page belongs nowhere else.

    Raises:
        ChannelError: No 2xx came, or nothing at all for ten seconds. The address is named, and
            nothing of it that may be a secret.
    """
    _quiet.is_on = True
    try:
        # Its body says nothing that matters here, and may never end.
        with httpx.stream(
            "POST",
            url,
            content=json.dumps(document).encode(),
            headers={"Content-Type": "application/json", **(headers or {})},
            timeout=_TIMEOUT,
        ) as answer:
            pass
    except httpx.HTTPError as error:
        raise ChannelError(f"{address(url)}: {type(error).__name__}") from None
    finally:
        _quiet.is_on = False
    if not answer.is_success:
        raise ChannelError(f"{address(url)}: answered {answer.status_code}")
