"""
What an exception says about capacity.

A pool that ran dry, a driver that timed out: something further down is overloaded, and
the limit should learn it. Drivers are told by the names of their classes, so that none of
them has to be imported.
"""

from __future__ import annotations

from collections.abc import Collection

from gunicorn_admission.core.types import Outcome

__all__ = ["DROP_EXCEPTIONS", "outcome_of"]

#: ``module.Class`` of exceptions that mean overload further down; subclasses count too.
DROP_EXCEPTIONS = frozenset(
    {
        "builtins.TimeoutError",
        "concurrent.futures._base.TimeoutError",
        "httpcore.TimeoutException",
        "httpx.TimeoutException",
        "mysql.connector.errors.PoolError",
        "psycopg.errors.QueryCanceled",
        "psycopg2.errors.QueryCanceled",
        "psycopg2.pool.PoolError",
        "psycopg_pool.PoolTimeout",
        "psycopg_pool.TooManyRequests",
        "psycopg_pool.errors.PoolTimeout",
        "psycopg_pool.errors.TooManyRequests",
        "pymongo.errors.NetworkTimeout",
        "pymongo.errors.WaitQueueTimeoutError",
        "redis.exceptions.TimeoutError",
        "requests.exceptions.Timeout",
        "sqlalchemy.exc.TimeoutError",
        "urllib3.exceptions.TimeoutError",
    }
)


def outcome_of(
    error: BaseException | None, drop_names: Collection[str] = DROP_EXCEPTIONS
) -> Outcome:
    """
    Return the outcome of a call that ended with that exception.

    Args:
        error: What was raised; ``None`` for nothing, which is a success.
        drop_names: ``module.Class`` names to count as DROP.

    Returns:
        SUCCESS, DROP, or IGNORE: a bug says nothing about capacity.
    """
    if error is None:
        return Outcome.SUCCESS
    for cls in type(error).__mro__:
        if f"{cls.__module__}.{cls.__qualname__}" in drop_names:
            return Outcome.DROP
    return Outcome.IGNORE
