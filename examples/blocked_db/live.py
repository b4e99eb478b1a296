"""Progress while the load runs: a live table in a terminal, plain lines anywhere else."""

from __future__ import annotations

import subprocess
import time
from collections import deque
from pathlib import Path
from typing import TextIO

from load import Record, read
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text
from scenario import HEALTH, KINDS, Phase

REFRESH = 0.25
RECENT = 2.0  # seconds that are shown; without a terminal also the time between two lines
BAR = 40
OUTCOMES = ("served", "refused", "gave_up")


class Progress:
    """Follows the file that the generator writes and shows the last seconds of it."""

    def __init__(self, console: Console, title: str, plan: tuple[Phase, ...]) -> None:
        self.console, self.title, self.plan = console, title, plan
        self.recent: deque[Record] = deque()

    def follow(self, load: subprocess.Popen[bytes], requests: Path) -> None:
        """Return when the generator has ended; raises when it failed."""
        while not requests.exists() and load.poll() is None:
            time.sleep(0.05)
        with requests.open() as lines, Live(console=self.console, auto_refresh=False) as live:
            shown = zero = 0.0
            while load.poll() is None:
                time.sleep(REFRESH)
                zero = self._take(lines, zero)
                now = time.monotonic() - zero
                if not zero or now > self.plan[-1].end:
                    continue
                while self.recent and self.recent[0].ended < now - RECENT:
                    self.recent.popleft()
                if self.console.is_terminal:
                    live.update(self._table(now), refresh=True)
                elif now - shown >= RECENT:
                    self.console.print(self._line(now), soft_wrap=True)
                    shown = now
        if load.returncode:
            raise subprocess.CalledProcessError(load.returncode, "load.py")

    def _take(self, lines: TextIO, zero: float) -> float:
        """Read the lines that are whole; the first one tells when time zero was."""
        while True:
            position = lines.tell()
            line = lines.readline()
            if not line.endswith("\n"):
                lines.seek(position)
                return zero
            if zero:
                self.recent.append(read(line))
            else:
                zero = float(line)

    def _phase(self, now: float) -> str:
        return next((phase.title for phase in self.plan if now < phase.end), "")

    def _share(self, kind: str, outcome: str) -> str:
        outcomes = [record.outcome for record in self.recent if record.kind == kind]
        return f"{outcomes.count(outcome) / len(outcomes):4.0%}" if outcomes else "   -"

    def _line(self, now: float) -> str:
        served = "  ".join(f"{kind.name} {self._share(kind.name, 'served')}" for kind in KINDS)
        health = self._share(HEALTH.name, "served")
        return f"{self.title:10} {now:3.0f} s  {self._phase(now):17} {served}  health {health}"

    def _table(self, now: float) -> Table:
        end = self.plan[-1].end
        done = "█" * int(BAR * now / end)
        table = Table(
            title=f"{self.title}: {self._phase(now)}",
            caption=Text(f"{done:░<{BAR}} {now:.0f} of {end:.0f} s"),
            min_width=60,
        )
        table.add_column("answers just now")
        for outcome in OUTCOMES:
            table.add_column(outcome.replace("_", " "), justify="right")
        for kind in (*KINDS, HEALTH):
            shares = (self._share(kind.name, outcome) for outcome in OUTCOMES)
            table.add_row(f"{kind.name} ({kind.priority})", *shares)
        return table
