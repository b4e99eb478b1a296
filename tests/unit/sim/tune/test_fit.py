"""What a service is like is found again in the log that it wrote."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from gunicorn_admission.classify import Classifier
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings import Settings
from gunicorn_admission.sim.tune.access_log import read_logs
from gunicorn_admission.sim.tune.capacity import throughput
from gunicorn_admission.sim.tune.fit import fit, misfit
from gunicorn_admission.sim.tune.windows import Traffic, observe, quantile
from tests.access_logs import COMBINED, START, Line, served, written

OVER = ((60, 50), (60, 250), (60, 380), (30, 550), (60, 200))


def traffic(folder: Path, lines: Iterable[Line], atom: str = "L", status: int = 200) -> Traffic:
    log = folder / "access.log"
    format = f"{COMBINED} %({atom})s"
    log.write_text(written(lines, format, status))
    return observe(read_logs([log], Classifier(Settings()), format=format))


def test_capacity_is_found_where_it_was_reached(tmp_path: Path) -> None:
    found = fit(traffic(tmp_path, served(OVER, connections=8, mean=0.020)))
    assert found.capacity.known
    assert found.capacity.connections == 8
    assert found.capacity.contention <= 0.005
    assert found.mean == pytest.approx(0.020, rel=0.03)
    assert found.sigma == pytest.approx(0.3, abs=0.03)
    assert found.per_second == pytest.approx(400, rel=0.03)


def test_contention_is_found(tmp_path: Path) -> None:
    lines = served(
        ((60, 100), (60, 250), (60, 350), (60, 420), (30, 600), (60, 100)),
        connections=10, mean=0.020, contention=0.02, threads=24,
    )  # fmt: skip
    found = fit(traffic(tmp_path, lines))
    capacity = found.capacity
    assert capacity.known
    # What matters is what is worked on with many inside, and that more would be possible.
    assert throughput(24.0, capacity.connections, capacity.contention) == pytest.approx(
        throughput(24.0, 10, 0.02), rel=0.07
    )
    assert 8 <= capacity.connections <= 11
    assert capacity.contention > 0


def test_a_service_that_was_never_busy_hides_its_capacity(tmp_path: Path) -> None:
    found = fit(traffic(tmp_path, served(((120, 60),), connections=8)))
    assert not found.capacity.known
    assert found.mean == pytest.approx(0.020, rel=0.03)
    given = fit(traffic(tmp_path, served(((120, 60),), connections=8)), connections=8)
    assert given.capacity.known
    assert given.capacity.connections == 8


def test_slow_without_load_is_no_capacity(tmp_path: Path) -> None:
    slow = served(((60, 40),), connections=100, mean=0.2, seed=2)
    later = ((end + 60, took, path) for end, took, path in slow)
    lines = [*served(((60, 200),), connections=100), *later]
    found = fit(traffic(tmp_path, sorted(lines))).capacity
    assert not found.known
    assert found.slow > 0.3


def test_classes_have_times_of_their_own(tmp_path: Path) -> None:
    fast = served(((60, 100),), connections=100, paths=("/fast",))
    slow = served(((60, 10),), connections=100, mean=0.3, paths=("/slow",), seed=2)
    seen = traffic(tmp_path, sorted([*fast, *slow]))
    means = dict(zip((one.partition for one in seen.classes), fit(seen).means, strict=True))
    assert means == pytest.approx({"/fast": 0.020, "/slow": 0.3}, rel=0.1)


def test_small_classes_are_put_together(tmp_path: Path) -> None:
    paths = tuple(f"/{letter}" for letter in "abcdefghijklmnopqrst")
    seen = traffic(tmp_path, served(((30, 200),), paths=paths))
    assert len(seen.classes) == 13
    assert seen.classes[-1].partition == "(other)"
    assert sum(window.arrivals.total() for window in seen.windows) == seen.requests


def test_more_classes_than_endpoints_are_told_apart(tmp_path: Path) -> None:
    lines = [(START + place / 50, 0.02, f"/c{place % 200}") for place in range(2000)]
    names = [one.partition for one in traffic(tmp_path, lines).classes]
    assert names.count("(other)") == 1
    assert len(names) == len(set(names)) == 13


def test_requests_that_take_no_time_take_a_little(tmp_path: Path) -> None:
    lines = [(START + place / 50, 0.0, "/") for place in range(300)]
    assert fit(traffic(tmp_path, lines)).mean == pytest.approx(1e-6)


def test_windows_add_up(tmp_path: Path) -> None:
    lines = list(served(((20, 100),)))
    seen = traffic(tmp_path, lines)
    assert sum(window.done for window in seen.windows) == len(lines) == seen.requests
    spent = sum(took for _, took, _ in lines)
    assert sum(w.busy for w in seen.windows) * seen.width == pytest.approx(spent, rel=1e-3)


def test_refusals_come_and_do_no_work(tmp_path: Path) -> None:
    seen = traffic(tmp_path, served(((20, 100),)), status=503)
    assert sum(window.arrivals.total() for window in seen.windows) == seen.requests
    with pytest.raises(ConfigError, match="at least 30"):
        fit(seen)


@pytest.mark.parametrize("burst", [1, 5])
def test_bursts_are_seen(burst: int, tmp_path: Path) -> None:
    random = Random(1)
    at, lines = START, []
    while at < START + 300:
        at += random.expovariate(20)
        lines += [(at + 0.001, 0.001, "/")] * burst
    assert traffic(tmp_path, lines).dispersion == pytest.approx(burst, rel=0.25)


def test_a_rate_that_drifts_is_no_burst(tmp_path: Path) -> None:
    rates = [(1.0, 20 + 2 * second) for second in range(100)]
    assert traffic(tmp_path, served(rates, connections=99)).dispersion < 1.4


@pytest.mark.parametrize(("atom", "width"), [("M", 2.0), ("T", 5.0)])
def test_what_a_coarse_unit_cuts_off_is_spread(atom: str, width: float, tmp_path: Path) -> None:
    lines = list(served(((60, 100),), connections=100, mean=0.020))
    seen = traffic(tmp_path, lines, atom)
    step = {"M": 0.001, "T": 1.0}[atom]
    real = sum(took for _, took, _ in lines) / len(lines)
    assert abs(fit(seen).mean - real) < 0.6 * step
    assert seen.width >= width


def test_shape_of_the_service_times(tmp_path: Path) -> None:
    assert misfit(traffic(tmp_path, served(((60, 100),), connections=100))) < 0.05
    random = Random(1)
    both = [(START + second / 50, random.choice([0.001, 1.0]), "/") for second in range(3000)]
    assert misfit(traffic(tmp_path, both)) > 0.2


def test_throughput() -> None:
    assert throughput(0.1, 4, 0.0) == pytest.approx(0.1, rel=1e-3)
    assert throughput(60.0, 4, 0.0) == pytest.approx(4)
    assert throughput(200.0, 4, 0.01) == pytest.approx(4 / (1 + 0.01 * 196))
    assert throughput(149.0, 4, 0.01) == pytest.approx(throughput(151.0, 4, 0.01), rel=0.02)
    values = [throughput(float(busy), 8, 0.0) for busy in range(1, 20)]
    assert values == sorted(values)


def test_quantile() -> None:
    assert quantile([], 0.5) == 0
    assert quantile([3, 1, 2], 0.5) == 2
    assert math.isclose(quantile(range(100), 0.99), 99)
