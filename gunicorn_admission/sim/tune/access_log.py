"""Reads access logs of gunicorn: plain, gzip, or from a pipe; refuses what it cannot read."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from attrs import frozen

from gunicorn_admission.classify import Classifier, RequestClass
from gunicorn_admission.core.types import Priority
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.sim.tune.guess import guess_format, guess_unit
from gunicorn_admission.sim.tune.log_format import DURATIONS, LogFormat

__all__ = ["STDIN", "AccessLog", "read_logs"]

#: Stands for standard input.
STDIN: Final = Path("-")
_GZIP: Final = b"\x1f\x8b"


@frozen(kw_only=True)
class AccessLog:
    """
    What was read, in columns of equal length, one entry a request, in the order of their ends.

    Attributes:
        ended: When, in seconds since the epoch; the log says whole seconds, so those of one
            second are spread over it in their order.
        seconds: How long each was in a thread.
        kind: Index into ``classes``.
        refused: 1 where the answer was a 503.
        classes: Traffic classes that occur.
        lines, exempt, unreadable: Lines read; of these, probes, and those left out.
        processes: Workers that wrote it, 0 where it does not say.
        format: How it was read.
        assumed: Whether the unit of durations was concluded from their size.
    """

    ended: array[float]
    seconds: array[float]
    kind: array[int]
    refused: bytearray
    classes: tuple[RequestClass, ...]
    lines: int
    exempt: int
    unreadable: int
    processes: int
    format: LogFormat
    assumed: bool

    @property
    def resolution(self) -> float:
        """Seconds in the smallest step of a duration."""
        return 1e-6 if self.format.duration == "L" else DURATIONS[self.format.duration]


def read_logs(
    paths: Sequence[Path],
    classifier: Classifier,
    *,
    format: str | None = None,
    skip: bool = False,
) -> AccessLog:
    """
    Read logs as one, in the order given.

    Args:
        paths: Files, or ``STDIN``; gzip is recognised by its first bytes.
        classifier: Tells the class of each request.
        format: ``access_log_format``; ``None`` finds it out from the first line.
        skip: Leave unreadable lines out and count them; else the first one is an error.

    Raises:
        ConfigError: A file or a line cannot be read; it names the line.
        OSError: A file cannot be opened.
    """
    reader = _Reader(classifier, LogFormat(format) if format else None, skip)
    for path in paths:
        name = "standard input" if path == STDIN else str(path)
        for number, line, whole in _lines(path, name):
            reader.take(line, f"{name}, line {number}", whole)
    return reader.log(", ".join(map(str, paths)))


def _lines(path: Path, name: str) -> Iterator[tuple[int, str, bool]]:
    """Yield number, text and whether the line was ended."""
    number = 0
    stream = sys.stdin.buffer if path == STDIN else path.open("rb")
    try:
        packed = isinstance(stream, io.BufferedReader) and stream.peek(2)[:2] == _GZIP
        source: Iterable[bytes] = gzip.GzipFile(fileobj=stream) if packed else stream
        for raw in source:
            number += 1
            text = raw.decode("latin-1")
            yield number, text.rstrip("\r\n"), text.endswith("\n")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ConfigError(
            "access log", name, "a whole gzip file", f"{error}", f"{name}, after line {number}"
        ) from None
    finally:
        if path != STDIN:
            stream.close()


class _Reader:
    def __init__(self, classifier: Classifier, format: LogFormat | None, skip: bool) -> None:
        self._classify = classifier.classify
        self._format = format
        self._skip = skip
        self._unit_unknown = False
        self._ended, self._values = array("d"), array("d")
        self._kind, self._refused = array("H"), bytearray()
        self._classes: dict[tuple[str, Priority], tuple[int, RequestClass]] = {}
        self._processes: set[str] = set()
        self._lines = self._exempt = self._unreadable = 0
        self._stamp, self._second, self._first = "", 0.0, 0

    def take(self, line: str, source: str, whole: bool) -> None:
        if not line:
            return
        if self._format is None:
            self._format, self._unit_unknown = guess_format(line, source)
        self._lines += 1
        read = self._format.read(line)
        second = None if read is None else self._time(read.time)
        if read is None or second is None:
            # The last line of a log that is still being written may be half.
            if not self._skip and whole:
                raise ConfigError(
                    "access log", line[:80], f"a line of the format {self._format.text}",
                    "--skip-unreadable leaves such lines out; --format says what they are", source,
                )  # fmt: skip
            self._unreadable += 1
            return
        path = unquote(read.target.partition("?")[0], "latin-1")
        if "://" in path:
            path = "/" + path.partition("://")[2].partition("/")[2]
        found = self._classify(read.method, path)
        if found.exempt:
            self._exempt += 1
            return
        key = found.partition, found.priority
        index, _ = self._classes.setdefault(key, (len(self._classes), found))
        self._ended.append(second)
        self._values.append(read.duration)
        self._kind.append(index)
        self._refused.append(read.status == 503)
        if read.process is not None:
            self._processes.add(read.process)

    def _time(self, text: str) -> float | None:
        if text != self._stamp:
            try:
                second = datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z").timestamp()
            except ValueError:
                return None
            self._spread()
            self._stamp, self._second, self._first = text, second, len(self._ended)
        return self._second

    def _spread(self) -> None:
        """Spread what ended in one second over it."""
        count = len(self._ended) - self._first
        for place in range(count):
            self._ended[self._first + place] += (place + 0.5) / count

    def log(self, source: str) -> AccessLog:
        self._spread()
        if self._format is None or not self._ended:
            raise ConfigError(
                "access log", source, "requests",
                f"of {self._lines} lines {self._exempt} were probes and {self._unreadable} "
                "unreadable" if self._lines else "it is empty",
            )  # fmt: skip
        if 2 * self._unreadable > self._lines:
            raise ConfigError(
                "access log", source, f"lines of the format {self._format.text}",
                f"{self._unreadable} of {self._lines} are not; say what they are with --format",
            )  # fmt: skip
        if self._unit_unknown:
            atom = guess_unit(self._values, source)
            self._format = LogFormat(self._format.text.replace("%(D)s", f"%({atom})s"))
        unit = DURATIONS[self._format.duration]
        seconds = array("d", (value * unit for value in self._values))
        return AccessLog(
            ended=self._ended,
            seconds=seconds,
            kind=self._kind,
            refused=self._refused,
            classes=tuple(found for _, found in self._classes.values()),
            lines=self._lines,
            exempt=self._exempt,
            unreadable=self._unreadable,
            processes=len(self._processes),
            format=self._format,
            assumed=self._unit_unknown,
        )
