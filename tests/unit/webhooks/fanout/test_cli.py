"""The verbs: subscriptions, deliveries, dead-letters, worker; as typed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gunicorn_admission.cli.verbs import root
from gunicorn_admission.cli.worker import find_consumers
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.fanout import GiveUp, Subscriptions
from gunicorn_admission.webhooks.store import Store
from tests.fanning import put, states
from tests.unit.webhooks.fanout.test_delivery import Fleet

Run = Callable[..., Result]


@pytest.fixture
def store(sqlite_store_url: str) -> Iterator[Store]:
    with Store(sqlite_store_url) as opened:
        yield opened


@pytest.fixture
def run(sqlite_store_url: str) -> Run:
    def call(line: str, *more: str, code: int = 0, **options: Any) -> Result:
        environ = {"GUNICORN_ADMISSION_STORE_URL": sqlite_store_url}
        result = CliRunner(env=environ).invoke(root, [*line.split(), *more], **options)
        assert result.exit_code == code, result.output
        return result

    return call


@pytest.fixture
def fleet(store: Store, run: Run) -> Fleet:
    run("subscriptions create it")
    return Fleet(store)


def test_create_and_show(run: Run, store: Store, tmp_path: Path) -> None:
    pattern = {"type": [{"prefix": "invoice."}]}
    file = tmp_path / "filter.json"
    file.write_text(json.dumps(pattern))
    run("subscriptions create one --mode shadow --objective 2m --filter", json.dumps(pattern))
    run("subscriptions update one --severity critical --runbook https://wiki/one")
    run(f"subscriptions create two --max-attempts 3 --backoff 1s --filter @{file}")
    one, two = json.loads(run("subscriptions ls --json").output)
    assert (one["name"], one["mode"], one["objective"]) == ("one", "shadow", 120)
    assert [(each["severity"], each["runbook"]) for each in (one, two)] == [
        ("critical", "https://wiki/one"),
        ("warning", None),
    ]
    assert one["filter"] == two["filter"] == pattern
    assert two["retry"] == {"max_attempts": 3, "base": 1, "cap": 3600}
    assert "invoice." in run("subscriptions ls").output
    assert "max_attempts" in run("subscriptions show two").output
    assert json.loads(run("subscriptions show two --json").output)["counters"]["dead"] == 0


def test_update_keeps_what_is_not_named(run: Run, store: Store, fleet: Fleet) -> None:
    run("subscriptions update it --max-attempts 3")
    run("subscriptions update it --backoff-cap 1m --order-by body.customer")
    one = Subscriptions(store).get("it")
    assert one.retry.as_dict() == {"max_attempts": 3, "base": 2, "cap": 60}
    assert one.order_by == "body.customer"
    assert "one option at least" in run("subscriptions update it", code=2).output


@pytest.mark.parametrize(("verb", "mode"), [("pause", "paused"), ("disable", "disabled")])
def test_stand_still_and_resume(run: Run, store: Store, fleet: Fleet, verb: str, mode: str) -> None:
    run(f"subscriptions {verb} it")
    assert Subscriptions(store).get("it").mode.value == mode
    put(store, "a", "b")
    assert "2 events wait" in run("subscriptions resume it").output


def test_begin_earlier(run: Run, store: Store) -> None:
    put(store, "a", "b")
    assert "backfill it" in run("subscriptions create it --start-at earliest").output
    assert "Added 2 events" in run("subscriptions backfill it").output


def test_remove_asks_first(run: Run, store: Store, fleet: Fleet) -> None:
    put(store, "a")
    run("subscriptions remove it", input="n\n", code=1)
    assert states(store, "it") == {"a": "pending"}
    assert "1 deliveries" in run("subscriptions remove it --yes").output


def test_late_one_is_found(run: Run, store: Store, fleet: Fleet) -> None:
    run("subscriptions update it --objective 1s")
    put(store, "a")
    past = {"created_at": store.now() - 2_000_000}
    from gunicorn_admission.webhooks.store.schema import deliveries

    store.write(lambda connection: connection.execute(deliveries.update().values(past)))
    assert json.loads(run("subscriptions ls --json", code=1).output)[0]["is_late"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("subscriptions create it --filter {", "JSON"),
        ("subscriptions create it --filter @/nowhere.json", "a file that can be read"),
        ("subscriptions create it --filter []", "an object"),
        ("subscriptions create it --start-at yesterday", "SOURCE/EVENT_ID"),
        ("subscriptions create IT", "a-z"),
        ("subscriptions pause nope", "subscriptions create nope"),
        ("deliveries ls nope", "there is none yet"),
        ("deliveries ls nope --since tomorrow", "2026-12-01T14:00Z"),
        ("deliveries ls nope --since 2026-12-01T14:00", "with its zone"),
        ("deliveries ls nope --event evt_1", "SOURCE/EVENT_ID"),
        ("deliveries replay nope", "say which events"),
        ("deliveries replay nope --error x --source y", "events have no errors"),
        ("dead-letters redrive nope", "say which dead letters"),
        ("worker --app nope:x", "there is no module nope"),
        ("worker --app json:nope", "a name in json"),
        ("worker --app json:loads", "it is a function"),
        ("worker --app json:loads --page smoke", "webhook:URL"),
        ("worker --app json:loads --grace soon", "grace"),
    ],
)
def test_mistakes_are_one_clear_line(run: Run, line: str, says: str) -> None:
    result = run(line, code=2)
    assert says in result.output
    assert result.output.count("\n") == 1


def test_dead_letters_and_back(run: Run, store: Store, fleet: Fleet) -> None:
    assert run("dead-letters ls it --json").output == "[]\n"
    put(store, "a", "b")
    fleet.failing = {"a": [GiveUp("for a")], "b": [GiveUp("for b")]}
    fleet.worker().drain()
    rows = json.loads(run("dead-letters ls it --json", code=1).output)
    assert [row["event_id"] for row in rows] == ["b", "a"]
    assert "for a" in run("dead-letters ls it --error", "for a", code=1).output
    assert "Would redrive 2" in run("dead-letters redrive it --all --dry-run").output
    assert "Redriving 1" in run("dead-letters redrive it --event stripe/a").output
    assert states(store, "it") == {"a": "pending", "b": "dead"}


def test_show_tells_the_whole_story(run: Run, store: Store, fleet: Fleet) -> None:
    put(store, "a")
    fleet.failing["a"] = [ValueError("first")]
    worker = fleet.worker()
    worker.drain()
    assert "Retrying 1" in run("deliveries retry it").output
    worker.drain()
    shown = json.loads(run("deliveries show it stripe/a --json").output)
    assert (shown["state"], shown["ledger"]) == ("completed", "completed")
    assert [one["outcome"] for one in shown["tries"]] == ["failed", "completed"]
    assert "ValueError: first" in run("deliveries show it stripe/a").output
    assert "no delivery" in run("deliveries show it stripe/b", code=1).output


def test_list_by_state_and_time(run: Run, store: Store, fleet: Fleet) -> None:
    put(store, "a", "b")
    fleet.failing["a"] = [GiveUp()]
    fleet.worker().drain()
    rows = json.loads(run("deliveries ls it --state dead --since 1h --json").output)
    assert [row["event_id"] for row in rows] == ["a"]
    assert json.loads(run("deliveries ls it --until 1h --json").output) == []
    assert "stripe/b" in run("deliveries ls it --since 2020-01-01T00:00Z").output


def test_replay_is_a_no_op_unless_forced(run: Run, store: Store, fleet: Fleet) -> None:
    put(store, "a", "b")
    worker = fleet.worker()
    worker.drain()
    assert "Would deliver 0" in run("deliveries replay it --all --dry-run").output
    counted = json.loads(run("deliveries replay it --all --json").output)
    assert (counted["completed"], counted["dry_run"]) == (2, False)
    worker.drain()
    assert fleet.calls == ["a", "b"]
    assert "AGAIN" in run("deliveries replay it --event stripe/a --force").output
    worker.drain()
    assert fleet.calls == ["a", "b", "a"]


def test_resolve_is_for_what_is_uncertain(run: Run, store: Store, fleet: Fleet) -> None:
    put(store, "a")
    assert "it is pending" in run("deliveries resolve it stripe/a", code=2).output


def test_consumers_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_for_worker.py").write_text(
        "from gunicorn_admission.webhooks.fanout import Consumers\n"
        "consumers = Consumers()\n"
        "class App:\n    consumers = consumers\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    for name in ("shop_for_worker", "shop_for_worker:consumers", "shop_for_worker:App"):
        assert len(find_consumers(name)) == 0
    (tmp_path / "broken_shop.py").write_text("import nothing_of_this_name\n")
    with pytest.raises(ModuleNotFoundError, match="nothing_of_this_name"):
        find_consumers("broken_shop")
    with pytest.raises(ConfigError, match="did you mean 'consumers'"):
        find_consumers("shop_for_worker:consumer")


def test_who_did_it_is_noted(run: Run, store: Store, fleet: Fleet) -> None:
    from gunicorn_admission.webhooks.store.schema import audit

    with store.read() as connection:
        assert connection.execute(audit.select()).one().actor.startswith("cli")
