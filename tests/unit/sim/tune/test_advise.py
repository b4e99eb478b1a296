"""From a fit to a recommendation, and how much that is worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext

import pytest
from attrs import evolve

from gunicorn_admission.classify import Classifier
from gunicorn_admission.core.types import Priority
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings import Settings
from gunicorn_admission.sim.figures import Figures, figures
from gunicorn_admission.sim.run import simulate
from gunicorn_admission.sim.tune import replay
from gunicorn_admission.sim.tune.access_log import AccessLog, read_logs
from gunicorn_admission.sim.tune.advise import Advice, Row, advise, choose
from gunicorn_admission.sim.tune.candidates import Candidate, candidates
from gunicorn_admission.sim.tune.certainty import certainty
from gunicorn_admission.sim.tune.fit import Fit, fit
from gunicorn_admission.sim.tune.replay import OVERLOAD, Deployment, busiest, scenarios
from gunicorn_admission.sim.tune.windows import Traffic, Window, observe
from tests.access_logs import START, served, written
from tests.simulating import scenario

DEPLOYMENT = Deployment(threads=16, workers=1, patience=5.0)
OVER = ((40, 50), (20, 190), (10, 300), (30, 60))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> AccessLog:
    path = tmp_path_factory.mktemp("logs") / "access.log"
    paths = ("/orders", "/items")
    path.write_text(written(served(OVER, connections=4, threads=16, paths=paths)))
    return read_logs([path], Classifier(Settings()))


@pytest.fixture(scope="module", autouse=True)
def short() -> Iterator[None]:
    """Replay little, so that it takes little time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay, "_ARRIVALS", 400.0)
        patch.setattr(replay, "_LONG_ENOUGH", 4.0)
        yield


@pytest.fixture(scope="module")
def traffic(log: AccessLog) -> Traffic:
    return observe(log)


@pytest.fixture(scope="module")
def whole(traffic: Traffic) -> Fit:
    return fit(traffic)


@pytest.fixture(scope="module")
def advice(traffic: Traffic) -> Advice:
    return advise(traffic, DEPLOYMENT, (1, 2))


def test_the_busiest_stretch(traffic: Traffic, whole: Fit) -> None:
    stretch = busiest(traffic, whole.means)
    begin, end = stretch.start - START, stretch.start + stretch.seconds - START
    assert 38 <= begin < end <= 72
    assert stretch.arrivals / stretch.seconds > 150


def test_loads(traffic: Traffic, whole: Fit) -> None:
    stretch = busiest(traffic, whole.means)
    loads = scenarios(traffic, whole, stretch, DEPLOYMENT)
    logged, over = loads["logged"], loads["overload"]
    (service,) = logged.dependencies
    assert service.capacity == pytest.approx(200, rel=0.03)
    warm, *rest = logged.phases
    assert sum(p.rate * p.seconds for p in rest) == pytest.approx(stretch.arrivals, rel=0.01)
    assert warm.rate < stretch.arrivals / stretch.seconds
    _, *rest = over.phases
    offered = sum(p.rate * p.seconds for p in rest) / sum(p.seconds for p in rest)
    assert offered == pytest.approx(OVERLOAD * 200, rel=0.1)
    assert over.counts == {"stretch"}


def test_the_replay_is_like_the_log(traffic: Traffic, whole: Fit) -> None:
    loads = scenarios(traffic, whole, busiest(traffic, whole.means), DEPLOYMENT)
    stretch = busiest(traffic, whole.means)
    found = figures(simulate(loads["logged"], "none"))
    assert found.goodput == pytest.approx(stretch.arrivals / stretch.seconds, rel=0.15)
    assert set(found.classes) == {"/orders", "/items"}


def test_rules_come_along(log: AccessLog) -> None:
    settings = Settings(
        routes={"/orders": {"priority": "high", "deadline": "3s"}, "/items": "low"},
        partition_by="none",
    )
    kinds = Classifier(settings)
    classes = tuple(kinds.classify("GET", one.partition) for one in log.classes)
    seen = observe(evolve(log, classes=classes))
    deployment = evolve(DEPLOYMENT, settings=settings)
    chosen = scenarios(seen, fit(seen), busiest(seen, fit(seen).means), deployment)["logged"]
    assert {kind.name for kind in chosen.classes} == {"(all) high", "(all) low"}
    assert set(chosen.priorities()) == {Priority.HIGH, Priority.LOW}
    chosen.admission().derive(16, waiting_holds_thread=False)


def test_candidates(whole: Fit) -> None:
    names = [one.name for one in candidates(whole, DEPLOYMENT)]
    assert names == [
        "no admission", "the defaults", "max_wait=100ms", "max_wait=2s",
        "limit=4", "limit=6", "limit=8", "limit=16, all threads",
    ]  # fmt: skip
    usable = {one.name for one in candidates(whole, DEPLOYMENT) if one.usable}
    assert "no admission" not in usable
    assert "limit=16, all threads" not in usable


def test_no_number_is_tried_where_none_is_known(whole: Fit) -> None:
    unknown = evolve(whole, capacity=evolve(whole.capacity, known=False))
    assert not [o for o in candidates(unknown, DEPLOYMENT) if o.limit.startswith("fixed")]


def test_more_threads_are_tried_where_there_are_too_few(whole: Fit) -> None:
    few = evolve(DEPLOYMENT, threads=5)
    (more,) = (one for one in candidates(whole, few) if one.threads)
    assert more.threads == 10
    assert more.apply(scenario()).threads == 10


def test_what_is_configured_is_tried(whole: Fit) -> None:
    settings = Settings(limit=7, max_wait="50ms", routes={"/orders": "high"}, statsd_prefix="x")
    deployment = evolve(DEPLOYMENT, settings=settings)
    (now,) = (one for one in candidates(whole, deployment) if one.name == "as configured")
    assert now.limit == "fixed:7"
    assert now.settings == {"limit": 7, "max_wait": 0.05}


def test_advice(advice: Advice) -> None:
    rows = {row.candidate.name: row.loads for row in advice.rows}
    without, ours = rows["no admission"]["overload"], rows["the defaults"]["overload"]
    assert without.p99
    assert ours.p99
    assert without.p99 > 2 * ours.p99
    assert without.refused == 0 < ours.refused
    assert advice.chosen.candidate.usable
    assert 0 <= advice.agreement <= 1
    assert [row.loads["logged"].seeds for row in advice.rows] == [2] * len(advice.rows)


def test_the_same_seeds_give_the_same_advice(traffic: Traffic, advice: Advice) -> None:
    runs: list[int] = []

    def watch(count: int) -> AbstractContextManager[object]:
        runs.append(count)
        return nullcontext(lambda: runs.append(1))

    again = advise(traffic, DEPLOYMENT, (1, 2), processes=2, watch=watch)  # type: ignore[arg-type]
    assert again.rows == advice.rows
    assert again.fits == advice.fits
    assert sum(runs[1:]) == runs[0] == 2 * 2 * len(advice.rows)


def test_settings_that_cannot_work_are_found_before_the_work(traffic: Traffic) -> None:
    deployment = evolve(DEPLOYMENT, settings=Settings(min_limit=99))
    with pytest.raises(ConfigError, match="min_limit"):
        advise(traffic, deployment, (1,), watch=lambda runs: pytest.fail("it ran"))


def test_a_log_of_a_moment(log: AccessLog) -> None:
    seen = observe(log)
    first = max(seen.windows, key=lambda window: window.done)
    empty = Window(first.start + seen.width)
    few = evolve(seen, windows=(first, empty))
    assert first.done >= 30 > empty.done
    assert len(advise(few, DEPLOYMENT, range(1, 7)).fits) == 6


def row(name: str, served: float, over: float, p99: float, base: Figures) -> Row:
    figures = evolve(base, seeds=1, spread=0.0)
    loads: Mapping[str, Figures] = {
        "logged": evolve(figures, success=served),
        "overload": evolve(figures, goodput=over, p99=p99),
    }
    limit = {"no admission": "none", "all threads": "pool"}.get(name, "adaptive")
    return Row(candidate=Candidate(name=name, limit=limit), loads=loads)


@pytest.mark.parametrize(
    ("rows", "chosen"),
    [
        ([("the defaults", 1, 98, 0.1), ("other", 1, 100, 0.09)], "the defaults"),
        ([("the defaults", 1, 98, 0.1), ("other", 1, 100, 0.05)], "other"),
        ([("the defaults", 1, 90, 0.1), ("other", 1, 100, 0.2)], "other"),
        ([("the defaults", 0.9, 100, 0.1), ("other", 1, 95, 0.2)], "other"),
        ([("the defaults", 0.7, 100, 0.1), ("other", 0.8, 98, 0.2)], "the defaults"),
        ([("the defaults", 1, 99, 0.1), ("as configured", 1, 98, 0.1)], "as configured"),
        ([("the defaults", 1, 90, 0.1), ("no admission", 1, 200, 0.1)], "the defaults"),
        ([("the defaults", 1, 90, 0.1), ("all threads", 1, 100, 0.1)], "the defaults"),
        ([("the defaults", 0.7, 90, 0.1), ("all threads", 1, 100, 0.1)], "all threads"),
        ([("a", 1, 98, 0.1), ("b", 1, 100, 0.1)], "b"),
    ],
)
def test_the_choice(
    rows: list[tuple[str, float, float, float]], chosen: str, advice: Advice
) -> None:
    base = advice.rows[0].loads["logged"]
    assert choose([row(*one, base) for one in rows]).candidate.name == chosen


def test_doubts(log: AccessLog, traffic: Traffic, advice: Advice) -> None:
    sure = certainty(log, traffic, DEPLOYMENT, advice, threads_given=True)
    assert sure.level == "medium"
    assert any("short time" in words for words in sure.doubts)
    assert any("all 16 threads were taken" in words for words in sure.doubts)
    wide = evolve(DEPLOYMENT, threads=64)
    long = evolve(traffic, span=6000.0)
    assert certainty(log, long, wide, advice, threads_given=True).level == "high"
    unknown = evolve(advice.fit, capacity=evolve(advice.fit.capacity, known=False))
    worse = certainty(log, long, wide, evolve(advice, fit=unknown), threads_given=False)
    assert worse.level == "low"
    assert "does not show what the service can do" in worse.doubts[0]
    assert "number of threads" in worse.doubts[1]
    split = evolve(advice, agreement=0.4)
    assert certainty(log, long, wide, split, threads_given=True).level == "low"
