"""What is counted while a run goes on: by class for the phases that count, and over time."""

from __future__ import annotations

from array import array

from gunicorn_admission.core.policy import SECOND
from gunicorn_admission.sim.request import Event, Request
from gunicorn_admission.sim.scenario import Scenario

__all__ = ["BINS", "ClassTally", "Tally", "Timeline"]

#: Slices of a run in the plots.
BINS = 160


class ClassTally:
    """
    One class in the phases that count; an event counts where it was first sent.

    Attributes:
        offered: Events.
        delivered: Those that succeeded, in whichever attempt.
        attempts: Requests sent.
        refused: Attempts refused, by reason.
        failed, gave_up: Attempts that ended so.
        seconds: Of the attempts that succeeded, from sending to answer.
        delays: Seconds that those waited for a slot.
        refusals: Seconds from sending to refusal.
    """

    __slots__ = (
        "attempts",
        "delays",
        "delivered",
        "failed",
        "gave_up",
        "offered",
        "refusals",
        "refused",
        "seconds",
    )

    def __init__(self) -> None:
        self.offered = self.delivered = self.attempts = self.failed = self.gave_up = 0
        self.refused: dict[str, int] = {}
        self.seconds = array("d")
        self.delays = array("d")
        self.refusals = array("d")


class Timeline:
    """
    The whole run in equal slices; the columns are lists of that many numbers.

    Attributes:
        width: Of a slice, in seconds.
        offered, refused, ended: Attempts sent, refused and served in a slice, by class.
        delivered: Of the events first sent in a slice, those that succeeded, by class.
        first: Events first sent in a slice, by class.
        limit, inflight, waiting: At its end; mean over the workers.
        target: Queue delay that the controller tolerates, in seconds.
        overloaded: Share of the workers that said so.
        delay_sum, delay_count, delay_most: Queue delays, in seconds, of what ended in it.
    """

    def __init__(self, seconds: float, classes: int) -> None:
        self.width = seconds / BINS

        def columns() -> list[list[int]]:
            return [[0] * BINS for _ in range(classes)]

        self.offered, self.refused, self.ended = columns(), columns(), columns()
        self.first, self.delivered = columns(), columns()
        self.limit: list[float] = []
        self.inflight: list[float] = []
        self.waiting: list[float] = []
        self.target: list[float] = []
        self.overloaded: list[float] = []
        self.delay_sum, self.delay_most = [0.0] * BINS, [0.0] * BINS
        self.delay_count = [0] * BINS


class Tally:
    """
    Counts of one run.

    Args:
        scenario: Tells which phases count.

    Attributes:
        classes: In the order of the scenario.
        timeline: Everything, over time.
        good: Successes that ended while a phase that counts went on.
        after_offered, after_delivered: Events of the phase after, and their successes.
        counting: Whether such a phase goes on; set by the run.
        slice: Index into the timeline; moved on by the run.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.classes = [ClassTally() for _ in scenario.classes]
        self.timeline = Timeline(scenario.seconds, len(scenario.classes))
        self.good = 0
        self.counting = False
        self.slice = 0
        self.after_offered = self.after_delivered = 0
        self._counts = [phase.name in scenario.counts for phase in scenario.phases]
        self._after = [phase.name == scenario.after for phase in scenario.phases]

    def sent(self, event: Event) -> None:
        """An attempt begins."""
        kind, timeline = event.kind, self.timeline
        at = self.slice
        timeline.offered[kind][at] += 1
        if self._counts[event.phase]:
            tally = self.classes[kind]
            tally.attempts += 1
            tally.offered += event.attempts == 1
        if event.attempts == 1:
            event.slice = at
            timeline.first[kind][at] += 1
            self.after_offered += self._after[event.phase]

    def served(self, request: Request, now_ns: int) -> None:
        """An attempt has succeeded in time."""
        event, timeline = request.event, self.timeline
        kind = event.kind
        delay = request.delay_ns / SECOND
        at = self.slice
        timeline.ended[kind][at] += 1
        timeline.delivered[kind][event.slice] += 1
        timeline.delay_sum[at] += delay
        timeline.delay_count[at] += 1
        if delay > timeline.delay_most[at]:
            timeline.delay_most[at] = delay
        self.good += self.counting
        if self._counts[event.phase]:
            tally = self.classes[kind]
            tally.delivered += 1
            tally.seconds.append((now_ns - request.arrived_ns) / SECOND)
            tally.delays.append(delay)
        self.after_delivered += self._after[event.phase]

    def refused(self, request: Request, now_ns: int) -> None:
        """An attempt was refused."""
        event = request.event
        self.timeline.refused[event.kind][self.slice] += 1
        if self._counts[event.phase]:
            tally = self.classes[event.kind]
            reason = request.reason.value if request.reason else ""
            tally.refused[reason] = tally.refused.get(reason, 0) + 1
            tally.refusals.append((now_ns - request.arrived_ns) / SECOND)

    def failed(self, request: Request) -> None:
        """An attempt was answered with an error."""
        if self._counts[request.event.phase]:
            self.classes[request.event.kind].failed += 1

    def gave_up(self, request: Request) -> None:
        """A client left before it had an answer."""
        if self._counts[request.event.phase]:
            self.classes[request.event.kind].gave_up += 1

    def close(self) -> None:
        """The run is over: whoever has no answer now will get none."""
        for one in self.classes:
            refused = sum(one.refused.values())
            one.gave_up = one.attempts - one.delivered - one.failed - refused
