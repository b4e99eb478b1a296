"""Marks: left by decorators in any order, found on functions and classes, refused when wrong."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.views import MethodView, View

from flask_ext import Admission
from flask_ext.decorators import Marks, marks_of
from gunicorn_admission.core.types import Priority
from gunicorn_admission.errors import ConfigError

admission = Admission()


def test_a_decorator_returns_the_function_itself() -> None:
    def view() -> str:
        return ""

    assert admission.priority("high")(view) is view
    assert admission.stream(view) is view
    assert marks_of(view) == Marks(priority=Priority.HIGH, stream=True, release_on="close")


def test_every_decorator_leaves_its_mark() -> None:
    @admission.deadline("10s")
    @admission.cap(4, name="db")
    @admission.share(0.25)
    @admission.priority(Priority.LOW)
    @admission.stream(release_on="first_byte")
    def view() -> str:
        return ""

    assert marks_of(view) == Marks(
        priority=Priority.LOW, share=0.25, cap=4, name="db", deadline=10.0, stream=True,
        release_on="first_byte",
    )  # fmt: skip


def test_the_order_with_route_does_not_matter() -> None:
    app = Flask("a")

    @app.route("/inside")
    @admission.exempt
    def inside() -> str:
        return ""

    @admission.exempt
    @app.route("/outside")
    def outside() -> str:
        return ""

    for name in ("inside", "outside"):
        assert marks_of(app.view_functions[name]) == Marks(exempt=True)


def test_marks_survive_other_decorators() -> None:
    def other(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any) -> Any:
            return function(*args)

        return wrapped

    @other
    @admission.priority("low")
    def view() -> str:
        return ""

    assert marks_of(view) == Marks(priority=Priority.LOW)


def test_a_wrapper_is_marked_without_the_function_inside() -> None:
    def inside() -> str:
        return ""

    outside = admission.cap(2)(functools.wraps(inside)(lambda: inside()))
    assert marks_of(outside) == Marks(cap=2)
    assert marks_of(inside) is None


class Base(View):
    decorators = [admission.priority("low")]  # noqa: RUF012 - as Flask's documentation has it

    def dispatch_request(self) -> str:
        return ""


@admission.cap(3)
@admission.priority("high")
class Items(MethodView):
    def get(self) -> str:
        return ""

    @admission.priority("low")
    def post(self) -> str:
        return ""


def test_a_class_is_marked_by_its_decorators_list() -> None:
    assert marks_of(Base.as_view("base")) == Marks(priority=Priority.LOW)


def test_a_class_a_method_and_its_head() -> None:
    view = Items.as_view("items")
    assert marks_of(view) == Marks(priority=Priority.HIGH, cap=3)
    assert marks_of(view, "HEAD") == marks_of(view, "GET") == marks_of(view)
    assert marks_of(view, "POST") == Marks(priority=Priority.LOW, cap=3)


def test_a_subclass_may_say_something_else_than_its_base() -> None:
    @admission.priority("low")
    class Other(Items):
        pass

    assert marks_of(Other.as_view("other")) == Marks(priority=Priority.LOW)
    assert marks_of(Items.as_view("items")) == Marks(priority=Priority.HIGH, cap=3)


def test_exempt_over_a_class() -> None:
    class Health(Items):
        @admission.exempt
        def get(self) -> str:
            return ""

    assert marks_of(Health.as_view("health"), "GET") == Marks(exempt=True)


def test_a_bound_method() -> None:
    class Views:
        def show(self) -> str:
            return ""

    view = Views().show
    assert admission.priority("low")(view) is view
    assert marks_of(view) == Marks(priority=Priority.LOW)


def test_no_marks() -> None:
    assert marks_of(None) is None
    assert marks_of(lambda: "") is None


@pytest.mark.parametrize(
    ("make", "field", "hint"),
    [
        (lambda: admission.priority("hihg"), "@admission.priority", "did you mean 'high'?"),
        (lambda: admission.priority(1), "@admission.priority", "write a priority"),  # type: ignore[arg-type]
        (lambda: admission.share(1.5), "@admission.share", "half of the limit is much"),
        (lambda: admission.share(0.5, cap=0), "@admission.share", "0 would serve nobody"),
        (lambda: admission.cap(True), "@admission.cap", "0 would serve nobody"),
        (lambda: admission.cap(2, name="(x)"), "@admission.cap", "are ours"),
        (lambda: admission.deadline("soon"), "@admission.deadline", ""),
        (lambda: admission.stream(release_on="end"), "@admission.stream", ""),  # type: ignore[call-overload]
    ],
)
def test_a_wrong_value_is_refused_where_it_is_written(
    make: Callable[[], object], field: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        make()
    assert caught.value.field == field
    assert hint in caught.value.hint


def test_two_decorators_that_disagree() -> None:
    view = admission.priority("low")(lambda: "")
    with pytest.raises(ConfigError, match="give a view one priority"):
        admission.priority("high")(view)
    with pytest.raises(ConfigError, match="nothing else can hold"):
        admission.exempt(view)
    with pytest.raises(ConfigError, match="nothing else can hold"):
        admission.cap(1)(admission.exempt(lambda: ""))


def test_priority_knows_exempt_too() -> None:
    view = admission.priority("exempt")(lambda: "")
    assert marks_of(view) == Marks(exempt=True)
