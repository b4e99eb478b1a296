"""Bounded memories of samples: what is usual, what was the most, what a trial showed."""

from __future__ import annotations

from collections import deque

from gunicorn_admission.core.policy import MILLISECOND

__all__ = ["Baselines", "Level", "PeakRate", "Trial", "Use", "doubt", "median"]

_MAX_CLASSES = 64
_KEEP = 64
_POOLED = 6
#: A trial ends with so many samples, by whose median nobody could be misled by more.
_SURE = 8
_DOUBT = 1.2
#: It looks at requests that began so many service times ago.
_WHOLE = 2.0


def median(values: list[float]) -> float:
    """Upper median of a non-empty list, which is sorted in place."""
    values.sort()
    return values[len(values) // 2]


def doubt(values: list[float]) -> float:
    """
    By what factor the median of a sorted list may be wrong by chance, either way.

    Two standard errors of a median, 1.25 sigma / sqrt(n) each, with sigma from the
    quartiles (1.35 sigma apart), all in logarithms: service times vary by factors.
    """
    count = len(values)
    return float((values[3 * count // 4] / values[count // 4]) ** (1.85 / count**0.5))


class Level:
    """
    The slowdown of late: by the last window alone, and by the last six together.

    A window tells of large changes at once, several of them of small ones in the end.

    Attributes:
        mean: Of the medians of those windows; 1.0 before the first.
    """

    __slots__ = ("_windows", "mean")

    def __init__(self) -> None:
        self.mean = 1.0
        self._windows = 0

    def restart(self) -> None:
        """Forget the windows before a change of the limit or the baselines."""
        self._windows = 0

    def add(self, slowdowns: list[float]) -> float:
        """Take a window (its list is sorted in place); the slowdown that is beyond doubt."""
        seen, factor = median(slowdowns), doubt(slowdowns)
        self._windows = min(self._windows + 1, _POOLED)
        self.mean += (seen - self.mean) / self._windows
        return float(max(seen / factor, self.mean / factor ** (self._windows**-0.5)))


class Baseline:
    """
    The service time of one class when nothing is in its way.

    Attributes:
        rtt_ns: The baseline; 0.0 before there are enough samples.
        pending: Samples since the last update, the newest 64.
    """

    __slots__ = ("pending", "rtt_ns")

    def __init__(self) -> None:
        self.rtt_ns = 0.0
        self.pending: deque[float] = deque(maxlen=_KEEP)

    def learn(self, quiet: bool, enough: int) -> bool:
        """
        Move towards the median of what was seen; whether there was enough to see.

        Down by 30 % of the difference, as far as that is beyond doubt: one that follows
        each lucky window ends far below what is usual (Netflix concurrency-limits #37). Up
        by 10 %, but only in quiet times: a baseline that rises under load learns the
        overload and then calls it normal, which is the disease of delay-based limits
        (Netflix concurrency-limits #165, failsafe-go #127, Envoy #11579).
        """
        if len(self.pending) < enough:
            return False
        values = list(self.pending)
        seen = median(values)
        most = seen * doubt(values)
        self.pending.clear()
        if not self.rtt_ns:
            self.rtt_ns = seen
        elif most < self.rtt_ns:
            self.rtt_ns += 0.3 * (most - self.rtt_ns)
        elif quiet and seen > self.rtt_ns:
            self.rtt_ns += 0.1 * (seen - self.rtt_ns)
        return True


class Baselines:
    """Baselines of at most 64 classes; when one more comes, the oldest is forgotten."""

    __slots__ = ("_classes",)

    def __init__(self) -> None:
        self._classes: dict[str | None, Baseline] = {}

    def get(self, name: str | None) -> Baseline:
        """Return the baseline of a class, made on first use."""
        baseline = self._classes.get(name)
        if baseline is None:
            if len(self._classes) >= _MAX_CLASSES:
                del self._classes[next(iter(self._classes))]
            baseline = self._classes[name] = Baseline()
        return baseline

    def learn(self, quiet: bool, enough: int, *, only_new: bool = False) -> bool:
        """Let every class (or those without a baseline) learn; whether any could."""
        able = [
            baseline.learn(quiet, enough)
            for baseline in self._classes.values()
            if not (only_new and baseline.rtt_ns)
        ]
        return any(able)

    def scale(self, factor: float) -> None:
        """Multiply all baselines, after a trial has shown how wrong they are."""
        for baseline in self._classes.values():
            baseline.rtt_ns *= factor
            baseline.pending.clear()


class PeakRate:
    """
    The best rate of completions within a time, in requests per nanosecond.

    One bad window must not decide: a pause of the machine halves the rate of that window.
    """

    __slots__ = ("_memory_ns", "_rates")

    def __init__(self, memory_ns: int) -> None:
        self._memory_ns = memory_ns
        self._rates: deque[tuple[int, float]] = deque()

    def add(self, now_ns: int, rate: float) -> None:
        """Take the rate of a window that ended now."""
        rates = self._rates
        while rates and now_ns - rates[0][0] > self._memory_ns:
            rates.popleft()
        while rates and rates[-1][1] <= rate:
            rates.pop()  # can never be the best again
        rates.append((now_ns, rate))

    def peak(self) -> float:
        """The best rate; 0.0 before the first window."""
        return self._rates[0][1] if self._rates else 0.0


class Use:
    """
    How much concurrency was used without harm, and so how much is reasonable next.

    Args:
        least: The cap never goes below this.
        headroom: The cap is this many times the largest harmless use.
    """

    __slots__ = ("_best", "_healthy_since_ns", "_headroom", "_least", "_peaks")

    def __init__(self, least: float, headroom: float) -> None:
        self._least, self._headroom = least, headroom
        self._best = 0.0
        self._healthy_since_ns = -1
        self._peaks: deque[tuple[int, int]] = deque(maxlen=64)

    def observe(self, now_ns: int, peak: int, healthy: bool, rtt_ns: float) -> None:
        """
        Take one window.

        Service times lag behind concurrency, so a peak counts as harmless only when all
        was still well 150 ms and one and a half service times later.
        """
        self._best *= 0.998
        if not healthy:
            self._healthy_since_ns = -1
            self._peaks.clear()
            return
        if self._healthy_since_ns < 0:
            self._healthy_since_ns = now_ns
        self._peaks.append((now_ns, peak))
        lag_ns = max(150 * MILLISECOND, 1.5 * rtt_ns)
        while self._peaks and now_ns - self._peaks[0][0] >= lag_ns:
            self._best = max(self._best, float(self._peaks.popleft()[1]))

    def cap(self) -> int:
        """Most requests at once that recent use justifies."""
        return int(max(self._least, self._headroom * self._best))


class Trial:
    """
    Slowdowns of requests that ran wholly under conditions that were set up for them.

    Attributes:
        since_ns: When the conditions began; -1 while no trial runs.
    """

    __slots__ = ("_seen", "since_ns")

    def __init__(self) -> None:
        self.since_ns = -1
        self._seen: list[tuple[float, int, int]] = []

    def start(self, now_ns: int) -> None:
        """Begin, or begin anew."""
        self.since_ns = now_ns
        self._seen = []

    def stop(self) -> None:
        """End without a result."""
        self.since_ns = -1

    def add(self, slowdown: float, began_ns: int, rtt_ns: int) -> None:
        """Take a request, which counts only if it began after the conditions did."""
        if began_ns >= self.since_ns:
            self._seen.append((slowdown, began_ns, rtt_ns))

    def result(self, now_ns: int) -> float | None:
        """
        Return the median slowdown, or ``None`` while too few were seen to be sure of it.

        Only requests count that began so long ago that nearly all which began with them
        have ended too: the first to end are the fast ones, not the usual ones.
        """
        if len(self._seen) < _SURE:
            return None
        usual_ns = sorted(rtt_ns for _, _, rtt_ns in self._seen)[len(self._seen) // 2]
        whole = [one for one, began_ns, _ in self._seen if now_ns - began_ns >= _WHOLE * usual_ns]
        if len(whole) < _SURE:
            return None
        seen = median(whole)
        return seen if doubt(whole) <= _DOUBT else None
