"""What a store raises; each says whether the work may have been committed all the same."""

from __future__ import annotations

from gunicorn_admission.errors import AdmissionError

__all__ = ["SchemaMismatch", "StoreError", "StoreTimeout"]


class StoreError(AdmissionError):
    """
    The database did not do what was asked: not reachable, disk full, connection lost.

    The cause is chained. What ``work`` raised by itself, and broken constraints, are no
    ``StoreError``: they come as they are.

    Args:
        problem: What happened, with a hint.
        maybe_committed: Whether the work may be in the database in spite of the error, because
            the answer to the commit never came. Where it is false, nothing was changed.
    """

    def __init__(self, problem: str, *, maybe_committed: bool = False) -> None:
        self.problem = problem
        self.maybe_committed = maybe_committed
        super().__init__(problem, maybe_committed)

    def __str__(self) -> str:
        return (
            f"{self.problem}; it may have been committed" if self.maybe_committed else self.problem
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.problem,), {"maybe_committed": self.maybe_committed}


class StoreTimeout(StoreError):
    """The commit was not done within the timeout that the caller gave."""


class SchemaMismatch(StoreError):
    """The tables are missing, older, or newer than this version of the package."""
