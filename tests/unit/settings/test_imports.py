"""Importing the settings is cheap: no framework, no exporter, no file format."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("gunicorn", "flask", "werkzeug", "statsd", "tomllib", "json", "difflib", "socket")


def test_importing_loads_nothing_that_is_not_needed() -> None:
    # -S: without the site's .pth files, which may import anything.
    program = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "import gunicorn_admission.settings\n"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == []
