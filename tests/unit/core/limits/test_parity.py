"""Every row of the published library's own outputs, floats to the last bit."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gunicorn_admission.core.limits import Gradient2Limit, VegasLimit, WindowedLimit

DATA = Path(__file__).parents[3] / "data" / "netflix"
MILLISECOND = 1_000_000

Row = dict[str, str]


def rows(name: str, **where: str) -> Iterator[Row]:
    with gzip.open(DATA / f"{name}.csv.gz", "rt", encoding="ascii", newline="") as file:
        for row in csv.DictReader(file):
            if all(row[column] == value for column, value in where.items()):
                yield row


def state(limit: Gradient2Limit | VegasLimit) -> tuple[int, float, float]:
    return limit.limit, limit.estimate, limit.baseline_ns


def published(row: Row) -> tuple[int, float, float]:
    return int(row["limit"]), float(row["estimated_limit"]), float(row["base_rtt_ns"])


PER_SAMPLE: list[tuple[str, str, Callable[[], Gradient2Limit | VegasLimit]]] = [
    ("gradient2-stable20", "saturated", Gradient2Limit),
    ("gradient2-step100", "saturated", Gradient2Limit),
    ("gradient2-variants", "inflight15_min4", lambda: Gradient2Limit(minimum=4)),
    ("gradient2-variants", "applimited_third", Gradient2Limit),
    (
        "gradient2-variants",
        "saturated_min1_init4_max16",
        lambda: Gradient2Limit(4, minimum=1, maximum=16),
    ),
    ("vegas-stable20", "saturated", lambda: VegasLimit(jitter=lambda: 0.75)),
    ("vegas-step100", "saturated", lambda: VegasLimit(jitter=lambda: 0.75)),
]


@pytest.mark.parametrize(
    ("name", "mode", "build"), PER_SAMPLE, ids=[f"{name}-{mode}" for name, mode, _ in PER_SAMPLE]
)
def test_every_sample_leaves_the_published_state(
    name: str, mode: str, build: Callable[[], Gradient2Limit | VegasLimit]
) -> None:
    limit = build()
    count = 0
    for row in rows(name, mode=mode):
        if mode == "saturated":
            assert int(row["inflight"]) == limit.limit, row
        limit.on_sample(
            now_ns=count,
            rtt_ns=int(row["rtt_ns"]),
            inflight=int(row["inflight"]),
            dropped=row["did_drop"] == "1",
        )
        assert state(limit) == published(row), row
        count += 1
    assert count == 2500


@pytest.mark.parametrize(
    ("algorithm", "gap_ms", "percentile"),
    [
        ("windowed_avg_gradient2", 5, None),
        ("windowed_p90_gradient2", 5, 0.9),
        ("windowed_avg_gradient2_lowrate", 150, None),
    ],
)
def test_windows_close_and_sum_up_as_published(
    algorithm: str, gap_ms: int, percentile: float | None
) -> None:
    inner = Gradient2Limit()
    limit = WindowedLimit(inner, percentile=percentile)
    expected = {int(row["i"]): row for row in rows("windowed", algo=algorithm)}
    assert max(expected) == 5950
    for i in range(6000):
        rtt_ns = (100 if 2000 <= i < 4000 else 20 + i % 7) * MILLISECOND
        start_ns = 1_000_000_000 + i * gap_ms * MILLISECOND
        before = limit.limit
        limit.on_sample(now_ns=start_ns + rtt_ns, rtt_ns=rtt_ns, inflight=before, dropped=False)
        if row := expected.get(i):
            assert (start_ns, rtt_ns) == (int(row["start_ns"]), int(row["rtt_ns"]))
            assert state(inner) == published(row), row
            assert (limit.limit, limit.estimate) == (inner.limit, inner.estimate)
        else:
            assert limit.limit == before, f"the library's limit did not change at {i}"


def test_no_file_is_left_unread() -> None:
    read = {name for name, _, _ in PER_SAMPLE} | {"windowed"}
    assert {path.name.removesuffix(".csv.gz") for path in DATA.glob("*.csv.gz")} == read
