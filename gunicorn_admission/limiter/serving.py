"""The limiter in front of a server's threads."""

from __future__ import annotations

from collections.abc import Iterable

from gunicorn_admission.core.policy import PartitionPolicy
from gunicorn_admission.limiter.build import limit_factory
from gunicorn_admission.limiter.threaded import Limiter
from gunicorn_admission.settings.derive import Resolved

__all__ = ["limiter_for"]


def limiter_for(resolved: Resolved, partitions: Iterable[PartitionPolicy] | None = None) -> Limiter:
    """
    Make the limiter that settings ask for, once they have been worked out for a server.

    Args:
        resolved: From ``Settings.derive``.
        partitions: Classes known from the start; ``None`` for those that the settings name.
    """
    return Limiter(
        policy=resolved.policy,
        limit=limit_factory(resolved.algorithm, resolved.fixed_limit, resolved.policy),
        partitions=resolved.partitions if partitions is None else partitions,
    )
