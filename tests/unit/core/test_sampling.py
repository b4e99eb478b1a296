"""Bounded memories of samples."""

from __future__ import annotations

import pytest

from gunicorn_admission.core.sampling import Baselines, Level, PeakRate, Trial, Use, median
from tests.driving import MS, S


@pytest.mark.parametrize(
    ("values", "expected"), [([3.0], 3.0), ([1.0, 9.0], 9.0), ([5.0, 1.0, 3.0], 3.0)]
)
def test_median(values: list[float], expected: float) -> None:
    assert median(values) == expected


class TestBaselines:
    def fed(self, *values: float, name: str = "a") -> Baselines:
        baselines = Baselines()
        baselines.get(name).pending.extend(values)
        return baselines

    def test_nothing_is_learned_from_too_few(self) -> None:
        baselines = self.fed(1.0, 2.0)
        assert not baselines.learn(True, 3)
        assert baselines.get("a").rtt_ns == 0.0
        baselines.get("a").pending.append(2.0)
        assert baselines.learn(True, 3)
        assert baselines.get("a").rtt_ns == 2.0

    def test_each_sample_is_used_once(self) -> None:
        baselines = self.fed(*[1.0] * 5)
        assert baselines.learn(True, 5)
        assert not baselines.learn(True, 5)

    def test_down_always_and_up_in_quiet_times_only(self) -> None:
        baselines = self.fed(*[100.0] * 5)
        baselines.learn(False, 5)
        a = baselines.get("a")
        a.pending.extend([50.0] * 5)
        baselines.learn(False, 5)
        assert a.rtt_ns == 85.0
        a.pending.extend([185.0] * 5)
        baselines.learn(False, 5)
        assert a.rtt_ns == 85.0
        a.pending.extend([185.0] * 5)
        baselines.learn(True, 5)
        assert a.rtt_ns == 95.0

    def test_only_new_leaves_the_known_alone(self) -> None:
        baselines = self.fed(*[100.0] * 5)
        baselines.learn(True, 5)
        baselines.get("a").pending.extend([50.0] * 5)
        baselines.get("b").pending.extend([7.0] * 5)
        assert baselines.learn(True, 5, only_new=True)
        assert (baselines.get("a").rtt_ns, baselines.get("b").rtt_ns) == (100.0, 7.0)

    def test_one_outlier_does_not_move_it(self) -> None:
        baselines = self.fed(*[300.0] * 20, 1.0)
        baselines.learn(True, 20)
        assert baselines.get("a").rtt_ns == 300.0

    def test_scaling_drops_what_was_seen_before(self) -> None:
        baselines = self.fed(*[100.0] * 5)
        baselines.learn(True, 5)
        baselines.get("a").pending.append(1.0)
        baselines.scale(0.5)
        assert baselines.get("a").rtt_ns == 50.0
        assert not baselines.get("a").pending

    def test_classes_and_samples_are_bounded(self) -> None:
        baselines = Baselines()
        first = baselines.get("0")
        for i in range(100):
            baselines.get(str(i)).pending.extend([1.0] * 200)
        assert baselines.get("0") is not first
        assert len(baselines.get("99").pending) <= 64


class TestPeakRate:
    def test_it_is_the_best_within_its_memory(self) -> None:
        rates = PeakRate(S)
        assert rates.peak() == 0.0
        for now_ms, rate, peak in [
            (0, 5, 5), (100, 9, 9), (200, 3, 9), (300, 4, 9), (1101, 1, 4), (1301, 1, 1),
            (1302, 2, 2),
        ]:  # fmt: skip
            rates.add(now_ms * MS, rate)
            assert rates.peak() == peak

    def test_one_bad_window_does_not_decide(self) -> None:
        rates = PeakRate(S)
        for i in range(9):
            rates.add(i * 100 * MS, 400.0)
        rates.add(900 * MS, 10.0)
        assert rates.peak() == 400.0

    def test_it_keeps_no_more_than_it_may_need(self) -> None:
        rates = PeakRate(S)
        for i in range(10_000):
            rates.add(i * MS, 10_000.0 - i)
        assert len(rates._rates) <= 1001


class TestUse:
    def test_a_peak_counts_once_it_has_done_no_harm_for_a_while(self) -> None:
        use = Use(4.0, 1.5)
        assert use.cap() == 4
        use.observe(0, 20, True, 10.0 * MS)
        use.observe(100 * MS, 2, True, 10.0 * MS)
        assert use.cap() == 4
        use.observe(150 * MS, 2, True, 10.0 * MS)
        assert use.cap() == pytest.approx(30, abs=1)

    def test_a_slow_service_shows_harm_later(self) -> None:
        use = Use(4.0, 1.5)
        use.observe(0, 20, True, 1.0 * S)
        use.observe(1400 * MS, 2, True, 1.0 * S)
        assert use.cap() == 4
        use.observe(1500 * MS, 2, True, 1.0 * S)
        assert use.cap() > 4

    def test_a_peak_before_harm_does_not_count(self) -> None:
        use = Use(4.0, 1.5)
        use.observe(0, 20, True, 10.0 * MS)
        use.observe(100 * MS, 20, False, 10.0 * MS)
        use.observe(1000 * MS, 2, True, 10.0 * MS)
        use.observe(2000 * MS, 2, True, 10.0 * MS)
        assert use.cap() == 4

    def test_what_was_used_long_ago_is_forgotten_slowly(self) -> None:
        use = Use(4.0, 1.5)
        use.observe(0, 20, True, 10.0 * MS)
        use.observe(1 * S, 0, True, 10.0 * MS)
        caps = []
        for i in range(2, 3000):
            use.observe(i * S, 0, True, 10.0 * MS)
            caps.append(use.cap())
        assert caps[10] >= 28  # a quiet dip changes next to nothing
        assert caps[-1] == 4
        assert caps == sorted(caps, reverse=True)


class TestTrial:
    def test_only_what_began_under_its_conditions_counts(self) -> None:
        trial = Trial()
        trial.start(1000)
        for _ in range(20):
            trial.add(9.0, 999, 10)
        assert trial.result(2000) is None
        for _ in range(8):
            trial.add(2.0, 1000, 10)
        assert trial.result(2000) == 2.0

    def test_the_first_to_end_are_not_the_usual_ones(self) -> None:
        trial = Trial()
        trial.start(0)
        for rtt_ns in range(50, 70):
            trial.add(rtt_ns / 100, 0, rtt_ns)
        assert trial.result(70) is None
        for rtt_ns in range(70, 150):
            trial.add(rtt_ns / 100, 0, rtt_ns)
        assert trial.result(250) == 1.0

    def test_the_more_they_differ_the_more_it_wants_to_see(self) -> None:
        trial = Trial()
        trial.start(0)
        for _ in range(8):
            trial.add(0.5, 0, 10)
            trial.add(2.0, 0, 10)
        assert trial.result(100) is None
        for _ in range(100):
            trial.add(0.5, 0, 10)
            trial.add(2.0, 0, 10)
        assert trial.result(100) in (0.5, 2.0)

    def test_starting_again_forgets(self) -> None:
        trial = Trial()
        trial.start(1)
        for _ in range(8):
            trial.add(2.0, 5, 1)
        trial.start(10)
        assert trial.result(100) is None
        trial.stop()
        assert trial.since_ns == -1


class TestLevel:
    def test_a_large_slowdown_shows_at_once(self) -> None:
        level = Level()
        for _ in range(6):
            level.add([1.0] * 20)
        assert level.add([5.0] * 20) == 5.0

    def test_a_small_one_shows_after_several_windows(self) -> None:
        level = Level()
        window = [0.9, 1.0, 1.2, 1.3, 1.6] * 4
        first = level.add(list(window))
        for _ in range(5):
            last = level.add(list(window))
        assert first < last < 1.2
        level.restart()
        assert level.add(list(window)) == first
