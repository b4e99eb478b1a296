"""The limit that does not adapt."""

from __future__ import annotations

from gunicorn_admission.core.limits.base import check_bounds, check_whole

__all__ = ["FixedLimit"]


class FixedLimit:
    """
    Always allows the same concurrency.

    Right when the capacity is known (a connection pool of a given size) and as the
    yardstick for the others. It still gives way to :meth:`set_bounds`, and returns to
    its own number when the bounds allow it again.

    Args:
        limit: Concurrency. Range: at least 1.

    Raises:
        ConfigError: When ``limit`` is not a whole number of at least 1.

    Thread safety: guarded by the limiter's lock.
    """

    def __init__(self, limit: int) -> None:
        check_whole("limit", limit)
        self._wanted = limit
        self._limit = limit

    def __repr__(self) -> str:
        """Name and number, for logs."""
        return f"FixedLimit({self._limit})"

    @property
    def limit(self) -> int:
        """Concurrency allowed now."""
        return self._limit

    @property
    def estimate(self) -> float:
        """The limit as a float."""
        return float(self._limit)

    def on_sample(
        self,
        *,
        now_ns: int,
        rtt_ns: int,
        inflight: int,
        dropped: bool,
        partition: str | None = None,
    ) -> None:
        """Learn nothing; see :meth:`Limit.on_sample`."""

    def set_bounds(self, minimum: int, maximum: int) -> None:
        """Keep the wanted number as far as the bounds allow; see :meth:`Limit.set_bounds`."""
        check_bounds(minimum, maximum)
        self._limit = max(minimum, min(maximum, self._wanted))
