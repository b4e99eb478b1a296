"""
Bytes that clients may send: correct, broken, and made to be misunderstood.

Each case is a list of pieces that are written one by one, after which the client closes
its sending side. Cut, doubled and mixed they give as many more as are wanted.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

__all__ = ["CASES", "PROXY_CASES", "mutants"]

_H = b"Host: a\r\n"


def _get(fields: bytes = b"", target: bytes = b"/a", line: bytes | None = None) -> bytes:
    return (line or b"GET %s HTTP/1.1" % target) + b"\r\n" + _H + fields + b"\r\n"


def _post(fields: bytes, body: bytes = b"") -> bytes:
    return b"POST /a HTTP/1.1\r\n" + _H + fields + b"\r\n" + body


_CHUNKED = b"Transfer-Encoding: chunked\r\n"
_HELLO = b"5\r\nhello\r\n0\r\n\r\n"
_NEXT = _get(target=b"/next")

_SINGLE: Mapping[str, bytes] = {
    # ordinary
    "get": _get(),
    "get, then close": _get(b"Connection: close\r\n"),
    "head": _get(line=b"HEAD /a HTTP/1.1"),
    "options": _get(line=b"OPTIONS * HTTP/1.1"),
    "query": _get(target=b"/a?b=c&d"),
    "absolute": _get(target=b"http://other/a"),
    "post": _post(b"Content-Length: 5\r\n", b"hello"),
    "post of nothing": _post(b"Content-Length: 0\r\n"),
    "get with a body": _get(b"Content-Length: 5\r\n") + b"hello",
    "chunked": _post(_CHUNKED, _HELLO),
    "http/1.0": b"GET /a HTTP/1.0\r\n\r\n",
    "http/1.0, kept": b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "escapes": _get(target=b"/a%20b%2fc%00"),
    "dots": _get(target=b"/x/../a/./b"),
    "many fields": _get(b"".join(b"X-%d: y\r\n" % n for n in range(90))),
    "large body": _post(b"Content-Length: 300000\r\n", b"x" * 300000),
    # several on one connection
    "pipelined": _get() + _NEXT,
    "pipelined bodies": _post(b"Content-Length: 5\r\n", b"hello") + _post(_CHUNKED, _HELLO) + _NEXT,
    "pipelined behind a close": _get(b"Connection: close\r\n") + _NEXT,
    "twenty": _get() * 20,
    "pipelined half": _get() + _NEXT[:20],
    # request lines
    "nothing": b"",
    "an empty line": b"\r\n",
    "empty lines first": b"\r\n" + _get(),
    "many empty lines first": b"\r\n\r\n\r\n" + _get(),
    "garbage": bytes(range(256)),
    "a client hello": b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(100),
    "http/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "http/0.9": b"GET /a\r\n",
    "version 1.2": _get(line=b"GET /a HTTP/1.2"),
    "version 2.0": _get(line=b"GET /a HTTP/2.0"),
    "version 11": _get(line=b"GET /a HTTP/11"),
    "lower case version": _get(line=b"GET /a http/1.1"),
    "lower case method": _get(line=b"get /a HTTP/1.1"),
    "odd method": _get(line=b"G@T /a HTTP/1.1"),
    "unknown method": _get(line=b"FROBNICATE /a HTTP/1.1"),
    "short method": _get(line=b"GE /a HTTP/1.1"),
    "no target": _get(line=b"GET HTTP/1.1"),
    "two spaces": _get(line=b"GET  /a HTTP/1.1"),
    "a tab": _get(line=b"GET\t/a HTTP/1.1"),
    "a space in front": _get(line=b" GET /a HTTP/1.1"),
    "a space behind": _get(line=b"GET /a HTTP/1.1 "),
    "raw bytes in the target": _get(target=b"/\xff\xfe\x80"),
    "utf-8 in the target": _get(target="/ä".encode()),
    "a nul in the target": _get(target=b"/a\0b"),
    "a fragment": _get(target=b"/a#b"),
    "no slash": _get(target=b"a"),
    "two slashes": _get(target=b"//a/b"),
    "long line": _get(target=b"/" + b"a" * 5000),
    "very long line": _get(target=b"/" + b"a" * 100000),
    "line just short enough": _get(target=b"/" + b"a" * 4070),
    "bare line feeds": b"GET /a HTTP/1.1\nHost: a\n\n",
    "half a line": b"GET /a HT",
    # fields
    "half a head": b"GET /a HTTP/1.1\r\nHost: a\r\nX",
    "head without an end": b"GET /a HTTP/1.1\r\nHost: a\r\n",
    "no colon": _get(b"broken\r\n"),
    "no name": _get(b": x\r\n"),
    "a space in the name": _get(b"A B: x\r\n"),
    "a space behind the name": _get(b"A : x\r\n"),
    "a folded value": _get(b"A: x\r\n y\r\n"),
    "a fold first": b"GET /a HTTP/1.1\r\n Host: a\r\n\r\n",
    "a nul in a value": _get(b"A: x\0y\r\n"),
    "a carriage return in a value": _get(b"A: x\ry\r\n"),
    "a line feed in a value": _get(b"A: x\nEvil: y\r\n"),
    "high bytes in a value": _get(b"A: \xe4\xff\r\n"),
    "underscores": _get(b"A_B: x\r\nContent_Length: 5\r\n"),
    "two hosts": _get(b"Host: b\r\n"),
    "no host": b"GET /a HTTP/1.1\r\n\r\n",
    "too many fields": _get(b"".join(b"X-%d: y\r\n" % n for n in range(150))),
    "a long field": _get(b"A: " + b"x" * 9000 + b"\r\n"),
    "a huge field": _get(b"A: " + b"x" * 100000 + b"\r\n"),
    "a field just short enough": _get(b"A: " + b"x" * 8100 + b"\r\n"),
    "long names": _get(b"A" * 300 + b": x\r\n"),
    "odd schemes": _get(b"X-Forwarded-Proto: https\r\nX-Forwarded-Ssl: on\r\n"),
    "contradicting schemes": _get(b"X-Forwarded-Proto: https\r\nX-Forwarded-Ssl: off\r\n"),
    # lengths
    "no length value": _post(b"Content-Length: \r\n", b"hello"),
    "negative length": _post(b"Content-Length: -5\r\n", b"hello"),
    "signed length": _post(b"Content-Length: +5\r\n", b"hello"),
    "hex length": _post(b"Content-Length: 0x5\r\n", b"hello"),
    "list of lengths": _post(b"Content-Length: 5, 5\r\n", b"hello"),
    "two lengths": _post(b"Content-Length: 5\r\nContent-Length: 6\r\n", b"hello!"),
    "two equal lengths": _post(b"Content-Length: 5\r\nContent-Length: 5\r\n", b"hello"),
    "zeros in front": _post(b"Content-Length: 0005\r\n", b"hello") + _NEXT,
    "digits of another script": _post("Content-Length: \u0665\r\n".encode(), b"hello"),
    "huge length": _post(b"Content-Length: 99999999999999999999\r\n", b"hello"),
    "too short": _post(b"Content-Length: 50\r\n", b"hello"),
    "longer than said": _post(b"Content-Length: 2\r\n", b"hello"),
    "a request as body": _post(b"Content-Length: %d\r\n" % len(_NEXT), _NEXT),
    "a request behind the body": _post(b"Content-Length: 2\r\n", b"he" + _NEXT),
    # transfer codings
    "length and chunks": _post(b"Content-Length: 5\r\n" + _CHUNKED, _HELLO + _NEXT),
    "chunks and length": _post(_CHUNKED + b"Content-Length: 100\r\n", _HELLO + _NEXT),
    "two codings": _post(_CHUNKED * 2, _HELLO),
    "identity": _post(b"Transfer-Encoding: identity\r\nContent-Length: 5\r\n", b"hello"),
    "chunked, identity": _post(b"Transfer-Encoding: chunked, identity\r\n", _HELLO),
    "gzip, chunked": _post(b"Transfer-Encoding: gzip, chunked\r\n", _HELLO),
    "unknown coding": _post(b"Transfer-Encoding: xchunked\r\n", _HELLO + _NEXT),
    "a tab in front of the coding": _post(b"Transfer-Encoding:\tchunked\r\n", _HELLO + _NEXT),
    "a vertical tab": _post(b"Transfer-Encoding: \x0bchunked\r\n", _HELLO + _NEXT),
    "a space behind its name": _post(b"Transfer-Encoding : chunked\r\n", _HELLO + _NEXT),
    "a folded coding": _post(b"Transfer-Encoding:\r\n chunked\r\n", _HELLO + _NEXT),
    "an underscore": _post(b"Transfer_Encoding: chunked\r\nContent-Length: 5\r\n", b"hello"),
    "chunks in http/1.0": b"POST /a HTTP/1.0\r\n" + _CHUNKED + b"\r\n" + _HELLO,
    "chunks that end early": _post(_CHUNKED, b"5\r\nhel"),
    "no last chunk": _post(_CHUNKED, b"5\r\nhello\r\n"),
    "bad chunk size": _post(_CHUNKED, b"five\r\nhello\r\n0\r\n\r\n" + _NEXT),
    "negative chunk size": _post(_CHUNKED, b"-5\r\nhello\r\n0\r\n\r\n" + _NEXT),
    "0x chunk size": _post(_CHUNKED, b"0x5\r\nhello\r\n0\r\n\r\n" + _NEXT),
    "huge chunk size": _post(_CHUNKED, b"f" * 40 + b"\r\nhello"),
    "chunk extensions": _post(_CHUNKED, b"5;a=b\r\nhello\r\n0;c\r\n\r\n" + _NEXT),
    "trailers": _post(_CHUNKED, b"5\r\nhello\r\n0\r\nA: b\r\n\r\n" + _NEXT),
    "bad trailers": _post(_CHUNKED, b"5\r\nhello\r\n0\r\nbroken\r\n\r\n" + _NEXT),
    "chunks with bare line feeds": _post(_CHUNKED, b"5\nhello\n0\n\n" + _NEXT),
    "a chunk longer than said": _post(_CHUNKED, b"2\r\nhello\r\n0\r\n\r\n" + _NEXT),
    # what asks for more than an answer
    "expect": _post(b"Expect: 100-continue\r\nContent-Length: 5\r\n", b"hello"),
    "expect something else": _post(b"Expect: miracles\r\nContent-Length: 5\r\n", b"hello"),
    "upgrade": _get(
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
    ),
    "websocket": _get(b"Connection: Upgrade\r\nUpgrade: websocket\r\n"),
    "connect": b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
    "keep-alive and close": _get(b"Connection: keep-alive, close\r\n") + _NEXT,
    "a proxy header that nobody asked for": b"PROXY TCP4 192.0.2.9 192.0.2.2 1 2\r\n" + _get(),
}


def _pieces(data: bytes, *sizes: int) -> list[bytes]:
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [*pieces, data]


CASES: Mapping[str, list[bytes]] = {
    **{name: [data] for name, data in _SINGLE.items()},
    "byte by byte": [bytes([byte]) for byte in _get()],
    "head, then body": _pieces(_post(b"Content-Length: 5\r\n", b"hello"), 50),
    "cut in the middle of a line end": _pieces(_get(), 16),
    "chunks one by one": _pieces(_post(_CHUNKED, _HELLO), 58, 3, 5, 2),
    "a second request in halves": _pieces(_get() + _NEXT, 40),
}

_WHO = b"GET /who HTTP/1.1\r\nHost: a\r\nX-Who: me\r\n\r\n"
_V1 = b"PROXY TCP4 192.0.2.9 192.0.2.2 1000 2000\r\n"
_V2 = b"\r\n\r\n\0\r\nQUIT\n"

#: For a server that expects the PROXY protocol.
PROXY_CASES: Mapping[str, list[bytes]] = {
    "v1": [_V1 + _WHO],
    "v1 alone first": [_V1, _WHO],
    "v1 in halves": [_V1[:20], _V1[20:] + _WHO],
    "v1, two requests": [_V1 + _WHO + _WHO],
    "no header": [_WHO],
    "a header behind the first request": [_WHO + _V1 + _WHO],
    "a header later": [_WHO, _V1 + _WHO],
    "two headers": [_V1 + _V1 + _WHO],
    "v1 unknown": [b"PROXY UNKNOWN\r\n" + _WHO],
    "v1 broken": [b"PROXY TCP4 x y\r\n" + _WHO],
    "v1 of another family": [b"PROXY TCP9 1.2.3.4 5.6.7.8 1 2\r\n" + _WHO],
    "v1 without an end": [b"PROXY " + b"x" * 500],
    "v2": [_V2 + b"\x21\x11\0\x0c" + bytes([192, 0, 2, 9] * 2) + b"\0\1\0\2" + _WHO],
    "v2 local": [_V2 + b"\x20\0\0\0" + _WHO],
    "v2 broken": [_V2 + b"\xff\xff\0\0" + _WHO],
    "v2 in halves": [_V2[:7], _V2[7:] + b"\x20\0\0\0" + _WHO],
    "v2 too short": [_V2 + b"\x21\x11\0\x0c" + b"\0" * 5],
    "nothing behind v1": [_V1],
}


def mutants(cases: Mapping[str, list[bytes]], count: int, seed: int) -> Iterator[list[bytes]]:
    """Yield variations: always the same for one seed."""
    chance = random.Random(seed)
    originals = [b"".join(pieces) for pieces in cases.values()]
    originals = [data for data in originals if 0 < len(data) < 4000]
    for _ in range(count):
        data = bytearray(chance.choice(originals))
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(data) + 1)
            match chance.randrange(5):
                case 0:  # drop
                    del data[at : at + chance.randint(1, 4)]
                case 1:  # insert
                    data[at:at] = chance.choice(
                        [b"\r", b"\n", b"\r\n", b"\0", b" ", b":", b"\t", b",", b"0", b"\xff", b";"]
                    )
                case 2:  # replace
                    data[at : at + 1] = bytes([chance.randrange(256)])
                case 3:  # repeat
                    data[at:at] = data[at : at + chance.randint(1, 40)]
                case _:  # splice
                    other = chance.choice(originals)
                    data[at:] = other[chance.randrange(len(other)) :]
        whole = bytes(data)
        cut = chance.randrange(len(whole) + 1)
        yield [whole] if chance.random() < 0.5 else [whole[:cut], whole[cut:]]
