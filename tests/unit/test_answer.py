"""The refusal that is written without gunicorn's help is a complete answer all the same."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime

import pytest

from gunicorn_admission.answer import date_line, raw_answer
from gunicorn_admission.core.types import Reason


def head_of(data: bytes) -> dict[str, str]:
    head, _, _ = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    return dict(line.split(": ", 1) for line in lines[1:])


@pytest.mark.parametrize("keep_alive", [True, False])
@pytest.mark.parametrize("with_body", [True, False])
def test_the_head_is_complete(keep_alive: bool, with_body: bool) -> None:
    data = raw_answer(
        Reason.QUEUE_FULL, 3_000_000_000, 503, keep_alive=keep_alive, with_body=with_body
    )
    head = head_of(data)
    assert data.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert list(head) == [
        "Server", "Date", "Connection", "Content-Type", "Content-Length", "Cache-Control",
        "Retry-After", "Admission-Reason",
    ]  # fmt: skip
    assert head["Connection"] == ("keep-alive" if keep_alive else "close")
    _, _, body = data.partition(b"\r\n\r\n")
    assert len(body) == (int(head["Content-Length"]) if with_body else 0)


def test_the_date_follows_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_900_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    first = date_line()
    assert first.endswith(b" GMT\r\n")
    assert parsedate_to_datetime(first[6:].decode().strip()).timestamp() == 1_900_000_000
    now += 0.9
    assert date_line() is first  # rendered once a second
    now += 0.1
    head = head_of(raw_answer(Reason.OVERLOADED, 0, 503, keep_alive=True, with_body=True))
    assert parsedate_to_datetime(head["Date"]).timestamp() == 1_900_000_001
