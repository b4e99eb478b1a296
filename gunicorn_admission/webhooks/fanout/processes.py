"""Several worker processes under one parent, which restarts those that die and stops them all."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterable
from typing import Final

__all__ = ["supervise"]

_log = logging.getLogger("gunicorn_admission.fanout")

_STOP: Final = (signal.SIGTERM, signal.SIGINT)
_WATCHED: Final = (*_STOP, signal.SIGCHLD)
#: A child that lived for less is given a pause before the next, in seconds.
_SETTLED: Final = 5.0
_LONGEST_PAUSE: Final = 30.0
#: Exit code of a child that cannot be set up: another one could not either.
_USAGE: Final = 2


class _Place:
    """One of the children, and those that follow it."""

    def __init__(self) -> None:
        self.pid = 0
        self.began = 0.0
        self.start_at = 0.0
        self.pause = 0.5


def supervise(count: int, child: Callable[[], int], *, grace: float) -> int:
    """
    Run ``child`` in processes of their own until SIGTERM or SIGINT.

    Call it from the main thread, before any other thread is started.

    Args:
        count: How many.
        child: What runs in each; returns its exit code.
        grace: Seconds that children have to end; then they are killed, and their leases end by
            themselves.

    Returns:
        0: all of them ended in order. 1: one did not. 2: one could not be set up.
    """
    old = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    places = [_Place() for _ in range(count)]
    stopping, code, deadline = False, 0, 0.0
    try:
        while True:
            now = time.monotonic()
            for place in places:
                if place.pid == 0 and not stopping and now >= place.start_at:
                    place.pid, place.began = _fork(child, old), now
            if stopping and now >= deadline:
                _tell(places, signal.SIGKILL)
            caught = signal.sigtimedwait(_WATCHED, 0.5)
            for status in _reap(places):
                if status == _USAGE:
                    code, caught = _USAGE, None
                    stopping, deadline = _stop(places, stopping, deadline, grace)
                elif status and not (stopping and status == -signal.SIGTERM):  # before it began
                    code = code or int(stopping)
                    if not stopping:
                        _log.error("a worker process died (%d); another takes its place", status)
            if caught is not None and caught.si_signo in _STOP:
                if stopping:  # asked twice: at once
                    deadline = 0.0
                stopping, deadline = _stop(places, stopping, deadline, grace)
            if stopping and not any(place.pid for place in places):
                return code
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def _fork(child: Callable[[], int], mask: Iterable[int]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        code = child()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        _log.exception("a worker process failed")
    finally:
        logging.shutdown()
        os._exit(code)


def _reap(places: list[_Place]) -> list[int]:
    """Collect the children that ended; their exit codes, a signal as a negative number."""
    ended = []
    for place in places:
        if place.pid == 0:
            continue
        pid, status = os.waitpid(place.pid, os.WNOHANG)
        if pid == 0:
            continue
        now = time.monotonic()
        settled = now - place.began >= _SETTLED
        place.pause = 0.5 if settled else min(2 * place.pause, _LONGEST_PAUSE)
        place.start_at = now if settled else now + place.pause
        place.pid = 0
        ended.append(os.waitstatus_to_exitcode(status))
    return ended


def _stop(
    places: list[_Place], stopping: bool, deadline: float, grace: float
) -> tuple[bool, float]:
    _tell(places, signal.SIGTERM)
    return True, deadline if stopping else time.monotonic() + grace


def _tell(places: list[_Place], number: signal.Signals) -> None:
    for place in places:
        if place.pid:
            os.kill(place.pid, number)  # not reaped yet, so it is still ours
