"""
The thread that commits for all threads of a process, many pieces of work at a time.

A commit costs a flush to the disk, whatever is in it; so the pieces that came while the last one
was flushed share the next. Nobody waits for company: a single piece is committed at once.

Lock: ``_lock`` orders "no more pieces" against pieces that are just being handed in. A piece
itself is a ``Future``: queued until the thread takes it, and it can be called back until then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from gunicorn_admission.webhooks.store.errors import StoreError, StoreTimeout
from gunicorn_admission.webhooks.store.failure import explain, maybe_committed
from gunicorn_admission.webhooks.store.turns import Turns

__all__ = ["MOST", "Writer"]

T = TypeVar("T")

#: Pieces in one commit.
MOST: Final = 64

#: Seconds after which a commit takes no further piece, so that large ones do not add up while
#: other processes wait for their turn.
_LONGEST: Final = 0.05


class _Piece(Generic[T]):
    """Work, and what became of it, to be told once it is committed."""

    def __init__(self, work: Callable[[Connection], T]) -> None:
        self.future: Future[T] = Future()
        self._work = work
        self._result: T
        self._error: BaseException | None = None

    def run(self, connection: Connection) -> None:
        """
        Do the work in a savepoint.

        Raises:
            BaseException: It failed, and SQLite has undone the whole transaction for it.
        """
        driver: Any = connection.connection.dbapi_connection
        driver.execute("SAVEPOINT piece")  # SQLAlchemy's own costs more than an insert
        try:
            self._result = self._work(connection)
            driver.execute("RELEASE piece")
        except BaseException as error:
            if not driver.in_transaction:
                raise
            driver.execute("ROLLBACK TO piece")
            driver.execute("RELEASE piece")
            self._error = error
            if isinstance(error, DBAPIError) and (explained := explain(error)):
                explained.__cause__ = error
                self._error = explained

    def tell(self) -> None:
        """Let the caller go on: all is on the disk."""
        if self._error is None:
            self.future.set_result(self._result)
        else:
            self.future.set_exception(self._error)


class Writer:
    """
    Commits pieces of work in the order in which they came.

    Args:
        engine: Whose transactions write.
        turns: Shared with everybody else who writes.

    Thread safety: all methods may be called from any thread but the writer's own.
    """

    def __init__(self, engine: Engine, turns: Turns) -> None:
        self._engine = engine
        self._turns = turns
        self._pieces: SimpleQueue[_Piece[Any] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._last = False
        self._thread = threading.Thread(target=self._run, name="webhook-writer", daemon=True)
        self._thread.start()

    def write(self, work: Callable[[Connection], T], timeout: float | None) -> T:
        """
        Wait until a piece of work is committed, and return what it returned.

        Raises:
            StoreTimeout: Not within so many seconds. Where it had not begun, it never will.
            StoreError: It could not be committed.
        """
        piece = _Piece(work)
        with self._lock:
            if self._closed:
                raise StoreError("the store was closed meanwhile. Hint: close it after its users")
            self._pieces.put(piece)
        try:
            return piece.future.result(timeout)
        except TimeoutError:
            if piece.future.done():
                return piece.future.result()  # just now; or the work's own TimeoutError
            begun = not piece.future.cancel()
            raise StoreTimeout(
                f"not committed in {timeout:.3g} s. Hint: the disk is slow, or others write",
                maybe_committed=begun,
            ) from None

    def close(self) -> None:
        """Commit what was handed in, and end the thread."""
        with self._lock:
            self._closed = True
            self._pieces.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._pieces.get()) is not None:
            self._commit(first)
            del first  # the thread may now sleep for long; a body must not stay in memory
            if self._last:
                return

    def _commit(self, first: _Piece[Any]) -> None:
        begun: list[_Piece[Any]] = []
        committing = False
        try:
            with self._turns.take(), self._engine.connect() as connection:
                try:
                    transaction = connection.begin()
                    for piece in self._queued(first):
                        if piece.future.set_running_or_notify_cancel():
                            begun.append(piece)
                            piece.run(connection)
                    committing = True
                    transaction.commit()
                except BaseException:
                    connection.invalidate()  # whatever state it is in: the next one is fresh
                    raise
        except BaseException as error:
            if not begun and first.future.set_running_or_notify_cancel():
                begun.append(first)
            for piece in begun:
                piece.future.set_exception(_failure(error, committing))
        else:
            for piece in begun:
                piece.tell()

    def _queued(self, first: _Piece[Any]) -> Iterator[_Piece[Any]]:
        """Yield what one commit may take, in the order of arrival."""
        yield first
        until = time.monotonic() + _LONGEST
        for _ in range(MOST - 1):
            if time.monotonic() > until:
                return
            try:
                piece = self._pieces.get_nowait()
            except Empty:
                return
            if piece is None:
                self._last = True
                return
            yield piece


def _failure(error: BaseException, committing: bool) -> StoreError:
    """Return one of its own for each caller, who will add a traceback to it."""
    failure: StoreError | None = None
    if isinstance(error, StoreError):
        failure = type(error)(error.problem)
    elif isinstance(error, DBAPIError):
        failure = explain(error)
    if failure is None:
        failure = StoreError(f"the transaction failed: {error!r}")
    failure.maybe_committed = committing and maybe_committed(error)
    failure.__cause__ = error
    return failure
