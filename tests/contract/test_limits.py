"""
What every concurrency limit must do, published or ours.

To add one, add a line to ``CASES``. What an algorithm does not do by design is written in
its line, with the reason; the tests for it are then not made for that limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gunicorn_admission.core.limits import (
    AdaptiveLimit,
    AIMDLimit,
    FixedLimit,
    Gradient2Limit,
    Limit,
    VegasLimit,
    WindowedLimit,
)
from gunicorn_admission.errors import ConfigError

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000
LARGEST = 64

# Properties that an algorithm may lack by design.
GROWS = "grows"
FALLS_ON_DELAY = "falls on delay"
FALLS_ON_DROPS = "falls on drops"
DROP_NEVER_RAISES = "a drop never raises it"
KNOWS_NO_CLASSES = "knows no classes"


class Case(NamedTuple):
    """
    One limit under test.

    Attributes:
        name: Shown in the test's name.
        build: Makes a fresh one that accepts any bounds from 1 to ``LARGEST``.
        lacks: Property to the reason why the algorithm does not have it.
        comparable_from_ns: RTTs from here on are latency samples that may be compared.
    """

    name: str
    build: Callable[[], Limit]
    lacks: Mapping[str, str] = {}
    comparable_from_ns: Callable[[Limit], int] = lambda limit: 1


NOT_ADAPTIVE = dict.fromkeys(
    (GROWS, FALLS_ON_DELAY, FALLS_ON_DROPS),
    "a fixed limit does not adapt",
)
LOSS_BASED = {FALLS_ON_DELAY: "AIMD acts on drops and timeouts; delay below the timeout is success"}
BLIND_TO_DROPS = dict.fromkeys(
    (FALLS_ON_DROPS, DROP_NEVER_RAISES),
    "published Gradient2 does not look at drops: a fast one is a good sample",
)


def of_vegas(limit: Limit) -> int:
    """A sample below the baseline becomes the baseline and moves nothing, as published."""
    assert isinstance(limit, VegasLimit)
    return limit.baseline_ns


def of_windows(limit: Limit) -> int:
    """Faster requests are not looked at, as published."""
    return 100 * MICROSECOND


CASES = [
    Case(
        "adaptive",
        lambda: AdaptiveLimit(maximum=LARGEST),
        {KNOWS_NO_CLASSES: "each class has a baseline of its own"},
    ),
    Case("fixed", lambda: FixedLimit(20), NOT_ADAPTIVE),
    Case("aimd", lambda: AIMDLimit(20, minimum=1, maximum=LARGEST), LOSS_BASED),
    Case("vegas", lambda: VegasLimit(maximum=LARGEST), {}, of_vegas),
    Case("vegas-smooth", lambda: VegasLimit(maximum=LARGEST, smoothing=0.3), {}, of_vegas),
    Case("gradient2", lambda: Gradient2Limit(minimum=1, maximum=LARGEST), BLIND_TO_DROPS),
    Case(
        "windowed-aimd",
        lambda: WindowedLimit(AIMDLimit(20, minimum=1, maximum=LARGEST)),
        LOSS_BASED,
        of_windows,
    ),
    Case(
        "windowed-gradient2",
        lambda: WindowedLimit(Gradient2Limit(minimum=1, maximum=LARGEST)),
        BLIND_TO_DROPS,
        of_windows,
    ),
    Case(
        "windowed-p90-gradient2",
        lambda: WindowedLimit(Gradient2Limit(minimum=1, maximum=LARGEST), percentile=0.9),
        BLIND_TO_DROPS,
        of_windows,
    ),
]


def every(*properties: str) -> pytest.MarkDecorator:
    """Run for each limit that has these properties."""
    having = [case for case in CASES if not set(properties) & set(case.lacks)]
    return pytest.mark.parametrize("case", having, ids=[case.name for case in having])


class Sample(NamedTuple):
    rtt_ns: int
    inflight: int
    dropped: bool = False
    gap_ns: int = MILLISECOND


class Bounds(NamedTuple):
    minimum: int
    maximum: int


repeatable = settings(deadline=None, derandomize=True, max_examples=100)
decades = st.tuples(st.integers(1, 9_999), st.integers(0, 7))
rtts = decades.map(lambda pair: pair[0] * 10 ** pair[1]) | st.integers(10_000_000, 40_000_000)
gaps = st.sampled_from([0, MILLISECOND, 40 * MILLISECOND, SECOND])
samples = st.builds(Sample, rtts, st.integers(0, LARGEST), st.booleans(), gaps)
histories = st.lists(samples, max_size=80)
bounds = st.tuples(st.integers(1, LARGEST), st.integers(1, LARGEST)).map(
    lambda pair: Bounds(min(pair), max(pair))
)


class Drive:
    """A limit and its clock."""

    def __init__(self, case: Case, history: Iterable[Sample] = ()) -> None:
        self.limit = case.build()
        self.limit.set_bounds(1, LARGEST)
        self.now_ns = SECOND
        for sample in history:
            self.feed(sample)

    def feed(self, sample: Sample, partition: str | None = None) -> None:
        self.now_ns += sample.gap_ns
        self.limit.on_sample(
            now_ns=self.now_ns,
            rtt_ns=sample.rtt_ns,
            inflight=sample.inflight,
            dropped=sample.dropped,
            partition=partition,
        )

    def saturate(self, rtt_ns: int, until: Callable[[int], bool], *, dropped: bool = False) -> bool:
        """Keep every slot busy for at most a minute; whether ``until`` became true."""
        end_ns = self.now_ns + 60 * SECOND
        while self.now_ns < end_ns and not until(self.limit.limit):
            now = self.limit.limit
            self.feed(Sample(rtt_ns, now, dropped, gap_ns=rtt_ns // now))
        return until(self.limit.limit)

    @property
    def state(self) -> tuple[int, float]:
        return self.limit.limit, self.limit.estimate


@every()
def test_is_a_limit(case: Case) -> None:
    limit = case.build()
    assert isinstance(limit, Limit)
    assert type(limit.limit) is int
    assert type(limit.estimate) is float


@every()
@repeatable
@given(steps=st.lists(samples | bounds, max_size=80))
def test_stays_within_its_bounds_after_every_step(case: Case, steps: list[Sample | Bounds]) -> None:
    drive, at = Drive(case), Bounds(1, LARGEST)
    for step in steps:
        if isinstance(step, Bounds):
            drive.limit.set_bounds(*step)
            at = step
        else:
            drive.feed(step)
        assert 1 <= at.minimum <= drive.limit.limit <= at.maximum
        assert math.isfinite(drive.limit.estimate)


@every()
def test_refuses_bounds_that_cannot_work(case: Case) -> None:
    limit = case.build()
    before = limit.limit
    for minimum, maximum in [(0, 4), (5, 4), (-1, -1)]:
        with pytest.raises(ConfigError):
            limit.set_bounds(minimum, maximum)
    assert limit.limit == before


@every(GROWS)
@pytest.mark.parametrize("rtt_ns", [MILLISECOND, 20 * MILLISECOND], ids=["1ms", "20ms"])
def test_leaves_a_limit_of_one(case: Case, rtt_ns: int) -> None:
    # A step of ceil(log10(1)) = 0 stays at 1 for ever; a threshold of 100 ms in place of
    # 100 us takes 1 ms for no sample. Both are faults that others shipped.
    drive = Drive(case)
    drive.limit.set_bounds(1, 1)
    assert drive.limit.limit == 1
    drive.limit.set_bounds(1, LARGEST)
    assert drive.saturate(rtt_ns, until=lambda now: now >= 4)


@every(FALLS_ON_DELAY)
def test_falls_when_requests_get_slow(case: Case) -> None:
    drive = Drive(case)
    drive.saturate(20 * MILLISECOND, until=lambda now: now == LARGEST)
    start = drive.limit.limit
    assert drive.saturate(400 * MILLISECOND, until=lambda now: now < start)


@every(FALLS_ON_DROPS)
def test_falls_when_nothing_but_drops_comes(case: Case) -> None:
    drive = Drive(case)
    start = drive.limit.limit
    assert drive.saturate(20 * MILLISECOND, until=lambda now: now < start, dropped=True)


@every(DROP_NEVER_RAISES)
@repeatable
@given(history=histories, drops=st.lists(samples, min_size=1, max_size=20))
def test_drop_never_raises_it(case: Case, history: list[Sample], drops: list[Sample]) -> None:
    drive = Drive(case, history)
    for drop in drops:
        before = drive.state
        drive.feed(drop._replace(dropped=True))
        assert drive.state <= before


@every()
@repeatable
@given(history=histories, last=samples, longer_ns=rtts)
def test_higher_rtt_never_gives_a_higher_next_limit(
    case: Case, history: list[Sample], last: Sample, longer_ns: int
) -> None:
    fast, slow = Drive(case, history), Drive(case, history)
    shorter_ns = max(last.rtt_ns, case.comparable_from_ns(fast.limit))
    assume(longer_ns > shorter_ns)
    # Ten seconds on, so that whatever window was open ends with it.
    last = last._replace(dropped=False, gap_ns=10 * SECOND)
    fast.feed(last._replace(rtt_ns=shorter_ns))
    slow.feed(last._replace(rtt_ns=longer_ns))
    assert slow.limit.limit <= fast.limit.limit
    assert slow.limit.estimate <= fast.limit.estimate * (1 + 1e-12)


@every()
@repeatable
@given(history=histories, at=st.integers(0, 80), rtt_ns=st.integers(-SECOND, 0), later=histories)
def test_rtt_of_zero_or_less_is_no_sample(
    case: Case, history: list[Sample], at: int, rtt_ns: int, later: list[Sample]
) -> None:
    with_it, without = Drive(case, history[:at]), Drive(case, history[:at])
    with_it.feed(Sample(rtt_ns, LARGEST, gap_ns=0))
    assert with_it.state == without.state
    for sample in later:
        with_it.feed(sample)
        without.feed(sample)
        assert with_it.state == without.state


@every()
@repeatable
@given(history=histories, rtt_ns=st.integers(-SECOND, 0))
def test_drop_without_rtt_neither_raises_nor_grows(
    case: Case, history: list[Sample], rtt_ns: int
) -> None:
    drive = Drive(case, history)
    before = drive.state
    drive.feed(Sample(rtt_ns, LARGEST, dropped=True))
    assert drive.state <= before


@every(KNOWS_NO_CLASSES)
@repeatable
@given(history=histories)
def test_partition_makes_no_difference(case: Case, history: list[Sample]) -> None:
    named, unnamed = Drive(case), Drive(case)
    for number, sample in enumerate(history):
        named.feed(sample, partition=f"class-{number % 3}")
        unnamed.feed(sample)
        assert named.state == unnamed.state


@every()
@repeatable
@given(history=histories)
def test_same_samples_give_the_same_limit(case: Case, history: list[Sample]) -> None:
    assert Drive(case, history).state == Drive(case, history).state


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_it_lacks_is_written_with_a_reason(case: Case) -> None:
    known = {GROWS, FALLS_ON_DELAY, FALLS_ON_DROPS, DROP_NEVER_RAISES, KNOWS_NO_CLASSES}
    assert set(case.lacks) <= known
    assert all(case.lacks.values())
