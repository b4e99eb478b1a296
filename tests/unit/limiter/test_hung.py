"""Which requests hang: by an age that is given, or by what is usual for their class."""

from __future__ import annotations

from gunicorn_admission.core.policy import SECOND
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.limiter.hung import hung, stuck
from gunicorn_admission.settings import Settings
from gunicorn_admission.testing import FakeClock


def test_requests_hang_from_an_age_on_unless_their_answer_has_begun() -> None:
    clock = FakeClock()
    limiter = Limiter(Settings(threads=8, stall_after="1h"), clock=clock)
    old = [limiter.acquire(partition=name) for name in ("/a", "/b", "/b")]
    clock.advance(5)
    young = limiter.acquire(partition="/a")
    old[1]._ticket.sampled_at_ns = clock()
    clock.advance(5)
    assert hung(limiter, 10 * SECOND) == [old[0]._ticket, old[2]._ticket]
    assert young._ticket in hung(limiter, 5 * SECOND)
    old[0].release()
    assert hung(limiter, 10 * SECOND) == [old[2]._ticket]
    assert hung(limiter, 11 * SECOND) == stuck(limiter) == []


def test_the_stall_age_follows_the_class() -> None:
    clock = FakeClock()
    limiter = Limiter(Settings(threads=8, stall_after="5s"), clock=clock)
    for _ in range(3):
        with limiter.acquire(partition="/known"):
            clock.advance(0.01)
    known, unknown = (limiter.acquire(partition=name) for name in ("/known", "/unknown"))
    clock.advance(5)
    assert stuck(limiter) == [(known._ticket, 5 * SECOND)]
    clock.advance(10)
    assert stuck(limiter) == [(known._ticket, 15 * SECOND), (unknown._ticket, 15 * SECOND)]
    known.release()
    unknown.release()
