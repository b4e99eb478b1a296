"""
Whose turn it is to write to an SQLite file, over all threads of all processes.

SQLite itself lets who finds the file busy sleep and try again, longer each time, so that who comes
later may go first: under load, single writers waited for seconds. Here they queue. A turn is a
lock on one file; who wants it first takes the lock on another, "next", and keeps that until it is
its turn. So whoever ends a turn and wants one more stands behind those who wait.

The locks are ``flock``, which the kernel gives back when a process ends in whatever way. Each turn
opens the files anew, because such a lock belongs to the open file: threads exclude one another
like processes, and a forked child inherits nothing that it could hold by mistake.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gunicorn_admission.webhooks.store.errors import StoreError

__all__ = ["Turns"]


class Turns:
    """
    The right to write to one file.

    Args:
        database: The file; two more are made beside it, which say nothing and may stay.

    Thread safety: all methods may be called from any thread.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._turn = f"{database}-turn"
        self._next = f"{database}-next"

    @contextmanager
    def take(self) -> Iterator[None]:
        """
        Wait for a turn, and hold it; not twice in one thread.

        Raises:
            StoreError: The files cannot be opened.
        """
        waiting = self._open(self._next)
        try:
            fcntl.flock(waiting, fcntl.LOCK_EX)
            held = self._open(self._turn)
            try:
                fcntl.flock(held, fcntl.LOCK_EX)
            except BaseException:
                os.close(held)
                raise
        finally:
            os.close(waiting)
        holder = os.getpid()
        try:
            yield
        finally:
            # Closing alone would not do: a child that was forked meanwhile has the file open too.
            # And such a child, on its way out, must not end the turn of its parent.
            if os.getpid() == holder:
                fcntl.flock(held, fcntl.LOCK_UN)
            os.close(held)

    def _open(self, path: str) -> int:
        try:
            try:
                return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                file = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
                # For the same users as the database, whatever the umask says.
                os.fchmod(file, os.stat(self._database).st_mode & 0o666)
                return file
        except OSError as error:
            hint = "the folder has to be writable for who runs this"
            raise StoreError(f"cannot take a turn to write: {error}. Hint: {hint}") from error
