"""The raw body: bounded reads, whatever is announced."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gunicorn_admission.webhooks.intake.body import Incomplete, TooLarge, drain, read_body

PATIENCE = 1.0


class Input:
    """``wsgi.input`` that counts what is taken from it, and may give it in small pieces."""

    def __init__(self, data: bytes, piece: int = 1 << 30, error: Exception | None = None) -> None:
        self._stream = io.BytesIO(data)
        self._piece = piece
        self._error = error
        self.read_bytes = 0

    def read(self, size: int) -> bytes:
        assert size >= 0, "an unbounded read"
        data = self._stream.read(min(size, self._piece))
        self.read_bytes += len(data)
        if not data and self._error is not None:
            raise self._error
        return data


def environ(data: Input, length: str | None = None, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"wsgi.input": data, **more}
    if length is not None:
        found["CONTENT_LENGTH"] = length
    return found


CHUNKED = {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}


@pytest.mark.parametrize("piece", [1, 3, 1 << 20])
def test_whole_body(piece: int) -> None:
    assert read_body(environ(Input(b"abcdef", piece), "6"), 6, PATIENCE) == b"abcdef"
    assert read_body(environ(Input(b"abcdef", piece), **CHUNKED), 6, PATIENCE) == b"abcdef"


def test_only_what_was_announced() -> None:
    data = Input(b"abcdef")
    assert read_body(environ(data, "3"), 100, PATIENCE) == b"abc"
    assert data.read_bytes == 3


def test_chunks_win_over_a_length() -> None:
    data = environ(Input(b"abcdef"), "3", **CHUNKED)
    assert read_body(data, 100, PATIENCE) == b"abcdef"


def test_without_a_length_and_without_an_end_there_is_no_body() -> None:
    data = Input(b"abcdef")
    assert read_body(environ(data), 100, PATIENCE) == b""
    assert read_body(environ(data, ""), 100, PATIENCE) == b""
    assert data.read_bytes == 0


def test_too_large_by_its_length_is_not_read() -> None:
    data = Input(b"x" * 100)
    with pytest.raises(TooLarge):
        read_body(environ(data, "11"), 10, PATIENCE)
    assert data.read_bytes == 0


@pytest.mark.parametrize("length", [10, 11, 1000])
def test_chunks_are_read_one_byte_too_far_at_most(length: int) -> None:
    data = Input(b"x" * length)
    if length <= 10:
        assert read_body(environ(data, **CHUNKED), 10, PATIENCE) == b"x" * 10
    else:
        with pytest.raises(TooLarge):
            read_body(environ(data, **CHUNKED), 10, PATIENCE)
    assert data.read_bytes <= 11


def test_shorter_than_announced() -> None:
    with pytest.raises(Incomplete) as caught:
        read_body(environ(Input(b"abc"), "4"), 10, PATIENCE)
    assert (caught.value.got, caught.value.announced) == (3, 4)


@pytest.mark.parametrize("error", [OSError("gone"), TimeoutError(), ValueError("bad chunk")])
def test_what_a_server_raises_is_incomplete(error: Exception) -> None:
    for more in ({"length": "9"}, CHUNKED):
        with pytest.raises(Incomplete):
            read_body(environ(Input(b"abc", error=error), **more), 10, PATIENCE)


@pytest.mark.parametrize("length", ["-1", "abc", "1e3", "٣", "+5", " 5", "9" * 30, "0x10"])
def test_length_that_is_none(length: str) -> None:
    data = Input(b"abcdef")
    with pytest.raises(Incomplete):
        read_body(environ(data, length), 10, PATIENCE)
    drain(environ(data, length), 10)
    assert data.read_bytes == 0


class Socket:
    def __init__(self) -> None:
        self.timeouts: list[float | None] = []
        self.timeout: float | None = None

    def gettimeout(self) -> float | None:
        return self.timeout

    def settimeout(self, value: float | None) -> None:
        self.timeout = value
        self.timeouts.append(value)


def test_silence_is_bounded_and_the_timeout_put_back() -> None:
    sock = Socket()
    read_body(environ(Input(b"abc"), "3", **{"gunicorn.socket": sock}), 10, 2.5)
    assert sock.timeouts == [2.5, None]
    with pytest.raises(Incomplete):
        read_body(environ(Input(b""), "3", **{"gunicorn.socket": sock}), 10, 2.5)
    assert sock.timeout is None


def test_a_trickle_is_bounded() -> None:
    now = 0.0

    def monotonic() -> float:
        nonlocal now
        now += 0.4
        return now

    data = Input(b"x" * 1000, piece=1)
    with pytest.raises(Incomplete):
        read_body(environ(data, "1000"), 1000, 2.0, monotonic)
    assert 0 < data.read_bytes < 10


def test_drain_is_bounded_in_bytes() -> None:
    for more in ({"length": "1000"}, CHUNKED):
        data = Input(b"x" * 1000)
        drain(environ(data, **more), 100)
        assert data.read_bytes == 100


def test_drain_is_bounded_in_time() -> None:
    now = 0.0

    def monotonic() -> float:
        nonlocal now
        now += 0.5
        return now

    data = Input(b"x" * 1000, piece=1)
    drain(environ(data, "1000"), 1000, monotonic)
    assert 0 < data.read_bytes < 10


def test_drain_never_raises() -> None:
    drain(environ(Input(b"", error=OSError()), "10"), 100)
    drain({}, 100)
    drain({"CONTENT_LENGTH": "5"}, 100)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(
    data=st.binary(max_size=300),
    length=st.none() | st.integers(-5, 400).map(str) | st.text(max_size=5),
    chunked=st.booleans(),
    piece=st.integers(1, 400),
    largest=st.integers(1, 300),
)
def test_never_more_than_the_bound(
    data: bytes, length: str | None, chunked: bool, piece: int, largest: int
) -> None:
    stream = Input(data, piece)
    request = environ(stream, length, **(CHUNKED if chunked else {}))
    try:
        body = read_body(request, largest, PATIENCE)
    except (TooLarge, Incomplete):
        body = b""
    assert data.startswith(body)
    assert len(body) <= largest
    assert stream.read_bytes <= largest + 1
