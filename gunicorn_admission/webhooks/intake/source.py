"""Who may post to ``/hooks/<name>``, and by which rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from attrs import field, frozen

from gunicorn_admission.core.types import Priority
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.durations import DurationLike, parse_duration
from gunicorn_admission.webhooks.intake.reference import is_unset, read_reference
from gunicorn_admission.webhooks.providers import Provider, Secret, Verified, load_provider

__all__ = ["DEFAULT_DEADLINE", "DEFAULT_MAX_BODY", "Key", "Source", "check_name"]

#: Largest body where a sender does not say, in bytes.
DEFAULT_MAX_BODY: Final = 10 * 1024 * 1024
#: Whatever a sender says of its usual bodies: form encoding and new fields need room.
_LEAST_BODY: Final = 1024 * 1024
_LARGEST_BODY: Final = 1024**3
#: Seconds until a sender gives up, where it does not say.
DEFAULT_DEADLINE: Final = 10.0

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
_PRIORITIES: Final = {priority.name.lower(): priority for priority in Priority}


def check_name(name: object, what: str) -> str:
    """
    Return a name that can stand in a URL, a metric and a file name.

    Raises:
        ConfigError: It cannot.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            what, name, "1 to 64 of a-z, 0-9, - and _, a letter or digit first",
            "it becomes a part of the URL and a metric label",
        )  # fmt: skip
    return name


@frozen(kw_only=True)
class Key:
    """
    One secret of a source, where it is kept.

    Attributes:
        key_id: What people call it, in logs and tables; never the secret.
        value: ``env:NAME``, ``file:PATH``, or the secret itself; never shown.
        not_after: Accepted until then, in seconds since the epoch; ``None`` is without end.
    """

    key_id: str
    value: str = field(repr=lambda _: "(hidden)")
    not_after: float | None = None

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is an environment variable that this process does not have."""
        return is_unset(self.value)

    def read(self) -> Secret:
        """
        Return the secret as of now; a file or variable may have changed since the last time.

        Raises:
            ConfigError: It cannot be read, or is no secret.
        """
        return Secret(read_reference(self.value), self.not_after)


def _provider(value: str | Provider) -> Provider:
    return load_provider(value) if isinstance(value, str) else value


def _keys(values: str | Iterable[str | Key]) -> tuple[Key, ...]:
    if isinstance(values, str):
        values = (values,)
    return tuple(
        value if isinstance(value, Key) else Key(key_id=f"key-{place}", value=value)
        for place, value in enumerate(values, start=1)
    )


def _priority(value: str | Priority) -> Priority:
    if isinstance(value, Priority):
        return value
    if value not in _PRIORITIES:
        raise ConfigError("priority", value, f"one of {', '.join(_PRIORITIES)}", "write one")
    return _PRIORITIES[value]


def _deadline(value: DurationLike | None) -> float | None:
    if value is None:
        return None
    seconds = parse_duration(value, "deadline")
    if not 0.1 <= seconds <= 3600:
        raise ConfigError(
            "deadline", value, "from 0.1 s to 1 h", "write how long the sender waits for an answer"
        )
    return seconds


def _check_size(_: object, __: object, value: int | None) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if value is not None and not (whole and 1 <= value <= _LARGEST_BODY):
        raise ConfigError(
            "max_body", value, f"bytes from 1 to {_LARGEST_BODY}", "None takes the sender's own"
        )


def _check_url(source: Source, _: object, value: str) -> None:
    if value and not re.match(r"https?://[^/?#\s]+(/\S*)?\Z", value):
        raise ConfigError(
            "url", value, "the public URL, http:// or https://, as it stands at the sender",
            f"for example https://example.com/hooks/{source.name}",
        )  # fmt: skip


def _check_name(_: object, __: object, value: str) -> None:
    check_name(value, "source")


@frozen
class Source:
    """
    A sender's endpoint.

    Args:
        name: Stands in the URL, ``POST /hooks/<name>``.
        provider: The sender: its name, or an object where the defaults do not fit, such as
            ``Hookdeck(origin=load_provider("stripe"))``.
        secrets: One or, during a rotation, several; the current one first. Each is
            ``env:NAME``, ``file:PATH``, the secret itself, or a :class:`Key`.
        url: Public URL as it stands at the sender; only needed by those that sign it.
        priority: Of its requests, in admission: ``high``, ``default`` or ``low``. By default
            ``high`` where the sender never retries, since a refused event is lost there.
        deadline: Seconds until the sender gives up; by default what the sender says.
        max_body: Largest body in bytes; by default what the sender says.
        enabled: ``False`` answers 503 for now, and keeps everything else.
        promote: Called with what was verified; may return a higher priority for the rest of
            the request, for example of one partner. Nothing unverified can raise it.

    Raises:
        ConfigError: A value cannot work.

    Thread safety: immutable.

    Example:
        ``Source("billing", provider="stripe", secrets=["env:STRIPE_SECRET"], priority="high")``
    """

    name: str = field(validator=_check_name)
    provider: Provider = field(kw_only=True, converter=_provider)
    secrets: tuple[Key, ...] = field(kw_only=True, default=(), converter=_keys)
    url: str = field(kw_only=True, default="", validator=_check_url)
    priority: Priority = field(kw_only=True, converter=_priority)
    deadline: float | None = field(kw_only=True, default=None, converter=_deadline)
    max_body: int | None = field(kw_only=True, default=None, validator=_check_size)
    enabled: bool = field(kw_only=True, default=True)
    promote: Callable[[Verified], Priority | None] | None = field(kw_only=True, default=None)

    @priority.default
    def _by_retries(self) -> Priority:
        return Priority.DEFAULT if self.provider.facts.retries_at_all else Priority.HIGH

    @property
    def patience(self) -> float:
        """Seconds from the first byte of a request until the sender gives up."""
        return self.deadline or self.provider.facts.deadline or DEFAULT_DEADLINE

    @property
    def largest(self) -> int:
        """Most bytes of a body that are read."""
        if self.max_body is not None:
            return self.max_body
        return max(self.provider.facts.max_body or DEFAULT_MAX_BODY, _LEAST_BODY)

    def signed_url(self, query: str) -> str:
        """Return the public URL with the query string of a request."""
        if not self.url:
            return ""
        base = self.url.partition("?")[0]
        return f"{base}?{query}" if query else base
