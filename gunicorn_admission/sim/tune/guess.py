"""What format a log has when nobody said; refused rather than guessed where it is unclear."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.sim.tune.log_format import ADD, COMBINED, COMMON, LogFormat

__all__ = ["WHOLE", "guess_format", "guess_unit"]

#: Stands for an atom with whole numbers until :func:`guess_unit` has seen them.
WHOLE: Final = "D"
_STARTS: Final = (COMBINED, COMMON)
_ENDS: Final = (
    (re.compile(r" \d+\.\d{6}"), " %(L)s"),
    (re.compile(r' "\d+\.\d{6}"'), ' "%(L)s"'),
    (re.compile(r" \d+"), f" %({WHOLE})s"),
    (re.compile(r' "\d+"'), f' "%({WHOLE})s"'),
)
_STAMP: Final = re.compile(r"\[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]")
_PLAIN: Final = re.compile(
    r'\S* \S* .*?\[[^\]]{20,40}\] "(?:[^"\\]|\\.)*" \d{3} \S+'
    r'(?P<more> "(?:[^"\\]|\\.)*" "(?:[^"\\]|\\.)*")?(?P<end>.*)'
)
#: Nothing that runs in Python behind gunicorn is faster, in microseconds.
_FASTEST_US: Final = 100


def guess_format(line: str, source: str) -> tuple[LogFormat, bool]:
    """
    Return the format of a line, and whether the unit of its duration is still to be found.

    Known are gunicorn's default and the common log format, followed by a duration.

    Args:
        line: The first one.
        source: Its place, for the error.

    Raises:
        ConfigError: It has no duration, or a form that is not known.
    """
    match = _PLAIN.fullmatch(line)
    if match is None:
        raise ConfigError(
            "access log", line[:80], "a line as gunicorn writes it by default, and a duration",
            "say what it is with --format and your access_log_format"
            if _STAMP.search(line)
            else "this is no access log of gunicorn",
            source,
        )  # fmt: skip
    start = COMBINED if match["more"] else COMMON
    for pattern, atom in _ENDS:
        if pattern.fullmatch(match["end"]):
            return LogFormat(start + atom), atom.strip(' "') == f"%({WHOLE})s"
    if match["end"]:
        raise ConfigError(
            "access log", match["end"][:80], "a duration at the end of the line",
            "say what the line is with --format and your access_log_format", source,
        )  # fmt: skip
    raise ConfigError(
        "access log", line[:80], "a duration in each line",
        "gunicorn's default format says when a request ended and not how long it took; put this "
        f"line into gunicorn.conf.py and let it run for a day: {ADD}", source,
    )  # fmt: skip


def guess_unit(values: Sequence[float], source: str) -> str:
    """
    Return the atom that wrote some whole numbers: ``D``, ``M`` or ``T``.

    Raises:
        ConfigError: They could be either.
    """
    ordered = sorted(values)
    low, middle = ordered[len(ordered) // 100], ordered[len(ordered) // 2]
    if low >= _FASTEST_US and middle >= 10 * _FASTEST_US:
        return "D"
    if low < _FASTEST_US:
        return "M" if middle >= 2 else "T"
    raise ConfigError(
        "access log", int(middle), "durations whose unit is clear",
        "whole numbers like these can be microseconds, %(D)s, or milliseconds, %(M)s: say it with "
        f"--format, for example --format '{COMBINED} %(D)s'", source,
    )  # fmt: skip
