"""Whether a command printed what a page says, but for what differs from run to run."""

from __future__ import annotations

import difflib
import re

__all__ = ["differences", "matches"]

#: What is different each time and yet shown as it was once, so that readers see a real answer.
_VARIES = (
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}", "DATE"),
    (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", "DATE"),
    (r"(?<=\[DATE\] )\[\d+\]", "[PID]"),
    (r"(?<=pid: )\d+|(?<=127\.0\.0\.1:PORT \()\d+", "PID"),
    (r"(?<=Retry-After: )\d+", "SECONDS"),
    (r"(?<=Retry after )\d+(?= s)", "SECONDS"),
    (r'(?<="retry_after": )\d+', "SECONDS"),
    (r"(?<=gunicorn )\d+\.\d+\.\d+", "VERSION"),
    (r"\d+(?:\.\d+)? ms", "MILLISECONDS"),
)


def _plain(text: str, ports: dict[str, str]) -> str:
    for documented, real in ports.items():
        text = text.replace(real, documented)
    for documented in ports:
        text = re.sub(rf"(?<=127\.0\.0\.1:){documented}", "PORT", text)
    for pattern, word in _VARIES:
        text = re.sub(pattern, word, text)
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(lines).strip("\n")


def _pattern(expected: str) -> str:
    """A regular expression for expected lines; ``...`` is any text, alone any lines."""
    parts = []
    for line in expected.splitlines():
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(re.escape(line).replace(r"\.\.\.", ".*") + r"\n")
    return "".join(parts)


def matches(expected: str, actual: str, ports: dict[str, str]) -> bool:
    """
    Tell whether a text is as expected.

    Args:
        expected: As documented.
        actual: As printed.
        ports: The real port of each documented one.
    """
    pattern, text = _pattern(_plain(expected, ports)), _plain(actual, ports)
    return re.fullmatch(pattern, f"{text}\n" if text else "") is not None


def differences(expected: str, actual: str, ports: dict[str, str]) -> str:
    """Return what to read when :func:`matches` says no."""
    one, two = (_plain(text, ports).splitlines() for text in (expected, actual))
    return "\n".join(difflib.unified_diff(one, two, "documented", "printed", lineterm="", n=99))
