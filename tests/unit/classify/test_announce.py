"""Rules of applications reach the classifiers of the process, whoever comes first."""

from __future__ import annotations

import gc
import logging
import os
import weakref
from collections.abc import Iterable

import pytest

from gunicorn_admission.classify import Classifier
from gunicorn_admission.classify import announce as announcing
from gunicorn_admission.classify.announce import announce, give, subscribe
from gunicorn_admission.core.types import Priority
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.settings import RouteRule, RuleLike, Settings, parse_rule


@pytest.fixture(autouse=True)
def logger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let our log lines be seen, whatever logging settings an earlier test has left."""
    ours = logging.getLogger("gunicorn_admission")
    monkeypatch.setattr(ours, "disabled", False)
    monkeypatch.setattr(ours, "propagate", True)


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no application or server of another test be heard."""
    monkeypatch.setattr(announcing, "_sources", [])
    monkeypatch.setattr(announcing, "_subscribers", weakref.WeakKeyDictionary())


class Application:
    """Says its rules when it is asked."""

    def __init__(self, **rules: RuleLike) -> None:
        self.said = {f"/{name}": rule for name, rule in rules.items()}
        self.asked = 0

    def rules(self) -> Iterable[RouteRule]:
        self.asked += 1
        return [parse_rule(pattern, rule) for pattern, rule in self.said.items()]


class Server:
    """A classifier and its limiter."""

    def __init__(self, **settings: object) -> None:
        self.limiter = Limiter(Settings(limit=8))
        self.classifier = Classifier(Settings(**settings))  # type: ignore[arg-type]

    def subscribe(self) -> None:
        subscribe(self.classifier, self.limiter)

    def priority(self, path: str) -> Priority:
        return self.classifier.classify("GET", path).priority


def test_the_application_comes_first() -> None:
    application, server = Application(a="low"), Server()
    announce(application.rules)
    assert application.asked == 0
    server.subscribe()
    assert server.priority("/a") is Priority.LOW


def test_the_server_comes_first() -> None:
    application, server = Application(a="low"), Server()
    server.subscribe()
    announce(application.rules)
    assert server.priority("/a") is Priority.LOW


def test_announcing_again_reads_what_is_new() -> None:
    application, server = Application(a="low"), Server()
    server.subscribe()
    announce(application.rules)
    assert server.priority("/b") is Priority.DEFAULT
    application.said["/b"] = "high"
    announce(application.rules)
    assert server.priority("/b") is Priority.HIGH
    later = Server()
    later.subscribe()
    assert later.priority("/b") is Priority.HIGH
    assert application.asked == 3  # once a reading, though it was announced twice


def test_several_of_both() -> None:
    one, two = Application(a="low"), Application(b="high")
    servers = [Server(), Server()]
    announce(one.rules)
    for server in servers:
        server.subscribe()
    announce(two.rules)
    assert [(s.priority("/a"), s.priority("/b")) for s in servers] == [
        (Priority.LOW, Priority.HIGH)
    ] * 2


def test_shares_and_caps_reach_the_limiter() -> None:
    application, server = Application(a={"share": 0.25, "cap": 3, "name": "db"}), Server()
    announce(application.rules)
    server.subscribe()
    seen = server.limiter.statistics().partitions["db"]
    assert (seen.cap, seen.held) == (3, 2)


def test_who_is_gone_is_forgotten() -> None:
    application, server = Application(a="low"), Server()
    announce(application.rules)
    del application
    gc.collect()
    server.subscribe()
    assert server.priority("/a") is Priority.DEFAULT
    kept = server.classifier
    del server
    gc.collect()
    other = Application(b="low")
    announce(other.rules)
    assert other.asked == 0
    assert kept.classify("GET", "/b").priority is Priority.DEFAULT


def test_the_servers_settings_win() -> None:
    application, server = Application(a="low"), Server(routes={"/a": "high"})
    announce(application.rules)
    server.subscribe()
    assert server.priority("/a") is Priority.HIGH


def test_what_contradicts_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    one, two = Application(a="low"), Application(a="high", b="high")
    server = Server()
    server.subscribe()
    announce(one.rules)
    announce(two.rules)
    assert server.priority("/a") is Priority.LOW
    assert server.priority("/b") is Priority.HIGH
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "'/a'" in caplog.text


def test_an_application_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Application):
        def rules(self) -> Iterable[RouteRule]:
            raise ValueError("a bug")

    broken, application, server = Broken(), Application(a="low"), Server()
    announce(broken.rules)
    announce(application.rules)
    server.subscribe()
    assert server.priority("/a") is Priority.LOW
    assert "cannot be read" in caplog.text


def test_give_says_what_is_wrong() -> None:
    rules = [
        parse_rule(f"/{name}", {"share": share})
        for name, share in [("a", 0.5), ("b", 0.6), ("c", 0.1)]
    ]
    classifier = Classifier(Settings())
    (error,) = give(rules, classifier)
    assert error.field == "share"
    assert set(classifier.policies) == {"/a", "/c"}


def test_in_a_forked_worker() -> None:
    application = Application(a="low")
    announce(application.rules)
    child = os.fork()
    if child == 0:
        try:
            server = Server()
            server.subscribe()
            os._exit(0 if server.priority("/a") is Priority.LOW else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
