"""Channels from a setting: ``log``, ``webhook:URL``, ``alertmanager:URL``, ``command:WORDS``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from urllib.parse import urlsplit

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.pages.channels.channel import Channel
from gunicorn_admission.webhooks.pages.channels.log import LogChannel

__all__ = ["choose_channels"]

_FORMS = "log, webhook:URL, alertmanager:URL or command:WORDS"


def choose_channels(names: Iterable[str | Channel] | None = None) -> tuple[Channel, ...]:
    """
    Return the channels that were named.

    Args:
        names: Of channels, or channels; ``None`` takes those of the environment's
            ``GUNICORN_ADMISSION_PAGES``, where a semicolon stands between two.

    Raises:
        ConfigError: A name is of no known form, an address is no HTTP URL, or the extra that
            speaks HTTP is not installed.
    """
    if names is None:
        names = os.environ.get("GUNICORN_ADMISSION_PAGES", "").split(";")
    return tuple(
        _choose(each.strip()) if isinstance(each, str) else each
        for each in names
        if not isinstance(each, str) or each.strip()
    )


def _choose(name: str) -> Channel:
    kind, _, rest = name.partition(":")
    if kind == "log" and not rest:
        return LogChannel()
    if kind == "command" and rest.strip():
        from gunicorn_admission.webhooks.pages.channels.command import CommandChannel

        try:
            return CommandChannel(rest)
        except ValueError:
            raise ConfigError("pages", name, "a command", "check its quotes") from None
    if kind in ("webhook", "alertmanager"):
        if urlsplit(rest).scheme not in ("http", "https") or not urlsplit(rest).hostname:
            raise ConfigError(
                "pages", f"{kind}:...", f"{kind}:http(s)://host...", "give the whole URL"
            )
        return _http(kind, rest)
    hint = "in GUNICORN_ADMISSION_PAGES a semicolon stands between two"
    raise ConfigError("pages", name, _FORMS, hint)


def _http(kind: str, url: str) -> Channel:
    try:
        from gunicorn_admission.webhooks.pages.channels.alertmanager import AlertmanagerChannel
        from gunicorn_admission.webhooks.pages.channels.webhook import WebhookChannel
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        raise ConfigError(
            "pages",
            f"{kind}:...",
            "httpx, which is not installed",
            "pip install 'gunicorn-admission[pages]'",
        ) from None
    return AlertmanagerChannel(url) if kind == "alertmanager" else WebhookChannel(url)
