"""
What happens to each contender: the phases of the load, in two lengths.

The database does 400 calls a second (8 connections, 20 ms each), which is called 1x. The
mix is 20 % payments (high), 50 % updates (default), 30 % analytics (low), and a health
check four times a second, which has to be answered within 1 s.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.overload.plan import Kind, Phase

__all__ = ["CAPACITY", "HEALTH", "KINDS", "PROFILES", "Scenario", "kinds", "scenarios"]

CAPACITY = 400.0
KINDS = {"high": ("/payments", 0.2), "default": ("/updates", 0.5), "low": ("/analytics", 0.3)}
HEALTH = "health"
PROFILES = ("quick", "full")


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """
    One load.

    Attributes:
        title: For the table.
        main: Name of the phase whose figures count.
        timeout: When clients give up, in seconds.
        phases: In order.
        connections, seconds: Of the database; their quotient is ``CAPACITY``.
        slower: How much less it can do in the main phase; ``None``: nothing at all.
    """

    title: str
    main: str
    timeout: float
    phases: tuple[Phase, ...]
    connections: int = 8
    seconds: float = 0.020
    slower: float | None = 1.0


def kinds(timeout: float) -> tuple[Kind, ...]:
    """The mix and the health check."""
    mix = (
        Kind(name=name, path=path, share=share, timeout=timeout)
        for name, (path, share) in KINDS.items()
    )
    return (*mix, Kind(name=HEALTH, path="/healthz", rate=4.0, timeout=1.0))


def scenarios(profile: str, scale: float = 1.0) -> dict[str, Scenario]:
    """
    All scenarios by their letters.

    Args:
        profile: ``quick`` or ``full``, which lasts three times as long.
        scale: Shortens every phase; for smoke runs, not for figures.
    """
    full = profile == "full"

    def around(
        name: str,
        load: float,
        quick: float,
        long: float = 20,
        *,
        before: float = 0.5,
        after: float = 7,
        database: str = "normal",
    ) -> tuple[Phase, ...]:
        """A warm-up, the phase that counts, and what follows."""
        rate = CAPACITY * before
        return (
            Phase(name="warm", seconds=scale * (5 if full else 2), rate=rate),
            Phase(
                name=name,
                seconds=scale * (long if full else quick),
                rate=CAPACITY * load,
                database=database,
            ),
            Phase(name="after", seconds=scale * (15 if full else after), rate=rate),
        )

    def steady(burst: int = 1) -> tuple[Phase, ...]:
        rate = CAPACITY * 0.5
        return (
            Phase(name="warm", seconds=scale * (2 if full else 1), rate=rate),
            Phase(name="steady", seconds=scale * (20 if full else 6), rate=rate, burst=burst),
        )

    over = around("over", 3, quick=7)
    return {
        "A": Scenario(title="half the capacity", main="steady", timeout=5, phases=steady()),
        "AB": Scenario(
            title="half the capacity, in bursts of 32", main="steady", timeout=5, phases=steady(32)
        ),
        "BFG": Scenario(
            title="three times the capacity, clients give up at 3 s",
            main="over",
            timeout=3,
            phases=over,
        ),
        "C": Scenario(
            title="ten times the capacity",
            main="over",
            timeout=5,
            phases=around("over", 10, quick=5),
        ),
        "D": Scenario(
            title="0.8 of the capacity while the database is ten times slower",
            main="slow",
            timeout=5,
            phases=around("slow", 0.8, 10, 10, before=0.8, after=5, database="slow"),
            slower=10.0,
        ),
        "E": Scenario(
            title="half the capacity while the database hangs",
            main="hang",
            timeout=5,
            phases=around("hang", 0.5, 10, 10, database="hang"),
            slower=None,
        ),
        "H": Scenario(
            title="as BFG, no configuration changed, a database of 32 connections and 80 ms",
            main="over",
            timeout=3,
            phases=over,
            connections=32,
            seconds=0.080,
        ),
    }
