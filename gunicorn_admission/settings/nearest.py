"""The hint that names what a user probably meant."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """
    Return a hint for an unknown name: the nearest known one, else all of them.

    Args:
        name: What was written.
        known: What could have been meant.
    """
    from difflib import get_close_matches  # only where something is wrong already

    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
