"""What operators do with the sources of a store, and its trail."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import select

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.intake import Key, Register, Source
from gunicorn_admission.webhooks.store import Store, schema

FULL = Source(
    "square",
    provider="square",
    secrets=[
        Key(key_id="a", value="signature-key"),
        Key(key_id="b", value="env:OLD", not_after=5.5),
    ],
    url="https://example.com/hooks/square",
    priority="high",
    deadline=7.25,
    max_body=5000,
)


@pytest.fixture
def register(any_store: Store) -> Register:
    return Register(any_store, actor="ann")


def test_a_source_comes_back_as_it_was(register: Register) -> None:
    register.add(FULL)
    assert register.get("square") == FULL


def test_list_counts_events(register: Register, any_store: Store) -> None:
    register.add(FULL)
    register.add(Source("a", provider="github", secrets=["x"]))
    assert [(row.source.name, row.events, row.last_at) for row in register.list()] == [
        ("a", 0, None),
        ("square", 0, None),
    ]


def test_every_change_is_in_the_audit_without_secrets(register: Register, any_store: Store) -> None:
    register.add(FULL)
    register.rotate("square", Key(key_id="c", value="new-secret"), keep=60)
    register.enable("square", False)
    register.enable("square", True)
    register.remove("square")
    with any_store.read() as connection:
        rows = connection.execute(select(schema.audit).order_by(schema.audit.c.id)).all()
        left = connection.execute(select(schema.secrets)).all()
    assert [row.action for row in rows] == [
        "source.add", "source.rotate", "source.disable", "source.enable", "source.remove",
    ]  # fmt: skip
    assert {row.actor for row in rows} == {"ann"}
    assert rows[1].detail == {"key_id": "c", "keep_seconds": 60}
    assert "secret" not in repr([row.detail for row in rows])
    assert left == []


def test_rotation_ends_old_secrets_but_never_later_than_before(
    register: Register, any_store: Store
) -> None:
    register.add(Source("git", provider="github", secrets=["one"]))
    now = any_store.now() / 1e6
    assert register.rotate("git", Key(key_id="two", value="two"), keep=3600) == 1
    assert register.rotate("git", Key(key_id="three", value="three"), keep=7200) == 1
    keys = {key.key_id: key.not_after for key in register.get("git").secrets}
    assert keys["three"] is None
    assert keys["key-1"] == pytest.approx(now + 3600, abs=60)
    assert keys["two"] == pytest.approx(now + 7200, abs=60)


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda r: r.add(FULL), "a name that is not taken"),
        (lambda r: r.add(Source("b", provider="github")), "at least one"),
        (lambda r: r.add(Source("b", provider="github", secrets=[" "])), "not blank"),
        (lambda r: r.add(Source("b", provider="sendgrid", secrets=["nonsense"])), "public key"),
        (lambda r: r.get("sqare"), "did you mean 'square'"),
        (lambda r: r.enable("sqare", True), "did you mean 'square'"),
        (lambda r: r.remove("sqare"), "did you mean 'square'"),
        (lambda r: r.rotate("none", Key(key_id="c", value="x"), keep=1), "known: square"),
        (lambda r: r.rotate("square", Key(key_id="a", value="x"), keep=1), "does not have"),
        (lambda r: r.rotate("square", Key(key_id="c", value=""), keep=1), "not blank"),
        (lambda r: r.rotate("square", Key(key_id="C d", value="x"), keep=1), "a-z"),
    ],
)
def test_what_is_refused_changes_nothing(
    sqlite_store_url: str, act: Callable[[Register], object], says: str
) -> None:
    with Store(sqlite_store_url) as store:
        register = Register(store)
        register.add(FULL)
        with pytest.raises(ConfigError, match=says):
            act(register)
        assert register.get("square") == FULL
        with store.read() as connection:
            assert len(connection.execute(select(schema.audit)).all()) == 1


def test_a_source_that_cannot_work_is_told(any_store: Store) -> None:
    register = Register(any_store)
    register.add(FULL)
    any_store.write(
        lambda connection: connection.execute(schema.sources.update().values(provider="gone"))
    )
    with pytest.raises(ConfigError, match="gone"):
        register.get("square")
    with pytest.raises(ConfigError, match="gone"):
        register.list()
