"""
Where requests hang, in the log: the stack of each, once.

Only threads that run a request are looked at, only their files, lines and functions are
shown, and of the request only its class: no values, no paths, no query strings.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Final
from weakref import WeakSet

from gunicorn_admission.core.events import Event, EventKind
from gunicorn_admission.core.policy import SECOND
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import State
from gunicorn_admission.observe.report import Report, Sink

__all__ = ["StackSink"]

_log = logging.getLogger("gunicorn_admission")

#: Time between two looks that are written down; a flood of them helps nobody.
_PAUSE_NS: Final = 10 * SECOND
#: Different places a look; innermost lines a place.
_MOST_PLACES: Final = 5
_MOST_LINES: Final = 12
#: Places that are remembered, so that each is shown in full once.
_MOST_REMEMBERED: Final = 64
#: Frames of these packages at the outer end say nothing about where an application hangs.
_OURS: Final = ("threading", "concurrent", "gunicorn", "gunicorn_admission", "flask_ext")

_Place = tuple[tuple[str, int, str], ...]


class StackSink(Sink):
    """
    Writes where requests hang, when that is noticed.

    Args:
        stuck: Returns the requests that hang, with their ages in nanoseconds.
        clock: Monotonic nanoseconds.

    Thread safety: one thread, the reporter's.
    """

    def __init__(
        self, stuck: Callable[[], Iterable[tuple[Ticket, int]]], clock: Callable[[], int]
    ) -> None:
        self._stuck = stuck
        self._clock = clock
        self._told: WeakSet[Ticket] = WeakSet()
        self._places: set[_Place] = set()
        self._next_ns = clock()
        self._waited = False

    def on_event(self, event: Event) -> None:
        """Look at once when a class has stalled, or too few threads are left."""
        if event.kind in (EventKind.STALLED, EventKind.STARVED):
            self._look()

    def report(self, report: Report) -> None:
        """Look again now and then, for those that hung later or alone."""
        stuck = report.statistics.stuck > 0
        if stuck and self._waited:  # a tick, so that what hangs together is shown together
            self._look()
        self._waited = stuck

    def _look(self) -> None:
        now_ns = self._clock()
        if now_ns < self._next_ns:
            return
        fresh = [(ticket, age_ns) for ticket, age_ns in self._stuck() if ticket not in self._told]
        if not fresh:
            return
        self._next_ns = now_ns + _PAUSE_NS
        frames = sys._current_frames()
        found: defaultdict[tuple[str, _Place], list[int]] = defaultdict(list)
        text: dict[_Place, str] = {}
        for ticket, age_ns in fresh:
            # Still running after the frames were taken, so they are its own.
            if ticket.state is State.GRANTED:
                self._told.add(ticket)
                place, lines = _read(frames.get(ticket.thread))
                text[place] = lines
                found[ticket.partition.name, place].append(age_ns)
        del frames  # they keep what the requests have in hand alive
        most_first = sorted(found.items(), key=lambda item: -len(item[1]))
        for (partition, place), ages in most_first[:_MOST_PLACES]:
            self._write(partition, place, text[place], ages)
        left_out = sum(len(ages) for _, ages in most_first[_MOST_PLACES:])
        if left_out:
            _log.warning("admission: %d more requests hang in other places", left_out)

    def _write(self, partition: str, place: _Place, lines: str, ages: list[int]) -> None:
        if not place:
            where = "; where is not known"
        elif place in self._places:
            where = (
                f", in the same place as before: {place[-1][2]} at {place[-1][0]}:{place[-1][1]}"
            )
        else:
            where = f", here:\n{lines}"
            if len(self._places) >= _MOST_REMEMBERED:
                self._places.clear()
            self._places.add(place)
        _log.warning(
            "admission: %d %s of class %r %s, the oldest for %.1f s%s",
            len(ages),
            "request" if len(ages) == 1 else "requests",
            partition,
            "hangs" if len(ages) == 1 else "hang",
            max(ages) / SECOND,
            where,
        )


def _read(frame: FrameType | None) -> tuple[_Place, str]:
    """Return the innermost part of a stack: what tells it from others, and its text."""
    if frame is None:
        return (), ""
    walked = list(traceback.walk_stack(frame))[::-1]
    names = [one.f_globals.get("__name__", "").partition(".")[0] for one, _ in walked]
    outer = 0
    while outer < len(names) - 1 and names[outer] in _OURS:
        outer += 1
    stack = traceback.StackSummary.extract(walked[outer:][-_MOST_LINES:])
    place = tuple((one.filename, one.lineno or 0, one.name) for one in stack)
    return place, "".join(stack.format()).rstrip()
