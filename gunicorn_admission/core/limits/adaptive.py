"""
Our own limit: slowdown relative to each class's usual service time, in time windows.

What it does differently from the published ones, and why:

* A sample is a *slowdown*, RTT over the baseline of its own class, so a changed mix of fast
  and slow endpoints is not taken for congestion.
* It learns by time (100 ms windows), not by request, so that its memory does not depend on
  traffic.
* On congestion it goes at once to what Little's law says is enough (rate x mean service
  time less the slowdown, and some slack), at the best rate of the last second, so that one
  pause of the machine does not halve it. The slack is a fifth, and less where throughput
  turns out to fall with concurrency (``slack.py``).
* Service times vary by factors even when nothing is in their way, so the median of twenty
  is wrong by chance. Only as much of a slowdown counts as is beyond doubt: where all take
  equally long that is all of it, where the quartiles lie far apart it is less.
* It grows only while there is no slowdown and the limit is really used.
* The baseline rises only in quiet times. Two ways out of a wrong one: a *dip* (fewer
  requests for a moment; what those see is the truth) when no quiet time has confirmed it
  for long, and a *re-baseline* from requests that began and ended with the limit at its
  floor, when the dependency itself has become slower.
* What may run is also capped by half as much again as was lately used in healthy windows,
  so that a wave does not start the whole pool on a dependency of eight connections.

Sources: Little's law; Envoy's adaptive concurrency filter (re-measuring after windows at
the floor); Netflix concurrency-limits issues #35, #37, #134, #137, #165.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gunicorn_admission.core.limits.base import check_bounds, check_whole
from gunicorn_admission.core.policy import MILLISECOND, SECOND
from gunicorn_admission.core.sampling import Baselines, Level, PeakRate, Trial, Use
from gunicorn_admission.core.slack import Slack

__all__ = ["AdaptiveLimit"]

_WINDOW_NS = 100 * MILLISECOND
_ENOUGH = 20
# With little traffic a window stays open for longer and does with fewer samples.
_PATIENCE_NS = 5 * SECOND
_FEW = 5
# When even the fastest of a few is slower than this, more of them would say the same.
_CERTAIN = 3.0
# What takes less than this is slowed down by the interpreter's and the kernel's schedulers,
# and a queue of such requests is gone before it could be managed.
_SHORTEST_NS = float(2 * MILLISECOND)
_TOLERANCE = 1.3
# Above the slack by so much, the limit is too high; growth slows down on the way there.
_MARGIN = 0.1
_SLOWING = 0.25
# What a dip shows that differs by less from the baseline may be chance.
_CLOSE = 1.18
_RATE_MEMORY_NS = SECOND
_HEADROOM = 1.5
_UNPROVEN_USE = 16.0
_DIP_AFTER_NS = 60 * SECOND
_DIP_AFTER_WINDOWS = 10
_DIP_TIMEOUT_NS = 2 * SECOND


class AdaptiveLimit:
    """
    The default limit.

    Args:
        maximum: Most requests at once; the number of threads that may run them.
        minimum: Fewest. ``None`` for an eighth of ``maximum``.
        initial: Start. ``None`` for ``maximum``: nothing is known yet, and the hard bound
            protects the pool.
        jitter: Returns a uniform float in [0, 1); spreads the dips of many workers.
            ``None`` for no spread.

    Raises:
        ConfigError: When a bound is not whole, below 1 or contradicts another.

    Thread safety: none of its own; guarded by the limiter's lock.
    """

    def __init__(
        self,
        *,
        maximum: int = 64,
        minimum: int | None = None,
        initial: int | None = None,
        jitter: Callable[[], float] | None = None,
    ) -> None:
        check_whole("maximum", maximum)
        minimum = max(1, -(-maximum // 8)) if minimum is None else minimum
        check_bounds(minimum, maximum)
        self._minimum, self._maximum = minimum, maximum
        self._jitter = jitter or (lambda: 0.5)
        self._estimate = float(maximum if initial is None else initial)
        self._clamp()
        self._baselines = Baselines()
        self._rates = PeakRate(_RATE_MEMORY_NS)
        self._use = Use(max(_UNPROVEN_USE, maximum / 4), _HEADROOM)
        self._slack = Slack()
        self._level = Level()
        self._busy = 0.0
        self._dip = Trial()
        self._floor = Trial()
        self._confirmed_ns = -1
        self._unconfirmed = 0
        self._opened_ns = self._closes_ns = -1
        self._slowdowns: list[float] = []
        self._taken_ns = 0.0
        self._peak = 0
        self._dropped = False
        self.limit = 0
        self._apply()

    def __repr__(self) -> str:
        """Name, estimate and bounds, for logs."""
        return (
            f"{type(self).__name__}(estimate={self._estimate!r}, "
            f"minimum={self._minimum}, maximum={self._maximum})"
        )

    @property
    def estimate(self) -> float:
        """The limit before caps and rounding."""
        return self._estimate

    def set_bounds(self, minimum: int, maximum: int) -> None:
        """Move the bounds and bring the estimate inside; see ``Limit.set_bounds``."""
        check_bounds(minimum, maximum)
        self._minimum, self._maximum = minimum, maximum
        self._clamp()
        self._apply()

    def on_sample(
        self,
        *,
        now_ns: int,
        rtt_ns: int,
        inflight: int,
        dropped: bool,
        partition: str | None = None,
    ) -> None:
        """Learn from one finished request; see ``Limit.on_sample``."""
        if rtt_ns <= 0 and not dropped:
            return
        if self._opened_ns < 0:
            self._open(now_ns)
        if inflight > self._peak:
            self._peak = inflight
        if dropped:
            self._dropped = True
        else:
            baseline = self._baselines.get(partition)
            baseline.pending.append(rtt_ns)
            usual_ns = baseline.rtt_ns
            if usual_ns:
                if usual_ns < _SHORTEST_NS:
                    usual_ns = _SHORTEST_NS
                slowdown = rtt_ns / usual_ns
                self._slowdowns.append(slowdown)
                self._taken_ns += rtt_ns
                if self._dip.since_ns >= 0:
                    # Of what is too short to be slowed down a dip shows nothing.
                    short = usual_ns <= _SHORTEST_NS
                    seen = max(1.0, slowdown) if short else slowdown
                    self._dip.add(seen, now_ns - rtt_ns, rtt_ns)
                elif self._floor.since_ns >= 0 and inflight <= self._minimum:
                    self._floor.add(slowdown, now_ns - rtt_ns, rtt_ns)
        if now_ns >= self._closes_ns:
            self._close(now_ns)

    # -- windows ---------------------------------------------------------------------

    def _open(self, now_ns: int) -> None:
        self._opened_ns = now_ns
        self._closes_ns = now_ns + _WINDOW_NS
        self._slowdowns = []
        self._taken_ns = 0.0
        self._peak = 0
        self._dropped = False

    def _close(self, now_ns: int) -> None:
        count = len(self._slowdowns)
        span_ns = now_ns - self._opened_ns
        waited = span_ns >= _PATIENCE_NS
        if self._dip.since_ns >= 0:
            self._end_dip(now_ns)
            return
        certain = count >= _FEW and min(self._slowdowns) > _CERTAIN
        if count < (_FEW if waited else _ENOUGH) and not (self._dropped or certain):
            self._baselines.learn(False, _FEW if waited else _ENOUGH, only_new=True)
            self._closes_ns = now_ns + _WINDOW_NS // 10
            return
        hit = self._peak >= self.limit
        quiet = not hit and self._peak <= max(1, self.limit // 2)
        slowdown = self._level.add(self._slowdowns) if count else 1.0
        self._rates.add(now_ns, count / span_ns)
        if hit and count >= _ENOUGH:
            self._slack.learn(self.limit, count / span_ns)
        taken_ns = self._taken_ns / max(1, count)
        self._busy = self._rates.peak() * taken_ns / max(1.0, self._level.mean, slowdown)
        self._steer(slowdown)
        healthy = slowdown <= _TOLERANCE and not self._dropped
        self._use.observe(now_ns, self._peak, healthy, taken_ns)
        if self._baselines.learn(quiet, _FEW if waited else _ENOUGH) and quiet:
            self._confirmed_ns, self._unconfirmed = now_ns, 0
        elif hit:
            self._unconfirmed += 1
        self._try_floor(now_ns, healthy)
        self._open(now_ns)
        if healthy and self._unproven(now_ns):
            self._dip.start(now_ns)
        self._apply()

    def _steer(self, slowdown: float) -> None:
        """Shrink to what Little's law says is enough, or grow a little."""
        if self._dropped:
            self._estimate *= 0.9
        slack = self._slack.factor
        tolerance = slack + _MARGIN
        if slowdown > tolerance:
            if self._peak > 1:
                enough = self._busy * slack
                lower = 0.8 * self.limit * tolerance / slowdown
                self._estimate = min(self._estimate, max(enough, lower))
                self._level.restart()
        elif not self._dropped and self._peak * 2 >= self.limit:
            if slowdown < 0.5:
                self._estimate *= 1.25
            elif slowdown < 1.1:
                self._estimate += max(0.5, 0.05 * self._estimate)
            else:
                room = min(1.0, max(0.0, (tolerance - self._level.mean) / _SLOWING))
                self._estimate += room * max(0.1, 0.1 * math.sqrt(self._estimate))
        self._clamp()

    def _unproven(self, now_ns: int) -> bool:
        """Whether the baseline rests on nothing but busy times."""
        if self.limit <= self._minimum:
            return False
        if self._confirmed_ns >= 0 and now_ns - self._confirmed_ns < _DIP_AFTER_NS:
            return False
        return self._unconfirmed >= _DIP_AFTER_WINDOWS * (0.7 + 0.6 * self._jitter())

    def _end_dip(self, now_ns: int) -> None:
        """See what requests took while few ran; that is the baseline if it is lower."""
        seen = self._dip.result(now_ns)
        if seen is None and now_ns - self._dip.since_ns < _DIP_TIMEOUT_NS:
            self._closes_ns = now_ns + _WINDOW_NS // 10
            return
        self._dip.stop()
        self._unconfirmed = 0
        self._level.restart()
        if seen is not None:
            # More than fits shows how long they wait for each other, not what is usual.
            if seen < 1.0 or self.limit < 0.8 * self._busy:
                self._rebase(seen)
            if seen >= 0.8:  # no great news, so the baseline was right
                self._confirmed_ns = now_ns
        self._open(now_ns)
        self._apply()

    def _rebase(self, seen: float) -> None:
        """Correct the baselines by what a trial has shown; half-way where it may be chance."""
        if 1 / _CLOSE < seen < _CLOSE:
            self._baselines.scale(math.sqrt(seen))
        else:
            self._baselines.scale(seen)
            self._slack.forget()

    def _try_floor(self, now_ns: int, healthy: bool) -> None:
        """At the floor and still slow: the dependency is slower now, and that is the norm."""
        if healthy or self._estimate > self._minimum:
            self._floor.stop()
        elif self._floor.since_ns < 0 or self._dropped:
            self._floor.start(now_ns)
        elif (seen := self._floor.result(now_ns)) is not None:
            self._floor.stop()
            if seen > 1.0:
                self._baselines.scale(seen)
                self._slack.forget()
                self._level.restart()
                self._confirmed_ns = now_ns
                self._estimate = max(2.0 * self._minimum, self._busy * seen * self._slack.factor)
                self._clamp()

    # -- the number ------------------------------------------------------------------

    def _clamp(self) -> None:
        self._estimate = max(float(self._minimum), min(float(self._maximum), self._estimate))

    def _apply(self) -> None:
        limit = min(int(self._estimate), self._use.cap())
        if self._dip.since_ns >= 0:
            limit //= 2
        self.limit = min(max(limit, self._minimum), self._maximum)
