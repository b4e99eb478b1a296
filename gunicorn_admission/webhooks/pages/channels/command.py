"""Pages as the start of a command: for everything that has one."""

from __future__ import annotations

import json
import os
import shlex
import signal
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
        """
        Start it and wait; after ten seconds it is killed with all that it has started.

        Raises:
            ChannelError: It did not exit with 0. What it says about that is on our own stderr.
        """
        page = document(notice)
        try:
            process = subprocess.Popen(
                self._words,
                stdin=subprocess.PIPE,
                env={
                    **os.environ,
                    "PAGE_TEXT": page["text"],
                    "PAGE_STATUS": page["status"],
                    "PAGE_SEVERITY": page["severity"],
                },
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # a stop of ours is none of it
            )
        except OSError as error:
            raise ChannelError(f"{self.name}: {type(error).__name__}") from None
        try:
            process.communicate(json.dumps(page).encode(), _TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise ChannelError(f"{self.name}: not done after {_TIMEOUT:g} s") from None
        if process.returncode:
            raise ChannelError(f"{self.name}: exited with {process.returncode}")
