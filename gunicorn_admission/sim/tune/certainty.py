"""How much a recommendation is worth, and why not more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import frozen

from gunicorn_admission.sim.tune.access_log import AccessLog
from gunicorn_admission.sim.tune.advise import Advice
from gunicorn_admission.sim.tune.fit import misfit
from gunicorn_admission.sim.tune.replay import Deployment
from gunicorn_admission.sim.tune.windows import Traffic

__all__ = ["LEVELS", "Certainty", "certainty"]

#: From little to much.
LEVELS: Final = ("low", "medium", "high")
_LOW, _MEDIUM = 0, 1
#: Spread of the slowdown that needs an explanation; distance that is not log-normal.
_SLOW: Final = 0.3
_FAR: Final = 0.1


@frozen(kw_only=True)
class Certainty:
    """
    How sure it is.

    Attributes:
        level: One of ``LEVELS``: that of the gravest doubt.
        doubts: What would have to be otherwise for more, gravest first.
    """

    level: str
    doubts: tuple[str, ...]


def certainty(
    log: AccessLog,
    traffic: Traffic,
    deployment: Deployment,
    advice: Advice,
    *,
    threads_given: bool,
) -> Certainty:
    """Weigh what speaks against trusting an advice."""
    found = [*_in_log(log, traffic, deployment), *_in_advice(advice)]
    if not threads_given:
        words = "the number of threads was assumed (--threads, or -c gunicorn.conf.py)"
        found.append((_MEDIUM, words))
    doubts = sorted(found, key=lambda doubt: doubt[0])
    level = doubts[0][0] if doubts else len(LEVELS) - 1
    return Certainty(level=LEVELS[level], doubts=tuple(words for _, words in doubts))


def _in_log(log: AccessLog, traffic: Traffic, deployment: Deployment) -> Iterator[tuple[int, str]]:
    served = sum(window.done for window in traffic.windows)
    if served < 1000:
        yield (_LOW if served < 200 else _MEDIUM), f"{served} served requests are few"
    if traffic.span < 600:
        yield _MEDIUM, f"{traffic.span:.0f} seconds are a short time to judge by"
    if log.resolution >= 1:
        yield _LOW, "durations in whole seconds say little; log %(L)s"
    elif log.assumed:
        yield _MEDIUM, f"durations were taken for %({log.format.duration})s; --format makes it sure"
    if log.unreadable > 0.01 * log.lines:
        yield _MEDIUM, f"{log.unreadable} of {log.lines} lines could not be read"
    if sum(log.refused) > 0.001 * traffic.requests:
        yield _MEDIUM, f"{sum(log.refused)} answers were 503, which are taken for refusals"
    threads = deployment.threads * deployment.workers
    full = sum(window.busy >= 0.95 * threads for window in traffic.windows)
    if full:
        yield (
            _MEDIUM,
            f"all {threads} threads were taken in {full} of {len(traffic.windows)} windows of "
            f"{traffic.width:.0f} s; what waited for one then is not in the log",
        )
    far = misfit(traffic)
    if far > _FAR:
        yield _MEDIUM, f"service times are not log-normal, as is assumed (distance {far:.2f})"


def _in_advice(advice: Advice) -> Iterator[tuple[int, str]]:
    capacity = advice.fit.capacity
    if not capacity.known:
        yield (
            _LOW,
            "the log does not show what the service can do at most, so the overload is an "
            "assumption, and no number is tried as a limit (--connections says it)",
        )
    if capacity.slow >= _SLOW and capacity.explained < 0.5:
        yield _MEDIUM, "requests were slow at times for another reason than their number"
    found = [one.capacity.connections for one in advice.fits]
    if capacity.known and max(found) > 1.3 * min(found):
        yield _MEDIUM, f"resamples put the capacity anywhere from {min(found)} to {max(found)}"
    if advice.agreement < 0.8:
        level = _LOW if advice.agreement < 0.5 else _MEDIUM
        yield level, f"only {advice.agreement:.0%} of the resamples alone say the same"
