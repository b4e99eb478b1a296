"""
How much more than enough the limit may be: a fifth, or less where that does harm.

Latency alone cannot tell slack from harm: requests that wait for a free connection look the
same as requests that slow each other down. The rate of completions can. Below capacity it
rises with the limit, above it stays, and where requests get in each other's way it falls.
"""

from __future__ import annotations

import math

__all__ = ["Slack"]

_MOST = 1.2
_LEAST = 1.0
#: Steps, for each window. Back up slowly: too much slack costs little where it costs at all.
_DOWN = 0.01
_UP = 0.0002
#: Standard errors beyond which a falling or rising rate is no chance.
_SURE = 1.5
_FORGET = 1 / 64
_WINDOWS = 8.0
#: A limit that hardly moved tells nothing: variance of its logarithm, (2 %) squared.
_MOVED = 0.0004
#: What was seen at a limit so different (its logarithm) says nothing about this one.
_ELSEWHERE = 0.3
_NOISE = 1e-6


class Slack:
    """
    Regression of the logarithm of the rate on that of the limit, with fading memory.

    Its slope is what more concurrency is worth: 1 where the rate keeps up with it, 0 where
    it changes nothing.

    Attributes:
        factor: The limit may be so many times what Little's law says is enough.
    """

    __slots__ = ("_count", "_x", "_xx", "_xy", "_y", "_yy", "factor")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: the service times that all was learned from have changed."""
        self.factor = _MOST
        self._restart()

    def _restart(self) -> None:
        self._count = self._x = self._y = self._xx = self._xy = self._yy = 0.0

    def learn(self, limit: int, rate: float) -> None:
        """
        Take a window in which the limit was used up.

        Args:
            limit: In force during the window.
            rate: Of completions then, in any unit.
        """
        x, y = math.log(limit), math.log(rate)
        if abs(x - self._x) > _ELSEWHERE:
            self._restart()
        self._count = self._count * (1 - _FORGET) + 1
        new = 1 / self._count
        dx, dy = x - self._x, y - self._y
        self._x += dx * new
        self._y += dy * new
        self._xx = (1 - new) * (self._xx + new * dx * dx)
        self._xy = (1 - new) * (self._xy + new * dx * dy)
        self._yy = (1 - new) * (self._yy + new * dy * dy)
        errors = self._errors()
        if errors < -_SURE:
            self.factor = max(_LEAST, self.factor + _DOWN * max(-3.0, errors))
        else:
            self.factor = min(_MOST, self.factor + (_DOWN if errors > _SURE else _UP))

    def _errors(self) -> float:
        """By how many standard errors the slope differs from 0; 0.0 while little is known."""
        if self._count < _WINDOWS or self._xx < _MOVED:
            return 0.0
        slope = self._xy / self._xx
        unexplained = max(self._yy - slope * self._xy, _NOISE)
        return slope / math.sqrt(unexplained / self._xx / (self._count - 2))
