"""The classifier: classes, exemptions, bounds against strangers, rules added while running."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from gunicorn_admission.classify import Classifier, RequestClass
from gunicorn_admission.classify.routes import CACHED_PATHS, ENDPOINTS
from gunicorn_admission.core.policy import SECOND, PartitionPolicy
from gunicorn_admission.core.types import Priority
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings import EXEMPT_DEFAULTS, Settings
from gunicorn_admission.settings.partitions import ENDPOINT
from gunicorn_admission.settings.patterns import parse_pattern
from gunicorn_admission.settings.rules import RouteRule


def classifier(**values: Any) -> Classifier:
    return Classifier(Settings(**values))


def names(one: Classifier, *paths: str) -> list[str]:
    return [one.classify("GET", path).partition for path in paths]


def test_a_rule_decides() -> None:
    one = classifier(
        routes={"/pay": "high", "/bulk": {"priority": "low", "cap": 2, "deadline": "3s"}}
    )
    found = one.classify("GET", "/bulk/7")
    assert found.priority is Priority.LOW
    assert not found.exempt
    assert (found.partition, found.rule) == ("/bulk", "/bulk")
    assert found.policy == PartitionPolicy(
        name="/bulk", priority=Priority.LOW, cap=2, deadline_ns=3 * SECOND
    )
    assert one.classify("POST", "/pay").priority is Priority.HIGH
    assert one.classify("GET", "/bulk/8") is found, "one object a class"


def test_rules_with_one_name_form_one_class_and_keep_their_priorities() -> None:
    one = classifier(
        routes={
            "/a": {"name": "db", "priority": "low"},
            "/b": {"name": "db", "cap": 3},
            "/c": {"name": "db", "priority": "high"},
            "/d": {"name": "db", "priority": "low"},
        }
    )
    a, b, c = (one.classify("GET", path) for path in ("/a", "/b", "/c"))
    assert [x.priority for x in (a, b, c)] == [Priority.LOW, Priority.DEFAULT, Priority.HIGH]
    assert a.policy is b.policy is c.policy is one.policies["db"]
    assert (a.policy.cap, a.policy.priority) == (3, Priority.HIGH)


def test_endpoints_need_no_configuration() -> None:
    one = classifier()
    assert names(one, "/users/1", "/users", "//users/x", "/", "", "*") == [
        "/users", "/users", "/users", "/", "/", "(other)",
    ]  # fmt: skip
    found = one.classify("GET", "/users/1")
    assert found.priority is Priority.DEFAULT
    assert found.rule is None
    assert found.policy == PartitionPolicy(name="/users")
    assert one.classify("DELETE", "/users/2") is found


def test_no_path_is_the_root() -> None:
    assert classifier(routes={"=/": "low"}).classify("GET", "").priority is Priority.LOW


@pytest.mark.parametrize(
    ("by", "path", "partition"),
    [
        ("endpoint", "/pay/1", "/pay"),
        ("endpoint", "/users/1", "/users"),
        ("route", "/pay/1", "/pay"),
        ("route", "/users/1", "(default)"),
        ("none", "/pay/1", "(all)"),
        ("none", "/users/1", "(all)"),
    ],
)
def test_partition_by(by: str, path: str, partition: str) -> None:
    one = classifier(partition_by=by, routes={"/pay": {"priority": "high", "stream": True}})
    found = one.classify("GET", path)
    assert found.partition == found.policy.name == partition
    assert found.policy.stream is path.startswith("/pay")
    assert (found.priority is Priority.HIGH) is path.startswith("/pay")


def test_shares_and_caps_reach_endpoints() -> None:
    one = classifier(share={"/users": 0.25, "(other)": 0.1}, cap={"/users": 3})
    assert one.classify("GET", "/users/1").policy == PartitionPolicy(
        name="/users", share=0.25, cap=3
    )
    assert one.classify("GET", "/.git/config").policy.share == 0.1
    assert set(one.policies) == {"/users", "(other)"}


def test_a_class_is_one_partition_for_covered_and_other_methods() -> None:
    one = classifier(routes={"/users": {"priority": "low", "methods": ["POST"], "cap": 2}})
    post, get = one.classify("POST", "/users"), one.classify("GET", "/users")
    assert (post.priority, get.priority) == (Priority.LOW, Priority.DEFAULT)
    assert post.policy is get.policy
    assert (post.rule, get.rule) == ("/users", None)


@pytest.mark.parametrize("path", EXEMPT_DEFAULTS)
def test_probes_are_exempt(path: str) -> None:
    one = classifier()
    for method in ("GET", "HEAD"):
        for spelling in (path, path + "/"):
            found = one.classify(method, spelling)
            assert found.exempt
            assert found.partition == "(exempt)"
            assert not found.policy.sampled
    assert not one.classify("POST", path).exempt
    assert not one.classify("GET", path + "/deep").exempt
    assert not one.classify("GET", path + "x").exempt
    assert not one.classify("GET", "/" + path).exempt
    assert not classifier(exempt_health=False).classify("GET", path).exempt


@pytest.mark.parametrize("spelling", ["/health", "/health/", "=/health", "=/health/"])
def test_a_rule_of_the_user_beats_a_built_in_one(spelling: str) -> None:
    one = classifier(routes={spelling: "low"})
    path = "/health/" if spelling.endswith("h/") and spelling.startswith("=") else "/health"
    assert one.classify("GET", path).priority is Priority.LOW
    assert not one.classify("GET", path).exempt
    assert one.classify("GET", "/healthz").exempt


def test_a_rule_for_everything_leaves_the_probes_alone() -> None:
    one = classifier(routes={"/": "low", "/**": "low", "/he*": "low"})
    assert one.classify("GET", "/healthz").exempt
    assert one.classify("GET", "/hello").priority is Priority.LOW


def test_exempt_paths_and_the_status_page() -> None:
    one = classifier(
        exempt=["/probe", "=/one"], status_path="/-/admission", routes={"/x": "exempt"}
    )
    for path in ("/probe", "/probe/deep", "/one", "/x/y", "/-/admission", "/-/admission/data"):
        assert one.classify("POST", path).exempt, path
    assert not one.classify("GET", "/one/more").exempt
    assert one.classify("GET", "/x/y").rule == "/x"


@pytest.mark.parametrize(
    "path", ["/x/../pay", "/x/./y", "/x/..", "/x/.", "/x/a/../../pay", "/./x", "/../x"]
)
def test_a_path_with_dot_segments_is_never_exempt(path: str) -> None:
    assert not classifier(routes={"/x": "exempt", "/pay": "low"}).classify("GET", path).exempt


@pytest.mark.parametrize("path", ["/x/.well-known", "/x/a..b", "/x/...", "/x/a."])
def test_other_dots_are_plain_text(path: str) -> None:
    assert classifier(routes={"/x": "exempt"}).classify("GET", path).exempt


def test_strangers_cannot_grow_what_is_remembered() -> None:
    one = classifier()
    for number in range(CACHED_PATHS + 10):
        one.classify("GET", f"/users/{number}")
    assert len(one._compiled.cache) == 10, "full, so forgotten, and begun again"
    one.classify("GET", "/users/" + "x" * 300)
    assert len(one._compiled.cache) == 10, "long paths are not kept at all"


def test_strangers_cannot_grow_the_classes() -> None:
    one = classifier(share={"/known": 0.1})
    first = names(one, *(f"/a{number}" for number in range(ENDPOINTS)))
    assert first == [f"/a{number}" for number in range(ENDPOINTS)]
    assert set(names(one, *(f"/b{number}" for number in range(ENDPOINTS)))) == {"(other)"}
    assert names(one, "/known", "/a0/x", "/b0") == ["/known", "/a0", "(other)"]


@pytest.mark.parametrize(
    "path",
    ["/a\nb", "/caf\xc3\xa9", "/.git", "/" + "x" * 41, "/a b", "/a|b", "//x!", '/"', "/a\x00"],
)
def test_odd_names_do_not_become_labels(path: str) -> None:
    one = classifier()
    assert names(one, path) == ["(other)"]
    assert not one._learned


@pytest.mark.parametrize("name", ["/", "/a", "/a.b", "/~me", "/A-b_c", "/" + "x" * 40])
def test_names_that_settings_accept_are_those_that_requests_get(name: str) -> None:
    assert ENDPOINT.fullmatch(name)
    assert names(classifier(), name) == [name]


def test_added_rules_take_effect_at_once() -> None:
    one = classifier()
    before = one.classify("GET", "/users/1")
    one.add_rules({"/users": {"priority": "low", "cap": 2}})
    after = one.classify("GET", "/users/1")
    assert before.priority is Priority.DEFAULT
    assert (after.priority, after.policy.cap, after.rule) == (Priority.LOW, 2, "/users")
    assert one.policies["/users"] is after.policy


def test_adding_twice_is_harmless() -> None:
    one = classifier()
    for _ in range(2):
        one.add_rules({"/a": "low", "/b": "high"})
    assert len(one._added) == 2
    assert one.classify("GET", "/a").priority is Priority.LOW


def test_settings_have_the_last_word() -> None:
    one = classifier(
        routes={
            "/a": "high",
            "/b": {"priority": "high", "methods": ["GET"]},
            "/c": {"priority": "low", "cap": 4},
        }
    )
    one.add_rules({"/a": "low", "/b": "low", "/a/deep": "low", "/health": "low"})
    one.add_rules({"/c": {"priority": "high", "cap": 2}})
    assert one.classify("GET", "/a").priority is Priority.HIGH
    assert one.classify("GET", "/c").policy.cap == 4
    assert one.classify("GET", "/b").priority is Priority.HIGH
    assert one.classify("POST", "/b").priority is Priority.LOW
    assert one.classify("GET", "/a/deep").priority is Priority.LOW
    assert not one.classify("GET", "/health").exempt


def test_parsed_rules_may_differ_by_method() -> None:
    one, pattern = classifier(), parse_pattern("/a")
    one.add_rules(
        RouteRule(pattern=pattern, methods=frozenset({method}), priority=priority)
        for method, priority in (("GET", Priority.LOW), ("POST", Priority.HIGH))
    )
    assert one.classify("GET", "/a").priority is Priority.LOW
    assert one.classify("POST", "/a").priority is Priority.HIGH
    assert one.classify("PUT", "/a").priority is Priority.DEFAULT


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ({"/b": "hihg"}, "routes['/b']"),
        ({"b": "high"}, "routes"),
        ({"/a/": "high"}, "routes['/a/']"),
        ({"/b": {"share": 0.8}}, "share"),
        ({"/b": {"name": "/a", "cap": 4}}, "routes['/b'].cap"),
    ],
)
def test_a_bad_addition_changes_nothing(rules: dict[str, Any], field: str) -> None:
    one = classifier(share={"/s": 0.2})
    one.add_rules({"/a": {"priority": "low", "cap": 3}})
    before = one._compiled
    with pytest.raises(ConfigError) as caught:
        one.add_rules(rules)
    assert caught.value.field == field
    assert one._compiled is before
    one.add_rules({"/c": "high"})
    assert one.classify("GET", "/c").priority is Priority.HIGH


def test_endpoints_keep_their_place_when_rules_are_added() -> None:
    one = classifier()
    names(one, *(f"/a{number}" for number in range(ENDPOINTS)))
    one.add_rules({"/a0": {"cap": 1, "methods": ["POST"]}, "/new": "low"})
    assert names(one, "/a1", "/zzz", "/new") == ["/a1", "(other)", "/new"]
    assert one.classify("GET", "/a0").policy.cap == 1


def test_what_was_found_by_old_rules_is_not_remembered_for_new_ones() -> None:
    one = classifier()
    entered, go_on = threading.Event(), threading.Event()
    old_table = one._compiled.table
    found: list[RequestClass] = []

    class SlowTable:
        def match(self, method: str, path: str) -> RequestClass | None:
            answer = old_table.match(method, path)
            entered.set()
            assert go_on.wait(10)
            return answer

    object.__setattr__(one._compiled, "table", SlowTable())
    thread = threading.Thread(target=lambda: found.append(one.classify("GET", "/a")))
    thread.start()
    assert entered.wait(10)
    one.add_rules({"/a": "low"})
    go_on.set()
    thread.join(10)
    assert found[0].priority is Priority.DEFAULT
    assert one.classify("GET", "/a").priority is Priority.LOW


def test_names_are_learned_once_by_many_threads() -> None:
    one = classifier()
    start = threading.Barrier(4)
    results: list[list[str]] = []

    def learn() -> None:
        start.wait(10)
        results.append(names(one, *(f"/n{number}" for number in range(2 * ENDPOINTS))))

    threads = [threading.Thread(target=learn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(results) == 4
    assert len(one._learned) == ENDPOINTS
    for seen in results:
        assert set(seen) - {"(other)"} <= one._learned
        assert len(seen) == 2 * ENDPOINTS


def test_no_header_counts() -> None:
    one = classifier(routes={"/pay": "high"})
    raw = b"GET /x HTTP/1.1\r\nX-Priority: high\r\nX-Original-URL: /pay\r\n\r\n"
    found = one.classify_head(raw)
    assert found is one.classify("GET", "/x")
    assert found is not None
    assert found.priority is Priority.DEFAULT
    assert one.classify_head(b"nonsense") is None
