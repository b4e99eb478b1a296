"""``gunicorn-admission gate`` as a user runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import insert, update

from gunicorn_admission.cli.verbs import root
from gunicorn_admission.webhooks.gates import Ledger
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import deliveries, events, subscriptions, windows
from tests.gating import DAY, LEASE

Run = Callable[..., Result]
DAILY = ("set", "usage", "2", "requests", "--zone", "America/New_York", "--soft", "1")


@pytest.fixture
def run(sqlite_store_url: str) -> Run:
    def invoke(*arguments: str) -> Result:
        environment = {"GUNICORN_ADMISSION_STORE_URL": sqlite_store_url}
        return CliRunner().invoke(root, ["gate", *arguments], env=environment)

    return invoke


@pytest.fixture
def done(sqlite_store_url: str) -> Callable[[str], str]:
    """Admit an event and complete it; what was decided."""

    def spend(event_id: str) -> str:
        with Store(sqlite_store_url) as store:
            now, ledger = store.now(), Ledger()
            key = {"consumer": "usage", "source": "stripe", "event_id": event_id}

            def work(connection: Any) -> str:
                told = ledger.admit(
                    connection, lease=event_id, lease_until=now + LEASE, now=now, **key
                )
                ledger.complete(connection, lease=event_id, now=now, **key)
                return told.kind.value

            return store.write(work)

    return spend


def read(result: Result) -> Any:
    assert result.exit_code in (0, 1), result.output
    return json.loads(result.output)


def test_set_says_what_holds_now(run: Run) -> None:
    assert run(*DAILY).output == (
        "usage: 2 requests per day America/New_York; at the ceiling refuse, charge per event.\n"
    )
    assert "Nothing was changed" in run(*DAILY).output
    more = run("set", "usage", "1_000", "tokens", "--per", "1h", "--cost", "tokens=7",
               "--at-ceiling", "review", "--charge", "actual")  # fmt: skip
    assert "1000 tokens per rolling 1h; at the ceiling review" in more.output
    assert "2 requests per day America/New_York; 1000" in more.output
    gone = run("set", "usage", "1", "tokens", "--per", "1h", "--remove")
    assert "tokens" not in gone.output
    (document,) = read(run("show", "--json"))
    assert document["charge"] == "actual" and document["cost"] == {"requests": 1, "tokens": 7}
    assert [each["hard"] for each in document["ceilings"]] == [2]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("set", "usage", "2"), "give the unit too"),
        (("set", "usage", "2.5", "requests"), "micro-units"),
        (("set", "usage", "2", "requests", "--per", "fortnight"), "hour, day, week"),
        (("set", "usage", "2", "requests", "--zone", "EST5"), "IANA"),
        (("set", "usage", "2", "requests", "--cost", "a"), "UNIT=AMOUNT"),
        (("set", "usage", "2", "requests", "--remove"), "it has none"),
        (("set", "usage", "2", "a", "--per", "total", "--at-ceiling", "defer"), "no end"),
        (("show", "usage"), "no consumer has a gate yet"),
        (("release", "usage"), "give --all"),
        (("release", "usage", "evt_1"), "source/event_id"),
        (("release", "usage", "stripe/evt_1"), "has no record"),
        (("reconcile", "--bill", "absent.csv"), "does not exist"),
    ],
)
def test_wrong_usage_is_told(run: Run, arguments: tuple[str, ...], says: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert says in result.stderr


def test_show(run: Run, done: Callable[[str], str]) -> None:
    assert "No consumer has a gate" in run("show").output
    run(*DAILY)
    assert [done(name) for name in "abc"] == ["admitted", "admitted", "refused"]
    shown = run("show", "usage").output
    assert "2 requests per day America/New_York" in shown and "2/2" in shown
    assert "2 admitted, 2 completed, 0 deduplicated, 1 refused, 0 deferred. Now 1 refused" in shown
    assert "stripe/c" in run("show", "--events", "refused").output
    assert "None is review" in run("show", "--events", "review").output
    (event,) = read(run("show", "usage", "--events", "refused", "--json"))
    assert event["event_id"] == "c" and event["used"] == 2
    assert event["ceiling"] == "2 requests per day America/New_York"


def test_release_brings_the_delivery_back(
    run: Run, done: Callable[[str], str], sqlite_store_url: str
) -> None:
    run(*DAILY)
    assert [done(name) for name in "abc"][-1] == "refused"
    with Store(sqlite_store_url) as store:
        store.write(deliver)
    assert run("release", "usage", "stripe/a", "stripe/c").exit_code == 2  # all or none
    assert read(run("show", "--events", "refused", "--json"))
    assert run("release", "usage", "--all").output == "Released 1 event of usage.\n"
    with Store(sqlite_store_url) as store, store.read() as connection:
        delivery = connection.execute(deliveries.select()).one()
        assert (delivery.state, delivery.finished_at) == ("pending", None)
        assert delivery.visible_at <= store.now()
    assert done("c") == "deferred"  # there is no room: it waits, and is not refused again
    assert run("release", "usage", "stripe/c", "--beyond").exit_code == 0
    assert done("c") == "admitted"


def deliver(connection: Any) -> None:
    """An event that its consumer has refused, as fan-out keeps it."""
    connection.execute(insert(subscriptions).values(
        name="usage", mode="active", filter={}, start_seq=0, retry={}, retention_us=9 * DAY,
        lease_us=LEASE, created_at=1, mode_since=1,
    ))  # fmt: skip
    connection.execute(insert(events).values(
        seq=1, source="stripe", event_id="c", id_source="body", received_at=1, key_id="k",
        headers=[], size=0, body_sha256=b"", body=b"",
    ))  # fmt: skip
    connection.execute(insert(deliveries).values(
        seq=1, subscription="usage", state="refused", visible_at=1, created_at=1, updated_at=1,
        finished_at=1,
    ))  # fmt: skip


def test_review(run: Run, done: Callable[[str], str]) -> None:
    run(*DAILY, "--at-ceiling", "review")
    assert [done(name) for name in "abcd"][2:] == ["review", "review"]
    assert run("reject", "usage", "stripe/c").exit_code == 0
    assert run("approve", "usage", "--all", "--beyond").output == "Approved 1 event of usage.\n"
    assert [done("c"), done("d")] == ["refused", "admitted"]


def test_audit_finds_and_repairs(
    run: Run, done: Callable[[str], str], sqlite_store_url: str
) -> None:
    run(*DAILY)
    done("a")
    assert "no reservation is left over" in run("audit").output
    with Store(sqlite_store_url) as store:
        store.write(lambda connection: connection.execute(update(windows).values(settled=5)))
    result = run("audit", "--json")
    assert result.exit_code == 1
    (finding,) = read(result)["findings"]
    assert (finding["fault"], finding["amounts"]) == ("drift", {"requests": 4})
    assert "counted 0 reserved and 5 settled, entries say 0 and 1" in run("audit", "usage").output
    repaired = run("audit", "--repair")
    assert repaired.exit_code == 0 and "Repaired 1 windows" in repaired.output


def test_reconcile(run: Run, done: Callable[[str], str], tmp_path: Path) -> None:
    run("set", "usage", "9", "requests", "--per", "day", "--bill-source", "invoice, line 3")
    run("set", "usage", "90", "requests", "--per", "month")
    for name in "abcd":
        done(name)
    (document,) = read(run("show", "--json"))
    month = document["ceilings"][1]["window"]
    bill = tmp_path / "bill.csv"
    bill.write_text(f"period,unit,amount\n{month},requests,5\n")
    result = run("reconcile", "--bill", str(bill), "--json")
    (line,) = read(result)
    assert result.exit_code == 1
    assert (line["billed"], line["settled"], line["drift"], line["percent"]) == (5, 4, 1, 20.0)
    assert run("reconcile", "--bill", str(bill), "--tolerance", "20").exit_code == 0
    day = document["ceilings"][0]["window"]
    lines = [{"period": day, "unit": "requests", "amount": 4, "consumer": "usage"}]
    bill.write_text(json.dumps(lines))
    shown = run("reconcile", "--bill", str(bill))
    assert shown.exit_code == 0 and "invoice, line 3" in shown.output
    for text, says in (
        ("period,amount\n2026-11,1", "unit is missing"),
        ("period,unit,amount\n2026-11,tokens,1.5", "whole number"),
        ("[1]", "list of objects"),
        ("[", "broken JSON"),
        ("", "empty"),
    ):
        bill.write_text(text)
        result = run("reconcile", "--bill", str(bill))
        assert result.exit_code == 2 and says in result.stderr
