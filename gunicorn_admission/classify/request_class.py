"""What a request turns out to be before anything is spent on it."""

from __future__ import annotations

from attrs import frozen

from gunicorn_admission.core.policy import PartitionPolicy
from gunicorn_admission.core.types import Priority

__all__ = ["RequestClass"]


@frozen(kw_only=True, eq=False)
class RequestClass:
    """
    The class of a request; one shared object for all requests of a rule or endpoint.

    Attributes:
        exempt: Bypasses admission: probes, and what the user says.
        priority: How much it matters.
        partition: Name of its traffic class, from a bounded set: safe as a metric label.
        policy: What that class is promised and denied.
        rule: The pattern that decided, or ``None``: by the first path segment or the default.

    Thread safety: immutable.
    """

    exempt: bool
    priority: Priority
    partition: str
    policy: PartitionPolicy
    rule: str | None = None
