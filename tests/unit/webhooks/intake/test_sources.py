"""Sources in memory: from code and from the store, rotated without a restart."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from gunicorn_admission.core.types import Priority
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.intake import Key, Register, Source
from gunicorn_admission.webhooks.intake.sources import Sources, StoreUnavailable
from gunicorn_admission.webhooks.store import Store


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def git(*secrets: str, name: str = "git") -> Source:
    return Source(name, provider="github", secrets=secrets)


def values(sources: Sources, name: str = "git") -> list[str]:
    ready = sources.find(name)
    assert ready is not None
    return [secret.value for secret in ready.secrets]


def test_rotation_in_the_store_is_seen_without_a_restart(store: Store) -> None:
    register, clock = Register(store), Clock()
    register.add(git("old"))
    sources = Sources((), store, refresh=5, monotonic=clock)
    assert values(sources) == ["old"]
    register.rotate("git", Key(key_id="new", value="new"), keep=3600)
    assert values(sources) == ["old"]  # nothing is read on behalf of each request
    clock.now += 5
    assert values(sources) == ["new", "old"]  # the current one is tried first
    ready = sources.find("git")
    assert ready is not None
    ends = [secret.not_after for secret in ready.secrets]
    assert ends[0] is None
    assert ends[1] == pytest.approx(store.now() / 1e6 + 3600, abs=60)


def test_rotation_of_a_file_and_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    file, clock = tmp_path / "secret", Clock()
    file.write_text("one\n")
    monkeypatch.setenv("GIT_SECRET", "two")
    sources = Sources([git(f"file:{file}", "env:GIT_SECRET")], store, monotonic=clock)
    assert values(sources) == ["one", "two"]
    file.write_text("three\n")
    monkeypatch.setenv("GIT_SECRET", "four")
    clock.now += 10
    assert values(sources) == ["three", "four"]


def test_secret_that_cannot_be_read_leaves_the_others(
    tmp_path: Path, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    file, clock = tmp_path / "secret", Clock()
    file.write_text("one")
    sources = Sources([git(f"file:{file}", "two")], store, monotonic=clock)
    assert values(sources) == ["one", "two"]
    file.unlink()
    for _ in range(3):
        clock.now += 10
        assert values(sources) == ["two"]
    ready = sources.find("git")
    assert ready is not None
    assert not ready.whole
    assert ready.key_ids == ("key-2",)
    assert caplog.text.count("cannot be") + caplog.text.count("readable file") == 1  # said once


def test_code_wins_over_the_store(store: Store) -> None:
    Register(store).add(git("of-the-store"))
    Register(store).add(git("other", name="other"))
    sources = Sources([git("of-code")], store)
    assert values(sources) == ["of-code"]
    assert values(sources, "other") == ["other"]
    assert sources.find("nothing") is None


def test_what_was_read_stays_while_the_store_is_down(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    Register(store).add(git("secret"))
    clock = Clock()
    sources = Sources((), store, monotonic=clock)
    assert values(sources) == ["secret"]
    path = Path(str(store.url.database))
    store.close()
    path.rename(path.with_suffix(".away"))
    clock.now += 10
    assert values(sources) == ["secret"]
    assert "sources cannot be read" in caplog.text
    path.with_suffix(".away").rename(path)


def test_store_that_was_never_read_makes_no_404(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path}/none.db") as missing:
        sources = Sources([git("secret")], missing)
        assert values(sources) == ["secret"]
        with pytest.raises(StoreUnavailable):
            sources.find("other")


def test_strangers_names_do_not_reach_the_store(store: Store) -> None:
    reads = 0

    class Counting:
        def read(self) -> object:
            nonlocal reads
            reads += 1
            return store.read()

    sources = Sources((), Counting(), monotonic=Clock())  # type: ignore[arg-type]
    for n in range(100):
        assert sources.find(f"name-{n}") is None
    assert reads == 1


def test_a_child_reads_anew(store: Store) -> None:
    register = Register(store)
    register.add(git("secret"))
    sources = Sources((), store, monotonic=Clock())  # its clock stands
    assert values(sources) == ["secret"]
    register.add(git("secret", name="new"))
    assert sources.find("new") is None
    store.close()
    pid = os.fork()
    if pid == 0:
        os._exit(0 if sources.find("new") is not None else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_first_requests_wait_for_the_first_reading(store: Store) -> None:
    Register(store).add(git("secret"))
    sources = Sources((), store)
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(sources.find("git"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(found) == 8
    assert None not in found


def test_change_is_told_once(store: Store) -> None:
    told: list[int] = []
    clock = Clock()
    sources = Sources((), store, changed=lambda: told.append(1), monotonic=clock)
    sources.find("git")
    assert told == []
    Register(store).add(git("secret"))
    for _ in range(3):
        clock.now += 10
        sources.find("git")
    assert told == [1]


def test_given_sources_are_checked_at_once(store: Store) -> None:
    with pytest.raises(ConfigError, match="each name once"):
        Sources([git("a"), git("b")], store)
    with pytest.raises(ConfigError, match="not blank"):
        Sources([git(" ")], store)
    with pytest.raises(ConfigError, match="NO_SUCH_VARIABLE"):
        Sources([git("env:NO_SUCH_VARIABLE")], store)
    with pytest.raises(ConfigError, match="whsec_"):
        Sources([Source("a", provider="standard_webhooks", secrets=["§"])], store)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"name": "Git"}, "a-z"),
        ({"name": "a/b"}, "a-z"),
        ({"name": ""}, "a-z"),
        ({"name": "x" * 65}, "1 to 64"),
        ({"provider": "gihub"}, "did you mean 'github'"),
        ({"priority": "urgent"}, "one of high, default, low"),
        ({"deadline": 0.01}, "from 0.1 s"),
        ({"deadline": "soon"}, "duration"),
        ({"max_body": 0}, "bytes from 1"),
        ({"max_body": True}, "bytes from 1"),
        ({"url": "example.com/hooks"}, "http:// or https://"),
        ({"url": "https://example.com/a b"}, "http:// or https://"),
    ],
)
def test_what_cannot_work_is_said(values: dict[str, object], says: str) -> None:
    given = {"name": "git", "provider": "github", **values}
    with pytest.raises(ConfigError, match=says):
        Source(given.pop("name"), **given)  # type: ignore[arg-type]


def test_bounds_of_a_source() -> None:
    assert git("x").largest == 25 * 1024 * 1024
    assert git("x").patience == 10.0
    chat = Source("chat", provider="slack", secrets=["x"], deadline="1500ms", max_body=5)
    assert (chat.patience, chat.largest) == (1.5, 5)
    assert Source("bb", provider="bitbucket").largest == 1024 * 1024  # its own 256 KiB, with room
    assert Source("kit", provider="kit").patience == 10.0  # which says nothing


@pytest.mark.parametrize(
    ("url", "query", "signed"),
    [
        ("", "a=1", ""),
        ("https://e.com/h", "", "https://e.com/h"),
        ("https://e.com/h", "a=1", "https://e.com/h?a=1"),
        ("https://e.com/h?a=1", "a=1&bodySHA256=x", "https://e.com/h?a=1&bodySHA256=x"),
    ],
)
def test_signed_url_is_the_configured_one(url: str, query: str, signed: str) -> None:
    assert Source("t", provider="twilio", url=url).signed_url(query) == signed


def test_secrets_are_not_shown() -> None:
    assert "hidden-value" not in repr(git("hidden-value"))


@pytest.mark.parametrize(
    ("provider", "priority"), [("github", Priority.HIGH), ("stripe", Priority.DEFAULT)]
)
def test_what_never_comes_again_is_refused_last(provider: str, priority: Priority) -> None:
    assert Source("a", provider=provider, secrets=["whsec_x"]).priority is priority
    low = Source("a", provider=provider, secrets=["whsec_x"], priority="low")
    assert low.priority is Priority.LOW
