"""What is read in front of gunicorn's parser, and what is left to it."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from gunicorn_admission.gthread.bytes_at import Peek, proxy_header_size, skip_proxy_header

V1 = b"PROXY TCP4 192.0.2.1 192.0.2.2 1000 2000\r\n"
V2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11" + struct.pack("!H", 12) + b"\0" * 12
GET = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    client, server = socket.socketpair()
    with client, server:
        yield client, server


@pytest.mark.parametrize("header", [V1, V2], ids=["v1", "v2"])
def test_a_proxy_header_is_measured_once_it_is_there(header: bytes) -> None:
    for size in range(1, len(header)):
        known = header == V2 and size >= 16  # its length stands in front
        assert proxy_header_size(header[:size]) == (len(header) if known else None), size
    assert proxy_header_size(header + GET) == len(header)
    assert skip_proxy_header(header + GET) == GET
    assert skip_proxy_header(header[:10]) == b""


@pytest.mark.parametrize("data", [GET, POST, b"PROXIED", b"\r\n\r\n\0\r\nQUOT\n" + GET])
def test_other_bytes_are_no_proxy_header(data: bytes) -> None:
    assert proxy_header_size(data) == 0
    assert skip_proxy_header(data) == data


def test_a_proxy_line_without_end_is_left_to_the_parser() -> None:
    assert proxy_header_size(b"PROXY " + b"x" * 99) is None
    assert proxy_header_size(b"PROXY " + b"x" * 200) == 0


@pytest.mark.parametrize("header", [b"", V1, V2], ids=["none", "v1", "v2"])
@pytest.mark.parametrize("request_", [GET, POST], ids=["get", "post"])
def test_what_is_missing(
    pair: tuple[socket.socket, socket.socket], header: bytes, request_: bytes
) -> None:
    client, server = pair
    peek = Peek()
    data = header + request_
    for size in range(len(header) + 1, len(data)):
        client.send(data[size - 1 : size] if size > len(header) + 1 else data[:size])
        peek.look(server)
        missing = peek.missing(len(header))
        assert size < missing <= len(data), size
    client.send(data[-1:])
    peek.look(server)
    assert peek.missing(len(header)) == 0


WHOLE = {
    "plain": GET,
    "with a body": POST,
    "of HTTP/1.0": b"GET / HTTP/1.0\r\n\r\n",
}
LEFT = {
    "half": GET[:-1],
    "half a body": POST[:-1],
    "bare line feeds": b"GET / HTTP/1.1\nHost: a\n\n",
    "a folded field": b"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n",
    "a space in front of the colon": b"POST / HTTP/1.1\r\nContent-Length : 5\r\n\r\nhello",
    "two lengths": POST.replace(b"Host: a", b"Content-Length: 5"),
    "two hosts": GET.replace(b"Host: a", b"Host: a\r\nhost: b"),
    "a signed length": POST.replace(b": 5", b": +5"),
    "a list of lengths": POST.replace(b": 5", b": 5, 5"),
    "no length": POST.replace(b": 5", b": "),
    "chunked": b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked and a length": POST.replace(b"Host: a", b"transfer-encoding: chunked"),
    "expectations": POST.replace(b"Host: a", b"Expect: 100-continue"),
    "an upgrade": GET.replace(b"Host: a", b"Upgrade: h2c"),
    "a nul": GET.replace(b"Host: a", b"Host: a\0"),
    "a control character": GET.replace(b"Host: a", b"Host: \x0ba"),
    "a carriage return": GET.replace(b"Host: a", b"Host: a\rb"),
    "a lower case method": GET.replace(b"GET", b"get"),
    "another version": GET.replace(b"1.1", b"2.0"),
    "two spaces": GET.replace(b" /a", b"  /a"),
    "no target": GET.replace(b" /a", b""),
    "an empty line first": b"\r\n" + GET,
    "a PROXY header": V1 + GET,
}


@pytest.mark.parametrize("data", WHOLE.values(), ids=WHOLE)
def test_a_whole_request(pair: tuple[socket.socket, socket.socket], data: bytes) -> None:
    client, server = pair
    client.send(data)
    peek = Peek()
    peek.look(server)
    whole = peek.whole()
    assert whole is not None
    assert (whole.size, whole.followed) == (len(data), False)
    client.send(GET)
    peek.look(server)
    whole = peek.whole()
    assert whole is not None
    assert (whole.size, whole.followed) == (len(data), True)


@pytest.mark.parametrize("data", LEFT.values(), ids=LEFT)
def test_what_is_not_beyond_doubt_is_left_to_the_parser(
    pair: tuple[socket.socket, socket.socket], data: bytes
) -> None:
    client, server = pair
    client.send(data)
    peek = Peek()
    peek.look(server)
    assert peek.whole() is None
