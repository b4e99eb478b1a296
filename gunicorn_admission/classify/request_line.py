"""
Method and path of a raw HTTP/1 request, read as gunicorn would read them.

Admission in front of the parser must come to the same class as the WSGI gate behind it. So
this follows gunicorn's own steps to ``PATH_INFO`` (split the target, cut off
``SCRIPT_NAME``, percent-decode, show the bytes as latin-1), with a short cut for the
usual request line. It normalises nothing else: neither ``//`` nor dot segments.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit

__all__ = ["LONGEST_LINE", "names_script", "read_request_line"]

LONGEST_LINE: Final = 8190
"""Longest request line that is looked at; gunicorn's own ``limit_request_line`` goes no higher."""

_LONGEST_ENCODED: Final = 1024
"""Longest path that is percent-decoded here; decoding costs up to 40 ns a byte."""

# Origin-form with visible ASCII only: no scheme, host or character that needs more thought.
_USUAL: Final = re.compile(
    rb"([A-Z]{3,20}) (/[!\"$->@-~]*+)(?:[?#][!-~]*+)? HTTP/1\.[0-9]\r\n"
).match
_METHOD: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,20}").fullmatch
_VERSION: Final = re.compile(rb"HTTP/1\.[0-9]").fullmatch
_SCRIPT_NAME: Final = b"SCRIPT_NAME"


def read_request_line(head: bytes, script_name: str = "") -> tuple[str, str] | None:
    """
    Return method and ``PATH_INFO`` of a request, or ``None`` where that takes a real parser.

    ``None`` means malformed, longer than is worth reading here, or with a header
    ``SCRIPT_NAME`` that may change the path. Such a request is not classified in front of
    the parser.

    Args:
        head: The request from its first byte; at least the request line and its CRLF.
        script_name: The ``SCRIPT_NAME`` of the server's environment.

    Thread safety: pure.

    Source:
        RFC 9112 section 3; PEP 3333; the request line and ``PATH_INFO`` of gunicorn 20.1
        to 27.
    """
    usual = _USUAL(head, 0, LONGEST_LINE + 2)
    if usual is not None:
        method, target_path = usual.groups()
        if len(head) > usual.end() and names_script(head):
            return None
        if b"%" not in target_path and not script_name:
            return method.decode("ascii"), target_path.decode("ascii")
        path: str | None = target_path.decode("ascii")
    else:
        end = head.find(b"\r\n", 0, LONGEST_LINE + 2)
        bits = head[: max(end, 0)].split(b" ", 2)
        if len(bits) != 3 or not _METHOD(bits[0]) or not _VERSION(bits[2]):
            return None
        if len(head) > end + 2 and names_script(head):
            return None
        method, path = bits[0], _path_of(bits[1].decode("latin-1"))
    if path is None or not path.startswith(script_name):
        return None
    path = path[len(script_name) :]
    if "%" in path and len(path) > _LONGEST_ENCODED:
        return None
    return method.decode("ascii"), unquote_to_bytes(path).decode("latin-1")


def names_script(head: bytes) -> bool:
    """Whether a header ``SCRIPT_NAME`` may change the path of a request."""
    end = head.find(b"\r\n\r\n")  # a body may follow, which is long and says nothing
    return _SCRIPT_NAME in (head[:end] if end >= 0 else head).upper()


def _path_of(target: str) -> str | None:
    if not target:
        return None
    try:
        if target.startswith("//"):
            # A path, where urlsplit would see a host; gunicorn puts a dot before it, too.
            return urlsplit("." + target).path[1:]
        return urlsplit(target).path
    except ValueError:
        return None
