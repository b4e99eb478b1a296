"""The option ``--seeds``: how many, or which."""

from __future__ import annotations

from gunicorn_admission.errors import ConfigError

__all__ = ["parse_seeds"]

_MOST_SEEDS = 1000


def parse_seeds(text: str) -> tuple[int, ...]:
    """
    Return the seeds that a user meant: ``3`` is how many, ``4,8,15`` is which.

    Raises:
        ConfigError: Neither.
    """
    told = text.replace(" ", "")
    parts = told.removesuffix(",").split(",")
    if all(part.isascii() and part.isdigit() for part in parts):
        numbers = tuple(dict.fromkeys(int(part) for part in parts))
        if "," in told and len(numbers) <= _MOST_SEEDS:
            return numbers
        if "," not in told and 1 <= numbers[0] <= _MOST_SEEDS:
            return tuple(range(1, numbers[0] + 1))
    raise ConfigError(
        "seeds",
        text,
        f"how many, from 1 to {_MOST_SEEDS}, or which, separated by commas",
        "5 runs the seeds 1 to 5; '7,' runs seed 7",
    )
