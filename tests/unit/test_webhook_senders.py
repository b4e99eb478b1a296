"""The stand-ins for senders: each signs what its provider verifies, and retries by its rules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from examples.webhook_senders.payloads import MAKERS, event
from examples.webhook_senders.rules import rules_of
from examples.webhook_senders.signing import CERTIFICATE_URL, Sent, rsa_pair
from examples.webhook_senders.simulator import Answered, Simulator, signing_key
from gunicorn_admission.webhooks.providers import (
    Secret,
    Verified,
    load_provider,
    provider_names,
)
from gunicorn_admission.webhooks.providers.paypal import PayPal
from tests.sender_cases import SENDERS
from tests.senders import AT

KEYS = {sender.name: sender.keys[0] for sender in SENDERS}
WHERE = "https://hooks.example.com/hooks/x"
ROOT = Path(__file__).resolve().parents[2]


def test_there_is_one_for_each_provider() -> None:
    assert set(MAKERS) == set(provider_names())


@pytest.mark.parametrize("provider", sorted(MAKERS))
def test_events_are_genuine_and_have_ids_of_their_own(provider: str) -> None:
    verifier = load_provider(provider)
    if provider == "paypal":
        verifier = PayPal(
            certificates=lambda url: rsa_pair()[1] if url == CERTIFICATE_URL else None
        )
    secret, private = KEYS[provider]
    for number in (1, 2):
        event_id, sign = event(provider, number, WHERE)
        sent = sign(private, AT)
        outcome = verifier.verify(sent.body, sent.headers, sent.url, [Secret(secret)], AT)
        assert isinstance(outcome, Verified), outcome
        assert [item.event_id for item in outcome.items] == [event_id]


@pytest.mark.parametrize(
    ("provider", "delays"),
    [
        ("slack", (0.0, 60.0, 300.0)),
        ("kit", (30.0, 120.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0)),
        ("github", ()),
        ("twilio", ()),
    ],
)
def test_documented_delays(provider: str, delays: tuple[float, ...]) -> None:
    rules = rules_of(provider)
    assert (rules.delays, rules.documented) == (delays, True)


def test_assumed_delays_add_up_to_what_is_documented() -> None:
    rules = rules_of("shopify")
    assert not rules.documented
    assert len(rules.delays) == 8
    assert sum(rules.delays) == pytest.approx(4 * 3600)
    assert sorted(rules.delays) == list(rules.delays)


class World:
    """A server that answers as told, and a clock that moves when somebody sleeps."""

    def __init__(self, *answers: int | None, **headers: str) -> None:
        self.answers = list(answers)
        self.headers = headers
        self.now = AT
        self.seen: list[tuple[float, Sent]] = []

    def post(self, where: str, sent: Sent, deadline: float) -> Answered:
        self.seen.append((self.now - AT, sent))
        status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        names = {name.replace("_", "-"): value for name, value in self.headers.items()}
        return Answered(status, names if status != 200 else {})

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def simulator(self, provider: str) -> Simulator:
        return Simulator(
            provider,
            KEYS[provider].private,
            WHERE,
            post=self.post,
            clock=lambda: self.now,
            sleep=self.sleep,
        )


def test_retries_until_it_is_taken() -> None:
    world = World(503, None, 200)
    simulator = world.simulator("slack")
    assert simulator.deliver(1)
    assert [at for at, _ in world.seen] == [0, 0, 60]
    first, second, third = (sent for _, sent in world.seen)
    assert first.body == second.body == third.body
    assert third.headers["X-Slack-Retry-Num"] == "2"
    assert third.headers["X-Slack-Signature"] == first.headers["X-Slack-Signature"]
    outcome = simulator.outcome
    assert (outcome.delivered, outcome.lost, outcome.retried) == (["slack-1"], [], 2)
    assert outcome.answers == {"503": 1, "none": 1, "200": 1}


def test_gives_up_after_the_last_retry() -> None:
    world = World(500)
    simulator = world.simulator("slack")
    assert not simulator.deliver(1)
    assert len(world.seen) == 4
    assert simulator.outcome.lost == ["slack-1"]


def test_never_retries_what_its_provider_never_retries() -> None:
    for provider, status in (("github", 503), ("bitbucket", 404), ("hubspot", 401), ("kit", 410)):
        world = World(status)
        assert not world.simulator(provider).deliver(1)
        assert len(world.seen) == 1, provider


def test_only_200_is_enough_for_some() -> None:
    for provider in ("linear", "paddle", "mailgun"):
        world = World(204, 200)
        assert world.simulator(provider).deliver(1)
        assert len(world.seen) == 2


def test_is_signed_anew_where_the_provider_does_that() -> None:
    world = World(503, 200)
    world.simulator("stripe").deliver(1)
    first, second = (sent for _, sent in world.seen)
    assert first.body == second.body
    assert first.headers != second.headers
    verifier = load_provider("stripe")
    secrets = [Secret(KEYS["stripe"].secret)]
    assert isinstance(
        verifier.verify(second.body, second.headers, "", secrets, world.now), Verified
    )


def test_retry_after_is_obeyed_where_that_is_documented() -> None:
    for provider, waited in (("kit", 30 + 500), ("slack", 0)):
        world = World(503, 200, retry_after="500")
        world.simulator(provider).deliver(1)
        assert world.seen[1][0] == waited, provider


def test_slack_can_be_told_not_to_retry() -> None:
    world = World(503, x_slack_no_retry="1")
    assert not world.simulator("slack").deliver(1)
    assert len(world.seen) == 1


def test_subscription_that_is_lost() -> None:
    world = World(503)
    simulator = world.simulator("shopify")
    for number in range(3):
        simulator.deliver(number)
    assert simulator.outcome.disabled
    assert len(world.seen) == 9  # nothing is sent after the eighth failure in a row and one more


def test_keys() -> None:
    assert signing_key("github", "abc") == "abc"
    assert signing_key("standard_webhooks", "whsec_YWJj") == b"abc"


def test_command_says_what_is_wrong() -> None:
    command = [sys.executable, "-m", "examples.webhook_senders"]
    done = subprocess.run([*command, "--help"], cwd=ROOT, capture_output=True, text=True)
    assert "No provider is contacted" in " ".join(done.stdout.split())
    bad = [*command, "github", "http://127.0.0.1:1/", "--secret", "plain"]
    done = subprocess.run(bad, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "env:NAME or file:PATH" in done.stderr


def test_command_against_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_SECRET", "x")
    where = "http://127.0.0.1:1/hooks/git"
    command = [sys.executable, "-m", "examples.webhook_senders", "github", where]
    options = ["--secret", "env:GIT_SECRET", "--count", "2"]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert (said["lost"], said["answers"]) == (2, {"none": 2})
