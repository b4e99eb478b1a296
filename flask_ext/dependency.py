"""
Bulkheads: a limiter of its own for each thing that an application calls.

A database that hangs holds every thread that asks it. With a bulkhead it holds as many as it
can serve; the other calls are refused at once, and views that do not need it go on.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, ParamSpec, TypeVar

from attrs import frozen
from flask import current_app, has_app_context, has_request_context, request

from flask_ext.refusal import note_refusal
from flask_ext.signals import dependency_rejected, send
from gunicorn_admission.core.statistics import Statistics
from gunicorn_admission.core.types import Mode, Priority
from gunicorn_admission.errors import ConfigError, Rejected
from gunicorn_admission.limiter import Limiter, Permit, Registry
from gunicorn_admission.settings import Settings, parse_duration
from gunicorn_admission.settings.durations import DurationLike

__all__ = ["Dependencies", "Dependency"]

P = ParamSpec("P")
R = TypeVar("R")

_PRIORITIES: Final = {priority.name.lower(): priority for priority in Priority}


class _Held(threading.local):
    """What a thread holds of one dependency."""

    permit: Permit | None = None
    depth = 0


class _Bulkhead(Limiter):
    """The limiter of one dependency, and what each thread holds of it."""

    def __init__(self, name: str, cap: int | None, mode: str) -> None:
        super().__init__(Settings(limit="adaptive", max_limit=cap, mode=mode))
        self.name = name
        self.cap = cap
        self.held = _Held()


@frozen
class Dependency:
    """
    The right to call something, as a context manager or a decorator.

    Made by :meth:`flask_ext.Admission.dependency`. Entered again in a thread that is inside
    already, it goes on with the slot it has: a second one could wait for the first for ever.

    Thread safety: one object may be entered in any number of threads at once; each leaves it
    in the thread that entered it.
    """

    _bulkhead: _Bulkhead
    _timeout: float | None
    _priority: Priority | None

    @property
    def name(self) -> str:
        """Name of what is called."""
        return self._bulkhead.name

    def __enter__(self) -> Permit:
        """
        Take a slot, waiting for one as long as is allowed.

        Raises:
            Rejected: There is none; inside a view that means a 503 unless it is caught.
        """
        held = self._bulkhead.held
        if held.permit is None:
            held.permit = self._acquire()
        held.depth += 1
        return held.permit

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the slot back; a timeout of the driver or its pool is a sign of overload."""
        held = self._bulkhead.held
        held.depth -= 1
        if held.depth == 0 and held.permit is not None:
            permit, held.permit = held.permit, None
            permit.__exit__(kind, error, trace)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """
        Return the function with each call inside the bulkhead.

        Raises:
            ConfigError: It is async or a generator, whose work begins after the call.
        """
        if any(
            is_lazy(function)
            for is_lazy in (
                inspect.iscoroutinefunction,
                inspect.isgeneratorfunction,
                inspect.isasyncgenfunction,
            )
        ):
            raise ConfigError(
                "dependency", function.__qualname__, "a function that works while it is called",
                f"write `with admission.dependency({self.name!r}):` around what blocks",
            )  # fmt: skip

        @functools.wraps(function)
        def inside(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return inside

    def _acquire(self) -> Permit:
        priority = self._inherited() if self._priority is None else self._priority
        try:
            return self._bulkhead.acquire(
                priority=priority, partition=self.name, timeout=self._timeout
            )
        except Rejected as rejected:
            if has_request_context():
                note_refusal(request.environ, rejected)
            if has_app_context():
                app = current_app._get_current_object()  # type: ignore[attr-defined]
                about = {"reason": rejected.reason, "priority": rejected.priority}
                send(dependency_rejected, app, name=self.name, **about)
            raise

    @staticmethod
    def _inherited() -> Priority:
        if not has_request_context():
            return Priority.DEFAULT
        if request.environ.get("gunicorn_admission.decision") == "exempt":
            return Priority.HIGH
        name: Any = request.environ.get("gunicorn_admission.priority")
        return _PRIORITIES.get(name, Priority.DEFAULT)


class Dependencies:
    """
    The dependencies of an extension, by name.

    Attributes:
        mode: ``enforce``, ``monitor`` or ``off``, for all of them.

    Thread safety: all methods may be called from any thread.
    """

    def __init__(self) -> None:
        self.mode = Mode.ENFORCE.value
        self._registry = Registry()

    def get(
        self,
        name: str,
        cap: int | None,
        timeout: DurationLike | None,
        priority: Priority | str | None,
    ) -> Dependency:
        """
        Return a dependency; see :meth:`flask_ext.Admission.dependency`.

        Raises:
            ConfigError: A value cannot work, or the name has another cap.
        """
        field = f"dependency({name!r})"
        if not isinstance(name, str) or not 0 < len(name) <= 64 or not name.isprintable():
            raise ConfigError(
                "dependency", name, "a name of 1 to 64 printable characters",
                "it is shown in errors and statistics",
            )  # fmt: skip
        if cap is not None and (isinstance(cap, bool) or not isinstance(cap, int) or cap < 1):
            raise ConfigError(
                f"{field}.cap", cap, "an integer from 1",
                "how many calls it can serve at once, such as the size of its pool",
            )  # fmt: skip
        bulkhead = self._registry.get(name, lambda: _Bulkhead(name, cap, self.mode))
        assert isinstance(bulkhead, _Bulkhead)
        if cap is not None and cap != bulkhead.cap:
            raise ConfigError(
                f"{field}.cap", cap, f"{bulkhead.cap}, as this name was given before",
                "say it once, where the dependency is first named",
            )  # fmt: skip
        wait = None if timeout is None else parse_duration(timeout, f"{field}.timeout")
        return Dependency(bulkhead, wait, _priority(priority, f"{field}.priority"))

    def set_mode(self, mode: str) -> None:
        """Change the mode of all, those to come too."""
        self.mode = mode
        for _, limiter in self._registry:
            limiter.set_mode(mode)

    def statistics(self) -> dict[str, Statistics]:
        """Return a snapshot of each, by name."""
        return {name: limiter.statistics() for name, limiter in self._registry}


def _priority(value: Priority | str | None, field: str) -> Priority | None:
    if value is None or isinstance(value, Priority):
        return value
    found = _PRIORITIES.get(value.strip().lower()) if isinstance(value, str) else None
    if found is None:
        raise ConfigError(
            field, value, f"one of {', '.join(_PRIORITIES)}, or None",
            "None takes the priority of the request",
        )  # fmt: skip
    return found
