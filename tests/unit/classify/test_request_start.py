"""X-Request-Start: three units, clocks that differ, and values that nobody should believe."""

from __future__ import annotations

import pytest

from gunicorn_admission.classify.request_start import RequestStart

NOW = 1_900_000_000.0


class Clock:
    """Seconds since the epoch, moved by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def start(clock: Clock) -> RequestStart:
    made = RequestStart(clock)
    assert made.age(header(NOW)) == 0.0  # the clocks agree, and somebody did not wait
    return made


def header(seconds: float) -> dict[str, str]:
    return {"HTTP_X_REQUEST_START": f"t={seconds:.3f}"}


@pytest.mark.parametrize(
    "text",
    ["t=1899999999.750", "1899999999.750", "t=1899999999750", "1899999999750",
     "t=1899999999750000", "1899999999750000"],
)  # fmt: skip
def test_all_spellings_say_the_same(start: RequestStart, text: str) -> None:
    assert start.age({"HTTP_X_REQUEST_START": text}) == pytest.approx(0.25)
    assert start.age({"HTTP_X_QUEUE_START": text}) == pytest.approx(0.25)


@pytest.mark.parametrize(
    "text", ["", "t=", "soon", "t=-5", "nan", "inf", "t=1e9", "1" * 400, "t=1899999999.750, t=1"]
)
def test_what_is_no_time_is_no_wait(start: RequestStart, text: str) -> None:
    assert start.age({"HTTP_X_REQUEST_START": text}) == 0.0


def test_far_future_and_long_past_are_not_believed(start: RequestStart) -> None:
    assert start.age(header(NOW + 2)) == 0.0
    assert start.age(header(NOW - 301)) == 0.0
    assert start.age({}) == 0.0


@pytest.mark.parametrize("skew", [-0.9, 4.0, 200.0])
def test_clocks_that_differ_are_no_queue(clock: Clock, skew: float) -> None:
    start = RequestStart(clock)
    assert start.age(header(NOW - skew)) == 0.0
    assert start.age(header(NOW - skew - 0.5)) == pytest.approx(0.5)
    assert start.age(header(NOW - skew)) == pytest.approx(0.0)


def test_a_clock_that_is_set_right_is_learnt(clock: Clock) -> None:
    start = RequestStart(clock)
    start.age(header(NOW))
    for _ in range(3):
        clock.now += 61
        start.age(header(clock.now - 10))  # the proxy's clock was put back by 10 s
    assert start.age(header(clock.now - 10.5)) == pytest.approx(0.5)


def test_the_gate_counts_it_only_where_it_is_trusted() -> None:
    from gunicorn_admission.wsgi import AdmissionMiddleware

    def app(environ: dict[str, object], start_response: object) -> list[bytes]:
        delays.append(environ["gunicorn_admission.queue_delay"])
        start_response("200 OK", [])  # type: ignore[operator]
        return [b""]

    delays: list[object] = []
    import time

    for trusted in (True, False):
        gate = AdmissionMiddleware(app, threads=4, trust_request_start=trusted)  # type: ignore[arg-type]
        for waited in (0.0, 3.0):
            started = {"HTTP_X_REQUEST_START": f"{time.time() - waited:.6f}"}
            gate({"REQUEST_METHOD": "GET", "PATH_INFO": "/x", **started}, lambda *_: None)
    first, late, *untrusted = delays
    assert isinstance(first, float) and isinstance(late, float)
    assert late - first > 2.5
    assert all(isinstance(delay, float) and delay < 1.0 for delay in untrusted)
