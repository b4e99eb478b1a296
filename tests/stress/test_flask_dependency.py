"""A bulkhead under many threads: never more than its cap, and nothing left at the end."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator

import pytest

from flask_ext import Admission
from gunicorn_admission.errors import Rejected

pytestmark = pytest.mark.stress

THREADS, CALLS, CAP = 8, 400, 3


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """Switch threads far more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_cap_and_books() -> None:
    admission = Admission()
    database = admission.dependency("db", cap=CAP, timeout="5ms")
    inside: set[int] = set()  # threads that are in the bulkhead
    most: list[int] = []
    served: list[int] = []
    refused: list[int] = []

    @database
    def query() -> None:
        inside.add(threading.get_ident())
        most.append(len(inside))

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(CALLS):
            try:
                with database:
                    for _ in range(chance.randrange(3)):
                        query()  # again in the same thread: the same slot
                    inside.discard(threading.get_ident())
                    if chance.random() < 0.2:
                        raise ValueError("a bug")
                served.append(1)
            except Rejected:
                refused.append(1)
            except ValueError:
                served.append(1)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = admission.statistics().dependencies["db"]
    assert max(most) <= CAP
    assert (numbers.inflight, numbers.waiting, numbers.leaked, numbers.released_twice) == (
        (0, 0, 0, 0)
    )  # fmt: skip
    assert numbers.granted == len(served)
    assert numbers.shed_total == len(refused)
    assert len(served) + len(refused) == THREADS * CALLS
