"""What a channel is."""

from __future__ import annotations

import logging
from typing import Protocol
from urllib.parse import urlsplit

from gunicorn_admission.webhooks.pages.wording import Notice

__all__ = ["Channel", "ChannelError", "address", "deliver"]

logger = logging.getLogger("gunicorn_admission.pages")


class ChannelError(Exception):
    """A notice could not be delivered now; the message holds no secret of an address."""


class Channel(Protocol):
    """
    A place that pages are told to.

    Attributes:
        name: Tells channels apart in the book; it does not change between starts and shows no
            secret.
        repeat: Seconds between two notices about a page that goes on.
        refreshes: Whether a page that goes on is told again even when nothing was added, because
            the receiver forgets it otherwise.
    """

    name: str
    repeat: float
    refreshes: bool

    def send(self, notice: Notice) -> None:
        """
        Tell a page; within ten seconds.

        Raises:
            ChannelError: It was not taken; it will be tried again.
        """


def deliver(channel: Channel, notice: Notice) -> str | None:
    """Tell a channel. Returns what went wrong, which is logged, or ``None``; raises nothing."""
    try:
        channel.send(notice)
    except ChannelError as failure:
        error = str(failure)
    except Exception as bug:  # somebody else's channel must not silence the other ones
        error = f"{channel.name}: {type(bug).__name__}"
    else:
        return None
    logger.warning("page %s not delivered: %s", notice.page.key, error)
    return error


def address(url: str) -> str:
    """Return a URL without what may be a secret in it: user, password, path and query."""
    parts = urlsplit(url)
    port = "" if parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{parts.hostname}{port}"
