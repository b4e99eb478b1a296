"""What is read in front of the parser is what gunicorn's own parser and environ say."""

from __future__ import annotations

from typing import Any

import pytest
from gunicorn.config import Config
from gunicorn.http import wsgi
from gunicorn.http.errors import ParseException
from gunicorn.http.message import Request
from gunicorn.http.unreader import IterUnreader
from hypothesis import example, given
from hypothesis import strategies as st

from gunicorn_admission.classify import Classifier
from gunicorn_admission.classify.request_line import LONGEST_LINE, read_request_line
from gunicorn_admission.settings import Settings

CLIENT = ("127.0.0.1", 4711)

CLASSIFIER = Classifier(
    Settings(
        routes={
            "/payments": "high",
            "/a%20b": "low",
            "/caf%C3%A9": "low",
            "/x/*/y": {"priority": "low", "methods": ["GET"]},
            "/x/**": "high",
        }
    )
)


def environ_of(raw: bytes) -> dict[str, Any] | None:
    """Return the environ that gunicorn makes of a request, or ``None`` where it refuses it."""
    cfg = Config()
    try:
        request = Request(cfg, IterUnreader(iter([raw])), CLIENT)
    except (ParseException, StopIteration):
        return None
    _, environ = wsgi.create(request, None, CLIENT, ("127.0.0.1", 80), cfg)
    return dict(environ)


def head(method: str, target: bytes, *lines: bytes) -> bytes:
    return b"\r\n".join(
        [method.encode() + b" " + target + b" HTTP/1.1", b"Host: x", *lines, b"", b""]
    )


fragment = st.sampled_from(
    [b"/", b"//", b".", b"..", b"/..", b"/./", b"payments", b"/payments", b"x", b"y", b"healthz",
     b"%2F", b"%2f", b"%41", b"%C3%A9", b"%zz", b"%", b"%0A", b"%00", b"?", b"?a=/b", b"#", b"#f",
     b";", b":", b"@", b"*", b"[", b"]", b"\\", b"|", b"\"", b"http://", b"https://h:1", b"http:",
     b"+", b"%20", b"caf%C3%A9", b"caf\xc3\xa9", b"\xe9", b"\x7f", b"\x1f", b"=", b"&"]
)  # fmt: skip
origin_form = st.lists(fragment, max_size=8).map(lambda parts: b"/" + b"".join(parts))
any_form = st.lists(fragment, min_size=1, max_size=8).map(b"".join)
methods = st.sampled_from(["GET", "POST", "OPTIONS", "CONNECT", "HEAD", "PROPFIND", "M-SEARCH"])


@given(methods, origin_form | any_form)
@example("GET", b"//payments//x")
@example("GET", b"http://host/payments?x")
@example("GET", b"http://host")
@example("GET", b"http://[::1/")
@example("OPTIONS", b"*")
@example("CONNECT", b"host:443")
@example("GET", b"/%2570ayments")
def test_the_class_is_the_same_as_behind_the_parser(method: str, target: bytes) -> None:
    raw = head(method, target)
    environ = environ_of(raw)
    if environ is None:
        return  # refused with a 400 in any case
    line = environ["REQUEST_METHOD"], environ["PATH_INFO"]
    assert read_request_line(raw) == line
    assert CLASSIFIER.classify_head(raw) is CLASSIFIER.classify(*line)


@given(st.binary(max_size=60), st.sampled_from([b"", b"GET ", b"GET /", b"GET / HTTP/1.1"]))
def test_never_reads_another_path_than_the_parser(rest: bytes, start: bytes) -> None:
    raw = start + rest + b"\r\n\r\n"
    line = read_request_line(raw)
    environ = environ_of(raw) if line is not None else None
    if environ is not None:
        assert line == (environ["REQUEST_METHOD"], environ["PATH_INFO"])


@given(origin_form)
def test_the_short_cut_reads_what_the_long_way_reads(target: bytes) -> None:
    # An empty script name takes the short cut, a slash the long way and off the first character.
    short, long = (
        read_request_line(head("GET", target)),
        read_request_line(head("GET", target), "/"),
    )
    assert (short is None) == (long is None)
    assert short is None or long is None or short[1] == "/" + long[1]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"GET",
        b"GET / HTTP/1.1",
        b"GET / HTTP/1.1\n",
        b"\r\nGET / HTTP/1.1\r\n",
        b"GET /\r\n",
        b"GET  / HTTP/1.1\r\n",
        b"GET  HTTP/1.1\r\n",
        b"GET / HTTP/1.1 \r\n",
        b"GET / HTTP/2.0\r\n",
        b"GET / HTTP/1.x\r\n",
        b"GET / HTTP/11\r\n",
        b" / HTTP/1.1\r\n",
        b"G(T / HTTP/1.1\r\n",
        b"G" * 21 + b" / HTTP/1.1\r\n",
        b"GET //[ HTTP/1.1\r\n".replace(b"//", b"http://"),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\nGET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_malformed_is_none(raw: bytes) -> None:
    assert read_request_line(raw) is None


def test_length_is_bounded() -> None:
    room = LONGEST_LINE - len("GET / HTTP/1.1")
    longest = b"GET /" + b"a" * room + b" HTTP/1.1\r\n"
    assert read_request_line(longest) == ("GET", "/" + "a" * room)
    assert read_request_line(longest.replace(b"a", b"aa", 1)) is None
    assert read_request_line(longest.replace(b"a", b"?", 1)) == ("GET", "/")
    assert read_request_line(longest.replace(b"/", b"x:/", 1).replace(b"a", b"", 1)) is None
    assert read_request_line(b"GET /" + b"%41" * 341 + b" HTTP/1.1\r\n") == ("GET", "/" + "A" * 341)
    assert read_request_line(b"GET /" + b"%41" * 342 + b" HTTP/1.1\r\n") is None


@pytest.mark.parametrize("name", [b"SCRIPT_NAME", b"script_name", b"Script_Name"])
def test_a_script_name_header_is_left_to_the_parser(name: bytes) -> None:
    raw = head("GET", b"/app/payments", name + b": /app")
    environ = environ_of(raw)
    assert environ is not None
    assert environ["PATH_INFO"] == "/payments", "gunicorn believes it from a trusted peer"
    assert read_request_line(raw) is None
    absolute = head("GET", b"http://h/app/payments", name + b": /app")
    assert read_request_line(absolute) is None


def test_script_name_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIPT_NAME", "/app")
    classifier = Classifier(Settings(routes={"/payments": "high"}), script_name="/app")
    for target in (b"/app/payments/1", b"/app", b"/app%2Fx", b"http://h/app/x?y"):
        environ = environ_of(head("GET", target))
        assert environ is not None
        assert read_request_line(head("GET", target), "/app") == ("GET", environ["PATH_INFO"])
    found = classifier.classify_head(head("GET", b"/app/payments/1"))
    assert found is not None
    assert found.partition == "/payments"
    assert classifier.classify_head(head("GET", b"/payments")) is None
