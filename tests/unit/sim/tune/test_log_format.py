"""Lines of gunicorn's access log, written by gunicorn itself and read back."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Mapping
from datetime import timedelta
from types import SimpleNamespace

import pytest
from gunicorn.config import Config
from gunicorn.glogging import Logger

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.sim.tune.guess import guess_format, guess_unit
from gunicorn_admission.sim.tune.log_format import ADD, COMBINED, COMMON, LogFormat

TOOK = timedelta(seconds=1, microseconds=234_567)


def line(format: str, target: str = "/orders/1?x=1", headers: Mapping[str, str] = {}) -> str:
    """One line as gunicorn's own logger writes it."""
    config = Config()
    config.set("accesslog", "-")
    config.set("access_log_format", format)
    logger = Logger(config)
    stream = io.StringIO()
    logger.access_log.handlers = [logging.StreamHandler(stream)]
    environ = {
        "REQUEST_METHOD": "GET", "RAW_URI": target, "SERVER_PROTOCOL": "HTTP/1.1",
        "PATH_INFO": target.partition("?")[0], "QUERY_STRING": "x=1", "REMOTE_ADDR": "::1",
        "HTTP_USER_AGENT": headers.get("User-Agent", "-"),
        "HTTP_REFERER": headers.get("Referer", "-"),
    }  # fmt: skip
    answer = SimpleNamespace(status="200 OK", sent=2, headers=[("X-A", "b")])
    request = SimpleNamespace(headers=list(headers.items()))
    logger.access(answer, request, environ, TOOK)
    return stream.getvalue().removesuffix("\n")


@pytest.mark.parametrize(
    ("atom", "duration"),
    [("L", 1.234567), ("D", 1_234_567), ("M", 1234), ("T", 1)],
)
@pytest.mark.parametrize(
    "format",
    [
        f"{COMBINED} %({{}})s",
        f"{COMMON} %({{}})s",
        '%(t)s %({}).9s "%(r)s" 100%% %(s)s',
        '{{"at": "%(t)s", "took": %({})s, "r": "%(r)s", "status": %(s)s, "ua": "%(a)s"}}',
        "%({})s %(m)s %(U)s %(q)s %(p)s %({{x-tier}}i)s %(t)s %(s)s",
        "%(h)s|%(t)s|%({})s|%(r)s|%(s)s|%(t)s",
    ],
)
def test_what_gunicorn_writes_is_read(format: str, atom: str, duration: float) -> None:
    chosen = LogFormat(format.format(atom))
    read = chosen.read(line(chosen.text))
    assert read is not None
    assert (read.duration, read.status, read.method) == (duration, 200, "GET")
    assert read.target.partition("?")[0] == "/orders/1"
    assert time.strptime(read.time, "%d/%b/%Y:%H:%M:%S %z")
    assert (read.process is not None) == ("%(p)s" in format)


@pytest.mark.parametrize("odd", ['a "quoted" one', "ends with \\", '\\" 200 1 "', " ", '" "', "é"])
def test_what_strangers_send_hides_nothing(odd: str) -> None:
    chosen = LogFormat(f"{COMBINED} %(L)s")
    read = chosen.read(line(chosen.text, headers={"User-Agent": odd, "Referer": odd}))
    assert read is not None
    assert (read.duration, read.status, read.target) == (1.234567, 200, "/orders/1?x=1")


@pytest.mark.parametrize("other", ["", "Traceback (most recent call last):", "x" * 100_000])
def test_another_line_is_not_read(other: str) -> None:
    assert LogFormat(f"{COMBINED} %(L)s").read(other) is None


def test_a_hostile_line_costs_no_time() -> None:
    # Each of these would take years if every way to divide the line were tried.
    for format in ("%(f)s %(a)s %(r)s %({x}i)s %(t)s %(L)s", f"{COMBINED} %(f)s %(a)s %(D)s"):
        for text in ('" ', " ", "\\", '\\" ', "1 "):
            assert LogFormat(format).read(text * 30_000) is None


@pytest.mark.parametrize(
    ("format", "words"),
    [
        ("%(h)s %(L)s", r"%\(t\)s"),
        ("%(h)s %(t)s", r"'%\(h\)s %\(t\)s %\(L\)s'"),
        ("%(t)s %(L)s %(x)s", r"%\(x\)s is not in it"),
    ],
)
def test_a_format_that_says_too_little(format: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        LogFormat(format)


@pytest.mark.parametrize("start", [COMBINED, COMMON])
@pytest.mark.parametrize("end", [" %(L)s", ' "%(L)s"', " %(D)s", ' "%(D)s"'])
def test_the_usual_formats_are_recognised(start: str, end: str) -> None:
    found, whole = guess_format(line(start + end), "a log, line 1")
    assert found.text == start + end
    assert whole == ("D" in end)


def test_the_default_format_is_told_what_to_add() -> None:
    default = Config().access_log_format
    assert default == COMBINED
    with pytest.raises(ConfigError) as caught:
        guess_format(line(default), "a log, line 1")
    assert ADD in str(caught.value)
    assert "(a log, line 1)" in str(caught.value)
    assert LogFormat(ADD.partition("'")[2].rstrip("'")).duration == "L"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nothing like it", "no access log"),
        ('{"at": "[30/Nov/2026:12:00:00 +0000]"}', "--format"),
        (line(f"{COMBINED} some words"), "--format"),
    ],
)
def test_an_unknown_format(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        guess_format(text, "a log, line 1")


@pytest.mark.parametrize(
    ("values", "atom"),
    [
        ([900, 20_000, 25_000, 1_000_000], "D"),
        ([1, 20, 25, 1000], "M"),
        ([0, 0, 0, 1, 2], "T"),
        ([200, 300, 400], None),
    ],
)
def test_the_unit_of_whole_numbers(values: list[float], atom: str | None) -> None:
    if atom:
        assert guess_unit(values, "a log") == atom
    else:
        with pytest.raises(ConfigError, match="microseconds"):
            guess_unit(values, "a log")
