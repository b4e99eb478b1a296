"""When a failed attempt is followed by another one: exponential backoff with full jitter."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from attrs import field, frozen

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.durations import DurationLike, parse_duration
from gunicorn_admission.settings.nearest import did_you_mean

__all__ = ["RetryPolicy"]

_MOST_ATTEMPTS: Final = 1000
_LONGEST: Final = 7 * 24 * 3600.0


def _seconds(value: DurationLike, name: str) -> float:
    seconds = parse_duration(value, f"retry.{name}")
    if not 0.001 <= seconds <= _LONGEST:
        raise ConfigError(
            f"retry.{name}", value, "a duration from 1ms to 168h",
            "a longer pause is better made by hand: redrive the dead letter",
        )  # fmt: skip
    return seconds


def _base(value: DurationLike) -> float:
    return _seconds(value, "base")


def _cap(value: DurationLike) -> float:
    return _seconds(value, "cap")


def _attempts(_: object, __: object, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_ATTEMPTS:
        raise ConfigError(
            "retry.max_attempts", value, f"an integer from 1 to {_MOST_ATTEMPTS}",
            "1 makes the first failure a dead letter",
        )  # fmt: skip


@frozen(kw_only=True)
class RetryPolicy:
    """
    How often, and after which pauses.

    The pause after attempt ``n`` is drawn evenly from 0 to ``min(cap, base * 2 ** (n - 1))``:
    full jitter, so that what failed together does not come back together.

    Args:
        max_attempts: Attempts, the first one included, before the event is a dead letter.
        base: Upper end of the first pause.
        cap: Upper end of every pause.

    The defaults reach over about 2 hours on average.

    Source:
        AWS Architecture Blog, "Exponential Backoff And Jitter" (full jitter).

    Thread safety: immutable.
    """

    max_attempts: int = field(default=12, validator=_attempts)
    base: float = field(default=2.0, converter=_base)
    cap: float = field(default=3600.0, converter=_cap)

    def pause(self, attempt: int, random: Random) -> float:
        """Return the seconds to wait after attempt ``attempt``, counted from 1."""
        doublings = min(attempt - 1, 60)  # past that it is the cap, and a float would overflow
        return random.uniform(0, min(self.cap, self.base * 2.0**doublings))

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {"max_attempts": self.max_attempts, "base": self.base, "cap": self.cap}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> RetryPolicy:
        """
        Return the policy with these values; what is not named has its default.

        Raises:
            ConfigError: A name is unknown or a value cannot work.
        """
        known = ("max_attempts", "base", "cap")
        for name, value in values.items():
            if name not in known:
                raise ConfigError(
                    f"retry.{name}", value, f"one of {', '.join(known)}", did_you_mean(name, known)
                )
        return cls(**values)
