"""Bulkheads: bounded, shared by name, reentrant, honest about timeouts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import Flask

from flask_ext import Admission, Dependency, dependency_rejected
from gunicorn_admission.core.statistics import Statistics
from gunicorn_admission.core.types import Outcome, Priority, Reason
from gunicorn_admission.errors import ConfigError, Rejected
from tests.flask_apps import Outcomes, guard_of, limiter_of

MakeApp = Callable[..., Flask]


def busy(dependency: Dependency) -> Any:
    """Hold a slot as another thread would."""
    return dependency._bulkhead.acquire(partition=dependency.name)


def numbers(admission: Admission, name: str = "db") -> Statistics:
    return admission.statistics().dependencies[name]


def test_bounded_by_the_cap(admission: Admission) -> None:
    db = admission.dependency("db", cap=2, timeout=0)
    with busy(db), db as permit:
        assert (permit.partition, numbers(admission).inflight) == ("db", 2)
        assert numbers(admission).max_limit == 2
    with busy(db), busy(db):
        with pytest.raises(Rejected) as caught, db:
            pytest.fail("there is no slot")
        assert caught.value.partition == "db"
    assert numbers(admission).inflight == 0


def test_outside_of_any_application(admission: Admission) -> None:
    with admission.dependency("db"):
        assert numbers(admission).inflight == 1
    assert numbers(admission).max_limit == 64
    assert admission.statistics().requests is None


def test_the_same_name_is_the_same_bulkhead(admission: Admission) -> None:
    db = admission.dependency("db", cap=1)
    again = admission.dependency("db", timeout="0ms")
    with busy(db), pytest.raises(Rejected), again:
        pytest.fail("there is no slot")
    with busy(db), admission.dependency("queue", cap=1, timeout=0):
        pass  # another one
    assert admission.dependency("db", cap=1).name == "db"


def test_decorator(admission: Admission) -> None:
    @admission.dependency("db", cap=1)
    def query(text: str, *, times: int = 1) -> str:
        """Ask."""
        assert numbers(admission).inflight == 1
        return text * times

    assert query("a", times=2) == "aa"
    assert (query.__name__, query.__doc__) == ("query", "Ask.")
    assert numbers(admission).inflight == 0


def test_entered_again_in_one_thread(admission: Admission) -> None:
    db = admission.dependency("db", cap=1, timeout=0)

    @db
    def query(depth: int) -> int:
        return query(depth - 1) if depth else numbers(admission).inflight

    with db as outer, admission.dependency("db") as inner:
        assert inner is outer
        assert query(3) == 1
    assert numbers(admission).inflight == 0
    assert numbers(admission).granted == 1


def test_another_thread_needs_a_slot_of_its_own(admission: Admission) -> None:
    db = admission.dependency("db", cap=1, timeout=0)
    refused: list[Rejected] = []

    def call() -> None:
        try:
            with db:
                pass
        except Rejected as error:
            refused.append(error)

    with db:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    assert len(refused) == 1


def test_a_failure_leaves_nothing_behind(admission: Admission) -> None:
    db = admission.dependency("db", cap=1, timeout=0)
    for _ in range(3):
        with pytest.raises(ValueError, match="a bug"), db, db:
            raise ValueError("a bug")
        with busy(db), pytest.raises(Rejected), db:
            pytest.fail("there is no slot")
    with db:
        assert numbers(admission).inflight == 1


class PoolTimeout(TimeoutError):
    """As drivers have it."""


def test_a_timeout_is_a_sign_of_overload(
    admission: Admission, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = admission.dependency("db", cap=8)
    outcomes = Outcomes(db._bulkhead, monkeypatch)
    for error in (PoolTimeout("no connection"), ValueError("a bug")):
        with pytest.raises(type(error)), db, db:
            raise error
    with db:
        pass
    assert outcomes == [Outcome.DROP, Outcome.IGNORE, Outcome.SUCCESS]


@pytest.mark.parametrize(
    ("path", "own", "expected"),
    [
        ("/pay", None, Priority.HIGH),
        ("/x", None, Priority.LOW),
        ("/", None, Priority.DEFAULT),
        ("/alive", None, Priority.HIGH),
        ("/pay", "low", Priority.LOW),
        ("/x", Priority.HIGH, Priority.HIGH),
    ],
)
def test_priority_of_the_request(
    make_app: MakeApp, admission: Admission, path: str, own: Any, expected: Priority
) -> None:
    routes = {"/pay": "high", "/x": "low", "/alive": "exempt"}
    app = make_app(ADMISSION_ROUTES=routes)
    seen: list[Priority] = []

    def view(**_: Any) -> str:
        with admission.dependency("db", priority=own) as permit:
            seen.append(permit.priority)
        return ""

    for endpoint in ("home", "x"):
        app.view_functions[endpoint] = view
    app.add_url_rule("/pay", "pay", view)
    app.add_url_rule("/alive", "alive", view)
    app.test_client().get(path)
    assert seen == [expected]


def test_no_request(admission: Admission) -> None:
    with admission.dependency("db") as permit:
        assert permit.priority is Priority.DEFAULT


def test_refused_in_a_view(make_app: MakeApp, admission: Admission) -> None:
    app = make_app()
    db = admission.dependency("db", cap=1, timeout=0)
    app.add_url_rule("/db", "db", db(lambda: "rows"))
    heard: list[Any] = []

    def hear(sender: Flask, **data: Any) -> None:
        heard.append((sender, data))

    client = app.test_client()
    assert client.get("/db").text == "rows"
    with busy(db), dependency_rejected.connected_to(hear, app):
        response = client.get("/db")
    assert response.status_code == 503
    assert response.headers["Admission-Reason"] == "overloaded"
    about = {"name": "db", "reason": Reason.OVERLOADED, "priority": Priority.DEFAULT}
    assert heard == [(app, about)]
    assert limiter_of(app).statistics().inflight == 0


def test_a_view_serves_without(make_app: MakeApp, admission: Admission) -> None:
    app = make_app()
    db = admission.dependency("db", cap=1, timeout=0)

    def view() -> str:
        try:
            with db:
                return "rows"
        except Rejected:
            return "from the cache"

    app.add_url_rule("/db", "db", view)
    with busy(db):
        response = app.test_client().get("/db")
    assert (response.status_code, response.text) == (200, "from the cache")


@pytest.mark.parametrize("mode", ["off", "monitor"])
def test_refuses_nothing_where_the_application_refuses_nothing(
    make_app: MakeApp, admission: Admission, mode: str
) -> None:
    db = admission.dependency("db", cap=1, timeout=0)
    make_app(ADMISSION_MODE=mode)
    later = admission.dependency("later", cap=1, timeout=0)
    for one in (db, later):
        with busy(one), one:
            assert numbers(admission, one.name).inflight == 2


def generator() -> Iterator[int]:
    yield 1


async def coroutine() -> None: ...


async def both() -> Any:
    yield 1


@pytest.mark.parametrize("lazy", [generator, coroutine, both])
def test_what_does_not_work_while_it_is_called(
    admission: Admission, lazy: Callable[..., Any]
) -> None:
    with pytest.raises(ConfigError, match=r"write `with admission\.dependency\('db'\):`"):
        admission.dependency("db")(lazy)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"cap": 0}, "dependency('db').cap"),
        ({"cap": True}, "dependency('db').cap"),
        ({"cap": "8"}, "dependency('db').cap"),
        ({"timeout": "soon"}, "dependency('db').timeout"),
        ({"timeout": -1}, "dependency('db').timeout"),
        ({"priority": "hihg"}, "dependency('db').priority"),
        ({"priority": 7}, "dependency('db').priority"),
    ],
)
def test_a_wrong_value(admission: Admission, arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        admission.dependency("db", **arguments)
    assert caught.value.field == field


@pytest.mark.parametrize("name", ["", "x" * 65, "a\nb", None])
def test_a_wrong_name(admission: Admission, name: Any) -> None:
    with pytest.raises(ConfigError, match="a name of 1 to 64"):
        admission.dependency(name)


def test_another_cap_for_the_same_name(admission: Admission) -> None:
    admission.dependency("db", cap=8)
    with pytest.raises(ConfigError, match="8, as this name was given before"):
        admission.dependency("db", cap=9)
    admission.dependency("queue")
    with pytest.raises(ConfigError, match="None, as this name was given before"):
        admission.dependency("queue", cap=9)


def test_the_guard_is_not_involved(make_app: MakeApp, admission: Admission) -> None:
    app = make_app()
    with admission.dependency("db"):
        assert guard_of(app).limiter() is None
