"""
gunicorn's ``access_log_format``, read backwards: from a line to what was put into it.

Two expressions a format. The first knows that text between quotes has its own quotes escaped;
the second is for what that does not cover, such as a header that ends with a backslash.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.nearest import did_you_mean

__all__ = ["ADD", "COMBINED", "COMMON", "DURATIONS", "LogFormat", "LogLine"]

COMMON: Final = '%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s'
#: gunicorn's default. It says when a request ended and not how long it took.
COMBINED: Final = f'{COMMON} "%(f)s" "%(a)s"'
#: The line that makes a log readable here.
ADD: Final = f"access_log_format = '{COMBINED} %(L)s'"

#: Seconds in one unit of each atom that is a duration, the most exact first.
DURATIONS: Final = {"L": 1.0, "D": 1e-6, "M": 1e-3, "T": 1.0}

_ATOM: Final = re.compile(r"%\((?P<name>[^)]*)\)[-#0 +]*\d*(?:\.\d+)?[sdfri]|%%")
_KNOWN: Final = frozenset("hlutrsmUqHbBfaTDMLp")
_HEADER: Final = re.compile(r"\{[^}]+\}[ioe]")
_LONGEST: Final = 65_536  # gunicorn lets none of the texts be longer than 8190
_DIGITS: Final = r"\d{1,20}"
_EXACT: Final = {
    "t": r"\[[^\]]{20,40}\]",
    "s": r" {0,20}\d{3}",
    "p": rf"<{_DIGITS}>",
    "L": rf" {{0,20}}{_DIGITS}\.{_DIGITS}",
    "D": rf" {{0,20}}{_DIGITS}",
    "M": rf" {{0,20}}{_DIGITS}",
    "T": rf" {{0,20}}{_DIGITS}",
}
_WANTED: Final = frozenset("tsprmULDMT")
_QUOTED: Final = r'(?:[^"\\]|\\.)*+'


class LogLine(NamedTuple):
    """
    One request as the log tells it.

    Attributes:
        time: Local time with its zone, as ``%(t)s`` writes it, without the brackets.
        duration: As it stands there; its unit is the format's.
        method, target: Of the request; empty where the format has none.
        status: 200 where the format has none.
        process: Number of the worker's process, or ``None``.
    """

    time: str
    duration: float
    method: str
    target: str
    status: int
    process: str | None


class LogFormat:
    """
    One ``access_log_format``.

    Args:
        text: As in gunicorn's configuration.

    Attributes:
        text: The same.
        duration: The atom that durations are read from: ``L``, ``D``, ``M`` or ``T``.

    Raises:
        ConfigError: It names an unknown atom, or says no time or no duration.

    Thread safety: immutable.
    """

    __slots__ = ("_odd", "_usual", "duration", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        names = [match["name"] for match in _ATOM.finditer(text) if match["name"] is not None]
        _check(text, names)
        self.duration = next(name for name in DURATIONS if name in names)
        self._usual = re.compile(_expression(text, quotes=True), re.DOTALL)
        self._odd = re.compile(_expression(text, quotes=False), re.DOTALL)

    @property
    def has_request(self) -> bool:
        """Whether a line says what was asked for."""
        return bool({"r", "U"} & self._usual.groupindex.keys())

    def read(self, line: str) -> LogLine | None:
        """
        Return what a line says, ``None`` if it is not of this format.

        Args:
            line: Without its end.
        """
        if len(line) > _LONGEST:
            return None
        match = self._usual.match(line) or self._odd.match(line)
        if match is None:
            return None
        found = match.groupdict()
        if "r" in found:
            method, _, rest = found["r"].partition(" ")
            target = rest.rpartition(" ")[0] or rest
        else:
            method, target = found.get("m", ""), found.get("U", "")
        return LogLine(
            found["t"][1:-1],
            float(found[self.duration]),
            method,
            target,
            int(found.get("s", "200")),
            found.get("p"),
        )


def _check(text: str, names: list[str]) -> None:
    for name in names:
        if name not in _KNOWN and not _HEADER.fullmatch(name):
            known = [f"%({atom})s" for atom in sorted(_KNOWN)]
            raise ConfigError(
                "format", text, "an access_log_format of gunicorn",
                f"%({name})s is not in it; {did_you_mean(f'%({name})s', known)}",
            )  # fmt: skip
    if "t" not in names:
        raise ConfigError(
            "format", text, "one that says when", "without %(t)s nobody knows when requests came"
        )
    if not DURATIONS.keys() & names:
        raise ConfigError(
            "format", text, "one that says how long requests took",
            f"put %(L)s at its end in gunicorn.conf.py: access_log_format = '{text} %(L)s'",
        )  # fmt: skip


def _expression(text: str, *, quotes: bool) -> str:
    """
    Each free text, and all that is known until the next one, is an atomic group.

    So a text ends where what follows it first fits, and nothing is tried twice: what a
    client can put into a header costs no more than its length.
    """
    parts: list[str] = []
    seen: set[str] = set()
    at, opened = 0, False
    for match in _ATOM.finditer(text):
        parts.append(re.escape(text[at : match.start()]))
        at = match.end()
        name = match["name"]
        if name is None:
            parts.append("%")
            continue
        quoted = text[match.start() - 1 : match.start()] == '"' == text[at : at + 1]
        inside = _EXACT.get(name) or (_QUOTED if quotes and quoted else None)
        if inside is None:
            parts.append(")(?>" if opened else "(?>")
            opened, inside = True, ".*?"
        if name in _WANTED and name not in seen:
            inside = f"(?P<{name}>{inside})"
        seen.add(name)
        parts.append(inside)
    parts.append(re.escape(text[at:]) + r"\Z" + ")" * opened)
    return "".join(parts)
