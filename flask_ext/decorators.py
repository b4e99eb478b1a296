"""
Marks on views: priority, share and the like, written where the view is written.

A decorator only leaves a mark on the function and returns it, so the order with
``@app.route`` does not matter, async views stay what they are, and nothing is added to a
call. The extension reads the marks before the first request and makes route rules of them,
so that the class of a request is known in front of the threads. Marks are also found on
view classes (in ``decorators``, on the class, or on the methods of a ``MethodView``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar, overload

from attrs import asdict, evolve, frozen
from flask.views import MethodView

from gunicorn_admission.core.types import Priority
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings import DurationLike, parse_rule

__all__ = ["Decorators", "Marks", "marks_of"]

F = TypeVar("F", bound=Callable[..., Any])

_MARKS: Final = "__gunicorn_admission__"


@frozen(kw_only=True)
class Marks:
    """What the decorators say about a view; the fields are those of a route rule."""

    exempt: bool = False
    priority: Priority | None = None
    share: float | None = None
    cap: int | None = None
    name: str | None = None
    deadline: float | None = None
    stream: bool | None = None
    release_on: Literal["close", "first_byte"] | None = None

    def over(self, other: Marks) -> Marks:
        """What these say, and of the other's what these leave open."""
        if self.exempt:
            return self
        return evolve(other, exempt=False, **_said(self))


def marks_of(view: object, method: str | None = None) -> Marks | None:
    """
    Return the marks of a view, ``None`` without any.

    Those of a ``MethodView``'s method go over those of the view function, and these over those
    of the view class.

    Args:
        view: A view function.
        method: An HTTP method, for the method of the class that serves it.
    """
    cls = getattr(view, "view_class", None)
    places = [cls, view]
    if method is not None and issubclass(cls or object, MethodView):
        get = getattr(cls, "get", None) if method == "HEAD" else None
        places.append(getattr(cls, method.lower(), get))
    found: Marks | None = None
    for place in places:
        marks = getattr(place, _MARKS, None)
        if isinstance(marks, Marks):
            found = marks if found is None else marks.over(found)
    return found


class Decorators:
    """
    The decorators of :class:`~flask_ext.Admission`.

    All raise ``ConfigError`` where a value cannot work or contradicts another decorator of the
    same view. Views marked with one ``name`` form one class: they share its slots.
    """

    def priority(self, priority: Priority | str) -> Callable[[F], F]:
        """
        Say how much the requests for a view matter.

        Args:
            priority: ``"high"`` queues and is shed last, ``"default"``, ``"low"`` takes spare
                slots only.
        """
        return _marking("priority", priority=priority)

    def exempt(self, view: F) -> F:
        """Let requests for a view bypass admission: probes, and what must always answer."""
        return _marking("exempt", priority="exempt")(view)

    def share(
        self, share: float, *, cap: int | None = None, name: str | None = None
    ) -> Callable[[F], F]:
        """
        Hold slots back for a view, whoever else is busy.

        Args:
            share: Fraction of the limit, above 0 and below 1; idle while nobody uses it.
            cap: Most slots that the view may hold.
            name: Class in metrics and logs; the endpoint if not given.
        """
        return _marking("share", share=share, cap=cap, name=name)

    def cap(self, cap: int, *, name: str | None = None) -> Callable[[F], F]:
        """
        Bound the slots that a view may hold at once, such as one that waits for a slow service.

        Args:
            cap: At least 1.
            name: Class in metrics and logs; the endpoint if not given.
        """
        return _marking("cap", cap=cap, name=name)

    def deadline(self, deadline: DurationLike) -> Callable[[F], F]:
        """
        Say how long the sender waits for an answer, so that nothing is done for nobody.

        Args:
            deadline: A duration such as ``"10s"``, or seconds.
        """
        return _marking("deadline", deadline=deadline)

    @overload
    def stream(self, view: F) -> F: ...
    @overload
    def stream(
        self, *, release_on: Literal["close", "first_byte"] = "close"
    ) -> Callable[[F], F]: ...
    def stream(
        self, view: F | None = None, *, release_on: Literal["close", "first_byte"] = "close"
    ) -> F | Callable[[F], F]:
        """
        Say that the answers of a view live long: only the time to the first byte is a sample.

        Args:
            view: What is decorated.
            release_on: ``"close"`` holds the slot to the end, ``"first_byte"`` gives it back
                when the answer begins; its thread stays counted.
        """
        mark: Callable[[F], F] = _marking("stream", stream=True, release_on=release_on)
        return mark if view is None else mark(view)


def _marking(decorator: str, **given: object) -> Callable[[F], F]:
    """Check what was given at once, where the traceback shows the line; mark later."""
    new = _parsed(decorator, given)

    def mark(view: F) -> F:
        function = getattr(view, "__func__", view)  # a bound method cannot carry marks
        # Not those that a class inherits, which it may well contradict.
        old = vars(function).get(_MARKS, Marks())
        setattr(function, _MARKS, _merged(decorator, old, new))
        return view

    return mark


def _parsed(decorator: str, given: dict[str, object]) -> Marks:
    try:
        rule = parse_rule("/", given, "@admission")
    except ConfigError as error:
        argument = error.field.rpartition(".")[2]
        raise ConfigError(
            f"@admission.{decorator}", error.value, error.expected, error.hint, f"its {argument}"
        ) from None
    return Marks(
        exempt=rule.exempt,
        priority=rule.priority,
        share=rule.share,
        cap=rule.cap,
        name=rule.name,
        deadline=rule.deadline,
        stream=rule.stream,
        release_on=rule.release_on,
    )


def _said(marks: Marks) -> dict[str, Any]:
    # Not by truth or equality: HIGH is 0.
    items = asdict(marks).items()
    return {name: value for name, value in items if value is not None and value is not False}


def _merged(decorator: str, old: Marks, new: Marks) -> Marks:
    mine = _said(new)
    for name, value in mine.items():
        known = getattr(old, name)
        if known is not None and known is not False and known != value:
            raise ConfigError(
                f"@admission.{decorator}", value, f"{known!r}, as another decorator says",
                f"give a view one {name}",
            )  # fmt: skip
    merged = evolve(old, **mine)
    if merged.exempt and merged != Marks(exempt=True):
        raise ConfigError(
            f"@admission.{decorator}", decorator, "no other decorator beside exempt",
            "an exempt view bypasses admission, so nothing else can hold for it",
        )  # fmt: skip
    return merged
