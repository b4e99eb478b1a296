"""The pages below ``status_path``: ``/live``, ``/ready``, and figures for this machine."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from gunicorn_admission.status.readiness import Readiness

__all__ = ["Aside", "Probes"]

_FORWARDED: Final = ("HTTP_FORWARDED", "HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP", "HTTP_VIA")


class Probes:
    """
    A WSGI application for the paths below one path.

    ``/live`` is 200 whenever it is answered. ``/ready`` is 200 or 503. Both may be asked by
    anybody, since the kubelet is not on loopback, and tell nothing else. The path itself
    shows figures, to clients on loopback that no proxy speaks for; others get 404.

    Args:
        path: Without a slash at its end.
        readiness: Of this node.

    Thread safety: any thread.
    """

    def __init__(self, path: str, readiness: Readiness) -> None:
        self._path = path.rstrip("/")
        self._below = self._path + "/"
        self._readiness = readiness

    def covers(self, path: str) -> bool:
        """Whether a path is one of ours."""
        return path == self._path or path.startswith(self._below)

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer GET and HEAD."""
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _answer(
                environ, start_response, "405 Method Not Allowed", {}, [("Allow", "GET")]
            )
        name = environ.get("PATH_INFO", "")[len(self._path) :].strip("/")
        if name == "live":
            return _answer(environ, start_response, "200 OK", {"live": True})
        if name == "ready":
            why_not = self._readiness.why_not()
            if why_not is None:
                return _answer(environ, start_response, "200 OK", {"ready": True})
            body = {"ready": False, "reason": why_not}
            return _answer(environ, start_response, "503 Service Unavailable", body)
        if name == "" and _is_local(environ):
            return _answer(environ, start_response, "200 OK", self._readiness.figures())
        return _answer(environ, start_response, "404 Not Found", {})


class Aside:
    """
    Puts probes beside an application that nothing else of ours is in front of.

    Args:
        app: The application.
        probes: Answers for its paths.
    """

    def __init__(self, app: Callable[..., Iterable[bytes]], probes: Probes) -> None:
        self.app = app
        self._probes = probes

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer or pass on."""
        if self._probes.covers(environ.get("PATH_INFO", "")):
            return self._probes(environ, start_response)
        return self.app(environ, start_response)


def _is_local(environ: dict[str, Any]) -> bool:
    """Whether the client itself is on this machine, as far as can be told."""
    if any(name in environ for name in _FORWARDED):
        return False
    try:
        return ipaddress.ip_address(environ.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False  # a Unix socket, behind which a proxy sits


def _answer(
    environ: dict[str, Any],
    start_response: Callable[..., Any],
    status: str,
    data: dict[str, Any],
    more: Iterable[tuple[str, str]] = (),
) -> Iterable[bytes]:
    body = json.dumps(data).encode() + b"\n"
    headers = [
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
        *more,
    ]
    start_response(status, headers)
    return [b"" if environ["REQUEST_METHOD"] == "HEAD" else body]
