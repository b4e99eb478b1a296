"""Limiters by name, made on first use: one for each dependency of an application."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.limiter.threaded import Limiter

__all__ = ["Registry"]

_MOST = 256


class Registry:
    """
    A bounded set of named limiters.

    Thread safety: all methods may be called from any thread.
    """

    def __init__(self) -> None:
        self._limiters: dict[str, Limiter] = {}

    def get(self, name: str, make: Callable[[], Limiter]) -> Limiter:
        """
        Return the limiter of that name; the first caller's ``make`` builds it.

        Of two who come first at once both build one, and one of them is dropped: it has
        started nothing, and there is no lock that a fork could leave locked for ever.

        Raises:
            ConfigError: There are 256 already, so the names seem to come from requests.
        """
        limiter = self._limiters.get(name)
        if limiter is None:
            if len(self._limiters) >= _MOST:
                raise ConfigError(
                    "name",
                    name,
                    f"at most {_MOST} different names",
                    "name what is limited, not the request that uses it",
                )
            limiter = self._limiters.setdefault(name, make())
        return limiter

    def __iter__(self) -> Iterator[tuple[str, Limiter]]:
        """Iterate over a copy of the pairs (name, limiter)."""
        return iter(list(self._limiters.items()))
