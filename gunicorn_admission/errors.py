"""
Every error this package raises, in one tree.

Each carries its data on the instance and ends its message with a hint, so that
a log line alone says what to change. Catch :class:`AdmissionError` for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gunicorn_admission.core.types import Priority, Reason

__all__ = ["AdmissionError", "ConfigError", "Rejected"]


class AdmissionError(Exception):
    """Base of every error raised by gunicorn-admission."""


class ConfigError(AdmissionError, ValueError):
    """
    A setting is unknown or has a value that cannot work.

    Args:
        field: Name of the setting as the user wrote it.
        value: The offending value, kept for inspection; shown with ``repr``.
        expected: What would be accepted, for example ``"an integer from 1 to 64"``.
        hint: One sentence that says what to do.
        source: Where the value came from (``"keyword argument"``, ``"environment
            GUNICORN_ADMISSION_LIMIT"``, ``"gunicorn.conf.py"``, a file name).
    """

    def __init__(
        self, field: str, value: object, expected: str, hint: str, source: str | None = None
    ) -> None:
        self.field = field
        self.value = value
        self.expected = expected
        self.hint = hint
        self.source = source
        where = f" ({source})" if source else ""
        super().__init__(f"{field} = {value!r}{where}: expected {expected}. Hint: {hint}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.field, self.value, self.expected, self.hint, self.source)


class Rejected(AdmissionError):
    """
    A request was refused a permit.

    Args:
        reason: Why, from the closed list :class:`~gunicorn_admission.core.types.Reason`.
        priority: Priority of the request that was refused.
        retry_after: Seconds after which a retry has a chance; already jittered.
        partition: Traffic class of the request, or ``None``.
    """

    def __init__(
        self, reason: Reason, priority: Priority, retry_after: float, partition: str | None = None
    ) -> None:
        self.reason = reason
        self.priority = priority
        self.retry_after = retry_after
        self.partition = partition
        of = f" of {partition!r}" if partition else ""
        super().__init__(
            f"{priority.name.lower()} priority request{of} refused: {reason.value}. "
            f"Hint: retry in {retry_after:.1f} s"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason, self.priority, self.retry_after, self.partition)
