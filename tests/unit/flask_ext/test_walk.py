"""Marks on views become rules; views beside them keep the class they have."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Blueprint, Flask
from flask.views import MethodView

from flask_ext import Admission
from flask_ext.walk import Walk, walk
from gunicorn_admission.classify import Classifier, RequestClass
from gunicorn_admission.core.types import Priority
from gunicorn_admission.settings import Settings

admission = Admission()
HIGH, DEFAULT, LOW = Priority.HIGH, Priority.DEFAULT, Priority.LOW


def view(**_: Any) -> str:
    return ""


def marked(mark: Any) -> Any:
    """A view of its own with this decorator."""

    def one(**_: Any) -> str:
        return ""

    return mark(one)


@pytest.fixture
def app() -> Flask:
    return Flask("shop", static_folder=None)


def classifier(found: Walk, **settings: Any) -> Classifier:
    made = Classifier(Settings(**settings))
    made.add_rules(found.rules)
    return made


def decided(app: Flask, path: str, method: str = "GET", mount: str = "") -> tuple[str, Priority]:
    """Class and priority in front of the routing."""
    found = classifier(walk(app, mount)).classify(method, path)
    return found.partition, found.priority


def routed(app: Flask, path: str, method: str = "GET") -> tuple[str, Priority | None] | None:
    """Class and priority that are meant behind the routing."""
    with app.test_request_context(path, method=method) as context:
        rule = walk(app).intention(context.request.url_rule, method)
    return None if rule is None else (rule.class_name, rule.priority)


def test_nothing_is_marked(app: Flask) -> None:
    app.add_url_rule("/<path:rest>", "a", view)
    assert walk(app) == Walk()


def test_class_and_priority(app: Flask) -> None:
    app.add_url_rule("/pay/<int:id>", "pay", marked(admission.priority("high")), methods=["POST"])
    assert decided(app, "/pay/1", "POST") == ("pay", HIGH)
    assert decided(app, "/pay/1", "GET") == ("/pay", DEFAULT)
    assert decided(app, "/pay/1", "OPTIONS") == ("/pay", DEFAULT)  # automatic ones
    assert routed(app, "/pay/1", "POST") == ("pay", HIGH)
    assert routed(app, "/pay/1", "OPTIONS") is None


def test_blueprint_and_name(app: Flask) -> None:
    shop = Blueprint("shop", __name__, url_prefix="/shop/<lang>")
    shop.add_url_rule("/items", "items", marked(admission.share(0.25, cap=3, name="db")))
    app.register_blueprint(shop)
    app.add_url_rule("/more", "more", marked(admission.share(0.25, cap=3, name="db")))
    made = classifier(walk(app))
    for path in ("/shop/de/items", "/more"):
        assert made.classify("GET", path).partition == "db"
    assert (made.policies["db"].share, made.policies["db"].cap) == (0.25, 3)


def test_every_field_reaches_the_policy(app: Flask) -> None:
    mark = admission.stream(release_on="first_byte")
    app.add_url_rule("/s", "s", admission.deadline("2s")(marked(mark)))
    policy = classifier(walk(app)).policies["s"]
    assert (policy.deadline_ns, policy.stream, policy.release_on_first_byte) == (
        2_000_000_000, True, True,
    )  # fmt: skip


def test_exempt(app: Flask) -> None:
    app.add_url_rule("/alive", "alive", marked(admission.exempt))
    made = classifier(walk(app))
    assert made.classify("GET", "/alive").exempt
    assert not made.classify("GET", "/alive/x").exempt


def test_several_rules_of_one_view_form_one_class(app: Flask) -> None:
    one = marked(admission.share(0.5))
    app.add_url_rule("/a", "one", one)
    app.add_url_rule("/b/<x>", "one", one)
    made = classifier(walk(app))  # two classes of 0.5 would be refused
    assert {made.classify("GET", path).partition for path in ("/a", "/b/1")} == {"one"}


def test_an_unmarked_view_beside_a_marked_one_keeps_its_class(app: Flask) -> None:
    app.add_url_rule("/users/<int:id>", "user", marked(admission.priority("low")))
    app.add_url_rule("/users/me", "me", view)
    app.add_url_rule("/users/<id>/orders", "orders", view)
    app.add_url_rule("/else", "else", view)
    assert decided(app, "/users/7") == ("user", LOW)
    assert decided(app, "/users/me") == ("/users", DEFAULT)
    assert len(walk(app).rules) == 2  # no rule where none is needed


def test_a_marked_catch_all(app: Flask) -> None:
    app.add_url_rule("/<path:rest>", "rest", marked(admission.priority("low")))
    app.add_url_rule("/users/<id>", "user", view)
    app.add_url_rule("/<page>/printed", "print", view)
    app.add_url_rule("/", "home", view)
    assert decided(app, "/users/7") == ("/users", DEFAULT)
    assert decided(app, "/about/printed") == ("(other)", DEFAULT)
    assert decided(app, "/a/b/c/d") == ("rest", LOW)
    assert decided(app, "/") == ("/", DEFAULT)


def test_methods_of_one_path_are_kept_apart(app: Flask) -> None:
    app.add_url_rule("/x", "read", marked(admission.priority("low")), methods=["GET"])
    app.add_url_rule("/x", "write", marked(admission.priority("high")), methods=["POST"])
    app.add_url_rule("/x", "drop", view, methods=["DELETE"])
    assert walk(app).undecided == frozenset()
    assert decided(app, "/x") == ("read", LOW)
    assert decided(app, "/x", "HEAD") == ("read", LOW)
    assert decided(app, "/x", "POST") == ("write", HIGH)
    assert decided(app, "/x", "DELETE") == ("/x", DEFAULT)


class Items(MethodView):
    decorators = [admission.cap(5)]  # noqa: RUF012 - as Flask's documentation has it

    def get(self) -> str:
        return ""

    def put(self) -> str:
        return ""

    @admission.priority("high")
    def post(self) -> str:
        return ""


def test_methods_of_a_class(app: Flask) -> None:
    app.add_url_rule("/items", view_func=Items.as_view("items"))
    assert decided(app, "/items") == ("items", DEFAULT)
    assert decided(app, "/items", "PUT") == ("items", DEFAULT)
    assert decided(app, "/items", "POST") == ("items.post", HIGH)
    assert routed(app, "/items", "POST") == ("items.post", HIGH)
    assert routed(app, "/items", "PUT") == ("items", None)


@pytest.mark.parametrize("mark", [admission.priority("low"), admission.priority("high")])
def test_what_only_the_routing_can_tell(app: Flask, mark: Any) -> None:
    app.add_url_rule("/users/<int:id>", "by_id", marked(mark))
    app.add_url_rule("/users/<name>", "by_name", view)
    highest = HIGH if mark(lambda: "").__gunicorn_admission__.priority is HIGH else DEFAULT
    assert decided(app, "/users/7") == decided(app, "/users/tom") == ("(other)", highest)
    assert routed(app, "/users/7") == ("by_id", HIGH if highest is HIGH else LOW)
    assert routed(app, "/users/tom") == ("/users", None)


def test_what_only_the_routing_can_tell_is_never_exempt_before(app: Flask) -> None:
    app.add_url_rule("/<int:id>", "by_id", marked(admission.exempt))
    app.add_url_rule("/<name>", "by_name", view)
    found = classifier(walk(app)).classify("GET", "/7")
    assert (found.exempt, found.priority) == (False, HIGH)


def test_three_that_cannot_be_told_apart(app: Flask) -> None:
    app.add_url_rule("/<int:id>", "a", marked(admission.priority("low")))
    app.add_url_rule("/<float:id>", "b", marked(admission.priority("high")))
    app.add_url_rule("/<id>", "c", marked(admission.cap(2)))
    assert decided(app, "/7") == ("(other)", HIGH)
    assert routed(app, "/7") == ("a", LOW)
    assert routed(app, "/7.5") == ("b", HIGH)
    assert routed(app, "/seven") == ("c", None)


def test_classes_behind_the_routing_exist_with_share_and_cap(app: Flask) -> None:
    app.add_url_rule("/<int:id>", "by_id", marked(admission.share(0.25, cap=2)))
    app.add_url_rule("/<name>", "by_name", view)
    app.add_url_rule("/x-<path:rest>", "rest", marked(admission.cap(3)))
    made = classifier(walk(app))
    assert (made.policies["by_id"].share, made.policies["by_id"].cap) == (0.25, 2)
    assert made.policies["rest"].cap == 3
    assert made.classify("GET", "/x-a/b").rule is None
    assert routed(app, "/x-a/b") == ("rest", None)


def test_hosts_are_not_told_apart_by_the_path() -> None:
    app = Flask("shop", static_folder=None, subdomain_matching=True)
    app.config["SERVER_NAME"] = "localhost"
    app.add_url_rule("/x", "a", marked(admission.priority("low")), subdomain="a")
    app.add_url_rule("/x", "b", view, subdomain="b")
    assert decided(app, "/x") == ("(other)", DEFAULT)


def test_mount(app: Flask) -> None:
    app.add_url_rule("/users/<int:id>", "user", marked(admission.priority("low")))
    app.add_url_rule("/users/me", "me", view)
    assert decided(app, "/api/users/7", mount="/api") == ("user", LOW)
    assert decided(app, "/api/users/me", mount="/api") == ("/api", DEFAULT)
    assert decided(app, "/users/7", mount="/api") == ("/users", DEFAULT)


def test_rules_that_are_no_pages(app: Flask) -> None:
    app.add_url_rule("/ws", "ws", marked(admission.exempt), websocket=True, methods=None)
    app.add_url_rule("/build", "build", marked(admission.exempt), build_only=True)
    app.url_map.update()
    assert walk(app) == Walk()


def test_an_endpoint_without_a_view(app: Flask) -> None:
    app.add_url_rule("/nothing", "nothing")
    app.add_url_rule("/x", "x", marked(admission.exempt))
    assert len(walk(app).rules) == 1


def test_walking_again_changes_nothing(app: Flask) -> None:
    app.add_url_rule("/<int:id>", "a", marked(admission.priority("low")))
    app.add_url_rule("/<id>", "c", marked(admission.cap(2)))
    made = classifier(walk(app))
    before: RequestClass = made.classify("GET", "/1")
    made.add_rules(walk(app).rules)
    after = made.classify("GET", "/1")
    assert (after.partition, after.priority) == (before.partition, before.priority)
