"""Settings that are tried on the replayed load."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from attrs import evolve, field, fields, frozen

from gunicorn_admission.settings import Settings, format_duration
from gunicorn_admission.sim.scenario import Scenario
from gunicorn_admission.sim.tune.fit import Fit
from gunicorn_admission.sim.tune.replay import Deployment

__all__ = ["CONFIGURED", "DEFAULTS", "NOTHING", "Candidate", "candidates"]

NOTHING: Final = "no admission"
CONFIGURED: Final = "as configured"
DEFAULTS: Final = "the defaults"
_WAITS: Final = (0.1, 2.0)
_FACTORS: Final = (1.0, 1.5, 2.0)
#: What the scenario, its classes or the comparison say in its stead, or what is no matter here.
_ELSEWHERE: Final = frozenset({
    "mode", "limit", "routes", "exempt", "exempt_health", "partition_by", "status_path", "threads",
    "statsd_host", "statsd_prefix", "statsd_interval", "log_interval", "gone_check", "read_timeout",
    "drain_bytes", "drain_timeout", "trust_request_start", "shed_status",
})  # fmt: skip


@frozen(kw_only=True)
class Candidate:
    """
    One set of settings.

    Attributes:
        name: As it is shown.
        limit: Name of a contender of the simulator.
        settings: Keyword arguments of ``install``; those of the classes come on top.
        threads: Of each worker, where they differ from the deployment's.
    """

    name: str
    limit: str = "adaptive"
    settings: Mapping[str, object] = field(factory=dict)
    threads: int | None = None

    @property
    def usable(self) -> bool:
        """Whether it can be recommended: what has no bound is there for comparison only."""
        return not self.unbounded and self.limit != "none"

    @property
    def unbounded(self) -> bool:
        """Whether the threads are the only limit."""
        return self.limit == "pool"

    def apply(self, scenario: Scenario) -> Scenario:
        """The scenario under these settings."""
        kept = {name: value for name, value in self.settings.items() if name != "limit"}
        threads = self.threads or scenario.threads
        return evolve(scenario, settings=kept, threads=threads)


def candidates(fit: Fit, deployment: Deployment) -> tuple[Candidate, ...]:
    """Return what is tried for a service: what there is, the defaults, and some around them."""
    return tuple(_candidates(fit, deployment))


def _candidates(fit: Fit, deployment: Deployment) -> Iterator[Candidate]:
    yield Candidate(name=NOTHING, limit="none")
    now = _configured(deployment.settings)
    if now:
        yield Candidate(name=CONFIGURED, limit=_contender(deployment.settings), settings=now)
    yield Candidate(name=DEFAULTS)
    for seconds in _WAITS:
        wait = format_duration(seconds)
        yield Candidate(name=f"max_wait={wait}", settings={"max_wait": wait})
    threads = deployment.threads
    if fit.capacity.known:
        share = fit.capacity.connections / deployment.workers
        for number in sorted({max(1, math.ceil(share * factor)) for factor in _FACTORS}):
            if number < threads:
                yield Candidate(
                    name=f"limit={number}", limit=f"fixed:{number}", settings={"limit": number}
                )
        if threads < 1.5 * share:
            more = 2 * threads
            yield Candidate(name=f"threads={more}", threads=more)
    everything = f"limit={threads}, all threads"
    yield Candidate(name=everything, limit="pool", settings={"limit": threads})


def _contender(settings: Settings) -> str:
    return f"fixed:{settings.limit}" if isinstance(settings.limit, int) else settings.limit


def _configured(settings: Settings) -> dict[str, object]:
    """Settings that differ from the defaults, as far as they matter here."""
    default = Settings()
    found = {
        one.name: getattr(settings, one.name)
        for one in fields(Settings)
        if one.name not in _ELSEWHERE and getattr(settings, one.name) != getattr(default, one.name)
    }
    if settings.limit != default.limit:
        found["limit"] = settings.limit
    return found
