"""Pages as the start of a command: for everything that has one."""

from __future__ import annotations

import json
import os
import shlex
import subprocess

from gunicorn_admission.webhooks.pages.channels.channel import ChannelError
from gunicorn_admission.webhooks.pages.channels.webhook import document
from gunicorn_admission.webhooks.pages.wording import Notice

__all__ = ["CommandChannel"]

_TIMEOUT = 10.0


class CommandChannel:
    """
    Starts a command for each notice, with the page as JSON on its standard input.

    ``PAGE_TEXT``, ``PAGE_STATUS`` and ``PAGE_SEVERITY`` are in its environment. No shell is in
    between, because parts of a page come from a sender.

    Args:
        command: As on a command line; split into words once, here.

    Raises:
        ValueError: It cannot be split, or is empty.

    Thread safety: ``send`` may run in many threads.
    """

    repeat = 900.0
    refreshes = False

    def __init__(self, command: str) -> None:
        self._words = shlex.split(command)
        if not self._words:
            raise ValueError("no command")
        self.name = f"command {os.path.basename(self._words[0])}"

    def send(self, notice: Notice) -> None:
        """Start it and wait, ten seconds at most. Raises ChannelError unless it exits with 0."""
        page = document(notice)
        try:
            done = subprocess.run(
                self._words,
                input=json.dumps(page).encode(),
                env={
                    **os.environ,
                    "PAGE_TEXT": page["text"],
                    "PAGE_STATUS": page["status"],
                    "PAGE_SEVERITY": page["severity"],
                },
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_TIMEOUT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ChannelError(f"{self.name}: {type(error).__name__}") from None
        if done.returncode:
            raise ChannelError(f"{self.name}: exited with {done.returncode}")
