"""Each channel against something real: a server, a command, a logger."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
from attrs import define, field

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.pages import (
    CeilingReached,
    ChannelError,
    Condition,
    Page,
    Severity,
    choose_channels,
)
from gunicorn_admission.webhooks.pages.wording import Notice

NOTICE = Notice(
    page=Page(
        key="analytics/day/refused",
        condition=Condition.REFUSED,
        severity=Severity.CRITICAL,
        consumer="analytics",
        source="stripe",
        event_id="evt_1",
        ceiling=CeilingReached(unit="requests", used=5, hard=5, window="day UTC"),
    ),
    episode=1,
    count=2,
    first_at=1_796_047_320_000_000,
    last_at=1_796_047_320_000_000,
)


@define
class Receiver:
    """What a server was posted, and what it answers."""

    url: str
    status: int = 200
    requests: list[tuple[str, dict[str, str], bytes]] = field(factory=list)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.requests.append((self.path, dict(self.headers), body))
            self.send_response(got.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        got = Receiver(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield got
        server.shutdown()
        thread.join()


def test_the_log_has_the_line_at_the_page_s_severity(caplog: pytest.LogCaptureFixture) -> None:
    (log,) = choose_channels(["log"])
    log.send(NOTICE)
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.ERROR, NOTICE.text)


def test_a_webhook_posts_the_whole_page(receiver: Receiver) -> None:
    (channel,) = choose_channels([f"webhook:{receiver.url}/T0/s3cret"])
    channel.send(NOTICE)
    ((path, headers, body),) = receiver.requests
    document = json.loads(body)
    assert path == "/T0/s3cret"
    assert document["text"] == NOTICE.text
    assert document["event_id"] == "evt_1"
    assert document["ceiling"]["hard"] == 5
    assert headers["Idempotency-Key"] == "analytics/day/refused/1796047320000000/2/firing"


def test_no_library_logs_the_address_and_others_may_still_be_logged(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    (channel,) = choose_channels([f"webhook:{receiver.url}/T0/s3cret"])
    channel.send(NOTICE)
    assert "s3cret" not in caplog.text
    httpx.post(f"{receiver.url}/of-the-application", content=b"{}")
    assert "of-the-application" in caplog.text


@pytest.mark.parametrize("status", [302, 404, 500])
def test_anything_but_2xx_is_a_failure_that_names_no_secret(
    receiver: Receiver, status: int
) -> None:
    receiver.status = status
    (channel,) = choose_channels([f"webhook:{receiver.url}/T0/s3cret"])
    with pytest.raises(ChannelError, match=str(status)) as caught:
        channel.send(NOTICE)
    assert "s3cret" not in str(caught.value) + channel.name


def test_nobody_there_is_a_failure(receiver: Receiver) -> None:
    (channel,) = choose_channels(["webhook:http://127.0.0.1:1/s3cret"])
    with pytest.raises(ChannelError, match=r"127\.0\.0\.1:1: ConnectError") as caught:
        channel.send(NOTICE)
    assert "s3cret" not in str(caught.value)


def test_an_alert_has_few_labels_and_no_event_among_them(receiver: Receiver) -> None:
    (channel,) = choose_channels([f"alertmanager:{receiver.url}/"])
    channel.send(NOTICE)
    ((path, _, body),) = receiver.requests
    (alert,) = json.loads(body)
    assert path == "/api/v2/alerts"
    assert alert["labels"] == {
        "alertname": "WebhookRefused",
        "severity": "critical",
        "boundary": "consumer",
        "condition": "refused",
        "consumer": "analytics",
        "page": "analytics/day/refused",
    }
    assert alert["annotations"]["event"] == "stripe/evt_1"


def test_a_command_gets_the_page_and_no_shell_reads_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = tmp_path / "page.py"
    script.write_text(
        "import os, sys\n"
        f"open({str(out)!r}, 'w').write(os.environ['PAGE_TEXT'] + chr(10) + sys.stdin.read())\n"
    )
    (channel,) = choose_channels([f"command:{sys.executable} {script} '$(rm)'"])
    channel.send(NOTICE)
    text, document = out.read_text().split("\n", 1)
    assert text == NOTICE.text
    assert json.loads(document)["consumer"] == "analytics"


def test_a_command_that_hangs_is_killed_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gunicorn_admission.webhooks.pages.channels.command._TIMEOUT", 0.5)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    script = f"exec 9> {pipe}; sleep 60 & wait"
    (channel,) = choose_channels([f"command:sh -c '{script}'"])
    with pytest.raises(ChannelError, match="not done after"):
        channel.send(NOTICE)
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b"", "the last that held the pipe is gone"
    os.close(reader)


@pytest.mark.parametrize("command", ["false", "/no/such/program"])
def test_a_command_that_fails_is_a_failure(command: str) -> None:
    (channel,) = choose_channels([f"command:{command}"])
    with pytest.raises(ChannelError):
        channel.send(NOTICE)


@pytest.mark.parametrize(
    "name",
    ["pager", "webhook:", "webhook:ftp://host", "alertmanager:localhost:9093", "command:",
     "command:'open", "log:x"],
)  # fmt: skip
def test_a_name_that_cannot_be_a_channel_says_what_can(name: str) -> None:
    with pytest.raises(ConfigError, match="Hint"):
        choose_channels([name])
