"""What every concurrency limit offers, and the bounds that most of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

from gunicorn_admission.errors import ConfigError

__all__ = ["BoundedLimit", "Limit", "check_bounds", "check_fraction", "check_number", "check_whole"]


@runtime_checkable
class Limit(Protocol):
    """
    Decides how many requests may run at once, from the requests that have finished.

    Implement it to bring an algorithm of your own; ``tests/contract/test_limits.py`` is
    the suite that an implementation must pass.

    Thread safety: none of its own; guarded by the limiter's lock.
    """

    @property
    def limit(self) -> int:
        """Concurrency allowed now; at least 1, within the bounds."""
        ...

    @property
    def estimate(self) -> float:
        """The algorithm's number before it is cut to an integer; gauges show this one."""
        ...

    def on_sample(
        self,
        *,
        now_ns: int,
        rtt_ns: int,
        inflight: int,
        dropped: bool,
        partition: str | None = None,
    ) -> None:
        """
        Learn from one finished request.

        Args:
            now_ns: When it finished, on the limiter's monotonic clock. Unit: nanoseconds.
            rtt_ns: From grant to release. Unit: nanoseconds. A value of 0 or less is no
                latency sample: it is ignored and never raises, since coarse clocks do
                return it. Only a drop may then still count, where the algorithm needs
                no RTT to act on one.
            inflight: Permits held when this request was granted, itself included.
            dropped: Whether it ended in a sign of overload (see ``Outcome.DROP``).
            partition: Its traffic class. Published algorithms know no classes and
                ignore it.
        """
        ...

    def set_bounds(self, minimum: int, maximum: int) -> None:
        """
        Move the bounds while running; the limit is brought inside at once.

        Args:
            minimum: The limit never goes below it. Range: at least 1.
            maximum: The limit never goes above it. Range: at least ``minimum``.

        Raises:
            ConfigError: When the bounds are not whole numbers or contradict each other.
        """
        ...


class BoundedLimit(ABC):
    """
    A limit that keeps a float estimate between two bounds.

    Base of the algorithms here; a subclass assigns ``self._estimate`` (clamped) in
    ``on_sample``.

    Args:
        initial: Estimate before the first sample. Range: ``minimum`` to ``maximum``.
        minimum: Lower bound. Range: at least 1.
        maximum: Upper bound. Range: at least ``minimum``.

    Raises:
        ConfigError: When a number is not whole, is below 1 or contradicts another.

    Thread safety: guarded by the limiter's lock.
    """

    def __init__(self, *, initial: int, minimum: int, maximum: int) -> None:
        check_bounds(minimum, maximum)
        check_whole("initial", initial)
        if not minimum <= initial <= maximum:
            raise ConfigError(
                "initial",
                initial,
                f"an integer from {minimum} to {maximum} (minimum to maximum)",
                "start inside the bounds, or move minimum or maximum",
            )
        self._minimum = minimum
        self._maximum = maximum
        self._estimate = float(initial)

    def __repr__(self) -> str:
        """Name, estimate and bounds, for logs."""
        return (
            f"{type(self).__name__}(estimate={self._estimate!r}, "
            f"minimum={self._minimum}, maximum={self._maximum})"
        )

    @property
    def limit(self) -> int:
        """Concurrency allowed now: the estimate cut to an integer."""
        return int(self._estimate)

    @property
    def estimate(self) -> float:
        """The estimate before it is cut."""
        return self._estimate

    @abstractmethod
    def on_sample(
        self,
        *,
        now_ns: int,
        rtt_ns: int,
        inflight: int,
        dropped: bool,
        partition: str | None = None,
    ) -> None:
        """Learn from one finished request; see :meth:`Limit.on_sample`."""

    def set_bounds(self, minimum: int, maximum: int) -> None:
        """Move the bounds and bring the estimate inside; see :meth:`Limit.set_bounds`."""
        check_bounds(minimum, maximum)
        self._minimum = minimum
        self._maximum = maximum
        self._estimate = self._clamp(self._estimate)

    def _clamp(self, estimate: float) -> float:
        return max(float(self._minimum), min(float(self._maximum), estimate))


def check_bounds(minimum: int, maximum: int) -> None:
    """
    Refuse bounds that are not whole, are below 1 or contradict each other.

    Raises:
        ConfigError: Naming ``minimum`` or ``maximum``.
    """
    # A limit of 0 admits nothing, so nothing is released and nothing is ever learned.
    check_whole("minimum", minimum)
    check_whole("maximum", maximum)
    if minimum > maximum:
        raise ConfigError(
            "minimum",
            minimum,
            f"an integer from 1 to {maximum} (maximum)",
            "lower minimum or raise maximum",
        )


def check_whole(name: str, value: int, lowest: int = 1) -> None:
    """
    Refuse what is not an integer of at least ``lowest``; ``True`` is no number here.

    Raises:
        ConfigError: Naming ``name``.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
        raise ConfigError(
            name,
            value,
            f"an integer of at least {lowest}",
            f"set {name} to {lowest} or more",
        )


def check_number(name: str, value: float, lowest: float) -> None:
    """
    Refuse what is not a finite number of at least ``lowest``.

    Raises:
        ConfigError: Naming ``name``.
    """
    if not _is_number(value) or not lowest <= value < float("inf"):
        raise ConfigError(
            name,
            value,
            f"a number of at least {lowest}",
            f"set {name} to {lowest} or more",
        )


def check_fraction(name: str, value: float, *, below_one: bool = False) -> None:
    """
    Refuse what is not above 0 and at most 1 (or, with ``below_one``, under 1).

    Raises:
        ConfigError: Naming ``name``.
    """
    if not _is_number(value) or not 0.0 < value <= 1.0 or (below_one and value == 1.0):
        raise ConfigError(
            name,
            value,
            f"a number above 0 and {'below' if below_one else 'at most'} 1",
            f"give {name} as a fraction, for example 0.9",
        )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
