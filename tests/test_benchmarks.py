"""The benchmarks run and measure what they say; how fast anything is, is not asserted here."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from benchmarks import plots
from benchmarks import run as short
from benchmarks.comparison import Comparison, interleaved, spread
from benchmarks.overload import goals, table
from benchmarks.overload.figures import Figures, load
from benchmarks.overload.loadgen import Generator
from benchmarks.overload.plan import Kind, Phase, Plan, arrivals
from benchmarks.overload.records import Generated, Outcome, Record, read
from benchmarks.overload.scenarios import Scenario
from benchmarks.overload.summary import Handled, Run, Sample
from gunicorn_admission.sim.library import every

ROOT = Path(__file__).resolve().parent.parent


def run(module: str, *options: str) -> str:
    command = [sys.executable, "-m", module, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_hot_path_prints_ratios() -> None:
    said = run("benchmarks.hot_path", "--rounds", "1", "--seconds", "0.002")
    for what in (
        "acquire + release, 64 threads",
        "hand-off, 16 waiters, CPU",
        "memory a limiter, adaptive",
    ):
        assert f"| {what}" in said


def test_growth_is_seen_over_every_range() -> None:
    said = run("benchmarks.growth", "--rounds", "1", "--seconds", "0.002")
    for what in (
        "acquire + release by 512 threads",
        "acquire + release of 1000 classes",
        "arrival and hand-off, 1000 waiting",
        "acquire + release of the last of 512 slots",
    ):
        assert f"| {what}" in said


def test_simulator_is_compared_with_what_it_is_made_of() -> None:
    said = run("benchmarks.simulator", "--rounds", "1", "--seconds", "1")
    rows = [line for line in said.splitlines() if line.startswith("| simulated arrival")]
    assert len(rows) == 5
    assert "simpy" in said
    assert "the core alone" in said


def test_node_prints_ratios() -> None:
    said = run("benchmarks.node", "--rounds", "1", "--seconds", "0.002")
    for what in ("a request, 8 workers", "take + give, another at it", "refusal, 8 workers"):
        assert f"| {what}" in said


@pytest.mark.integration
def test_gunicorn_overhead_compares_both_servers(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    options = ("--rounds", "1", "--seconds", "0.1", "--own", "--json", str(out))
    said = run("benchmarks.gunicorn_overhead", *options)
    assert "| gunicorn, 200, keep-alive" in said
    assert "Note: refusing" not in said
    rates = [one for one in json.loads(out.read_text()) if one["unit"] == "/s"]
    assert [len(one["ours"]) for one in rates] == [1] * 4
    assert all(one["ours"][0] > 0 and one["theirs"][0] > 0 for one in rates)


@pytest.mark.integration
def test_store_compares_engines(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    options = ("--rounds", "1", "--seconds", "0.1", "--loads", "1+1", "--json", str(out))
    said = run("benchmarks.store", *options)
    assert "Note:" not in said
    for engine in ("sqlite", "postgresql"):
        assert said.count(f"| {engine}, 1 x 8 threads, 1 consumers ") == 5
    taken = json.loads(out.read_text())
    assert all(one["ours"][0] > 0 and one["theirs"][0] > 0 for one in taken)


@pytest.mark.integration
def test_gate_compares_with_none(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    said = run("benchmarks.gate", "--rounds", "1", "--events", "4", "--json", str(out))
    assert "Note:" not in said
    taken = json.loads(out.read_text())
    assert len(taken) == 16
    assert all(one["ours"][0] > 0 and one["theirs"][0] > 0 for one in taken)


@pytest.mark.integration
def test_overload_runs_and_its_readers_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    options = ("--scenarios", "A", "--contenders", "gthread16,ours", "--rounds", "1")
    run("benchmarks.overload.run", *options, "--scale", "0.05", "--out", str(out))
    taken = load([out])
    assert {one.contender for one in taken} == {"gthread16", "ours"}
    for one in taken:
        assert one.runs
        assert one.broken == 0
        assert one.goodput
    monkeypatch.setattr(sys, "argv", ["", str(out)])
    table.main()
    assert "| ours | 1 |" in capsys.readouterr().out
    goals.main()
    assert "| A | broken <= 0 | 0.000 | 1 | yes |" in capsys.readouterr().out


def test_short_comparison_prints_one_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def part(name: str, scale: float) -> list[Comparison]:
        return [Comparison(what=name, unit="s", ours=[scale, 3], peer="that", theirs=[1, 2])]

    for name in short.PARTS:
        monkeypatch.setitem(short.PARTS, name, partial(part, name))
    out = tmp_path / "out.json"
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--scale", "2", "--json", str(out)])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    short.main()
    said = capsys.readouterr().out
    assert said.count("ours / theirs") == 1
    assert all(f"| {name} " in said for name in short.PARTS)
    assert said.count("1.75 [1.50..2.00]") == len(short.PARTS)
    assert [one["ours"] for one in json.loads(out.read_text())] == [[2, 3]] * len(short.PARTS)


def test_ratios_are_taken_within_rounds() -> None:
    one = Comparison(what="x", unit="s", ours=[1, 20], peer="y", theirs=[2, 10])
    assert one.ratios == [0.5, 2]
    assert spread([1, 2, 4]) == "2.00 [1.00..4.00]"
    order: list[str] = []

    def once(name: str) -> float:
        order.append(name)
        return len(order)

    figures = interleaved({name: partial(once, name) for name in "ab"}, 2)
    assert figures == {"a": [1, 4], "b": [2, 3]}
    assert order == ["a", "b", "b", "a"]


NAMES = {
    "served": Outcome.SERVED,
    "shed": Outcome.SHED,
    "failed": Outcome.FAILED,
    "broken": Outcome.BROKEN,
    "silent": Outcome.GAVE_UP,
    "health": Outcome.SERVED,
}
ANSWERS = {
    "served": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "shed": b"HTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n",
    "failed": b"HTTP/1.1 500 Oops\r\n\r\nends with the connection",
    "broken": b"HTTP/1.1 200 OK\r\nContent-",
    "health": b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
}  # and none for "silent"
PATIENCE = 0.15


def plan(folder: Path, port: int = 1, *, keep_alive: bool = False) -> Plan:
    control = folder / "control"
    control.write_bytes(bytes(16))
    kinds = (
        Kind(
            name=name,
            path=f"/{name}",
            share=name != "health",
            rate=10.0 * (name == "health"),
            timeout=PATIENCE if name == "silent" else 10,
        )
        for name in NAMES
    )
    return Plan(
        port=port,
        keep_alive=keep_alive,
        seed=1,
        kinds=tuple(kinds),
        phases=(
            Phase(name="warm", seconds=0.2, rate=100),
            Phase(name="main", seconds=0.2, rate=200, burst=4, database="hang"),
        ),
        control=str(control),
        body=(64, 64),
    )


def answer(sock: socket.socket) -> None:
    """Answer as the path says until the client leaves; a request this small comes whole."""
    with sock:
        while data := sock.recv(65536):
            name = data.split(b" ")[1].decode().strip("/")
            sock.sendall(ANSWERS.get(name, b""))
            if name in ("failed", "broken"):
                return


@contextmanager
def answering() -> Iterator[int]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    threads = []

    def accept() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=answer, args=(sock,)))
            threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()
        listener.close()
        for thread in threads:
            thread.join()


def test_plan_survives_its_file_and_is_the_same_each_time(tmp_path: Path) -> None:
    made = plan(tmp_path)
    made.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == made
    due = arrivals(made)
    assert due == arrivals(made)
    health = len(NAMES) - 1
    assert [at for at, kind in due if kind == health] == pytest.approx([0.1, 0.2, 0.3])
    bursts = [at for at, kind in due if at >= 0.2 and kind != health]
    assert bursts
    assert len(bursts) == 4 * len(set(bursts))


@pytest.mark.parametrize("keep_alive", [False, True])
def test_generator_tells_every_ending(tmp_path: Path, keep_alive: bool) -> None:
    with answering() as port:
        generator = Generator(plan(tmp_path, port, keep_alive=keep_alive))
        generator.run()
    generator.save(tmp_path)
    records, generated = read(tmp_path)
    names = list(NAMES)
    endings = {(names[record.kind], record.outcome) for record in records}
    assert endings == set(NAMES.items())
    assert all(record.sent >= record.due for record in records)
    for record in records:
        assert (record.outcome == Outcome.GAVE_UP) <= (record.seconds >= PATIENCE)
    shed = sum(record.outcome == Outcome.SHED for record in records)
    assert generated.shed == generated.shed_with_retry_after == shed
    assert (tmp_path / "control").read_bytes() == bytes(16)  # no longer hangs


def test_generator_ends_without_a_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    generator = Generator(plan(tmp_path, port))
    generator.run()
    generator.save(tmp_path)
    assert {record.outcome for record in read(tmp_path)[0]} == {Outcome.BROKEN}


def overloaded(records: list[Record], handled: list[Handled]) -> Figures:
    """Figures of a run that was served as told; 4 s from 100 on, one main second in it."""
    phases = (
        Phase(name="warm", seconds=1, rate=1),
        Phase(name="over", seconds=1, rate=1),
        Phase(name="after", seconds=2, rate=1),
    )
    mix = tuple(Kind(name=n, path=f"/{n}", share=1, timeout=3) for n in ("high", "default", "low"))
    kinds = (*mix, Kind(name="health", path="/", rate=1, timeout=1))
    run = Run(
        scenario=Scenario(title="", main="over", timeout=3, phases=phases),
        plan=Plan(port=1, keep_alive=False, seed=1, kinds=kinds, phases=phases, control=""),
        records=records,
        generated=Generated(began=100, cpu=0, shed=1, shed_with_retry_after=1, stale=0),
        handled=handled,
        samples=[Sample(101.0, 5.0, 10), Sample(101.5, 5.2, 30), Sample(102.0, 5.4, 20)],
    )
    return run.figures("ours", "BFG", 0, "quick")


def test_figures_are_counted_from_when_requests_were_due() -> None:
    served, shed, gave_up = Outcome.SERVED, Outcome.SHED, Outcome.GAVE_UP
    figures = overloaded(
        [
            Record(0, served, 100.5, 100.5, 100.51),
            Record(0, served, 101.1, 101.2, 101.3),  # sent late, and counted as 200 ms
            Record(1, shed, 101.2, 101.2, 101.21),
            Record(2, gave_up, 101.3, 101.3, 104.3),
            Record(1, served, 101.9, 101.9, 102.1),  # not in the main phase any more
            Record(3, served, 101.5, 101.5, 101.6),
            Record(0, gave_up, 102.4, 102.4, 105.4),
            *(Record(0, served, 102.6 + 0.5 * n, 102.6, 102.61 + 0.5 * n) for n in range(3)),
        ],
        [
            Handled(1, 101.2, 101.3),
            Handled(3, 101.4, 104.2),  # ended while its client still waited
            Handled(6, 105.0, 105.5),
        ],
    )
    assert figures.offered == 4
    assert figures.goodput == pytest.approx(1 / 4)  # one of what was offered, less than capacity
    assert (figures.served, figures.answered) == pytest.approx((2 / 4, 3 / 4))
    assert (figures.high, figures.default, figures.low) == pytest.approx((1, 1 / 2, 0))
    assert (figures.gave_up, figures.health, figures.retry_after) == (1, 1, 1)
    assert figures.high_p99 == pytest.approx(200)
    assert figures.refused_p50 == pytest.approx(10)
    assert figures.wasted == pytest.approx(1 / 3)
    assert figures.running == 1
    assert figures.recovery == 0.5
    assert figures.cpu_ms == pytest.approx(0.4 / 4 * 1000)


def test_goals_are_relative_to_the_same_round_and_can_be_missed() -> None:
    ours = overloaded([Record(0, Outcome.SERVED, 101.1, 101.1, 101.2)], [])
    rows = [
        replace(ours, scenario="A", contender=contender, round=round, cpu_ms=cpu)
        for round, costs in enumerate([(1.0, 1.0), (1.5, 1.2)])
        for contender, cpu in zip(("gthread16", "ours"), costs, strict=True)
    ]
    verdicts = {(one.scenario, one.goal.figure): one for one in goals.check(rows) if one.values}
    cost = verdicts["A", "cpu_ms"]
    assert cost.values == pytest.approx([1.0, 0.8])
    assert cost.met
    assert not verdicts["A", "goodput"]._replace(values=[0.5, 0.9, 1.0]).met
    assert verdicts["A", "broken"].values == [0, 0]
    assert ("BFG", "goodput") not in verdicts


@pytest.mark.integration
def test_intake_takes_events_in_while_consumers_work(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    options = ("--seconds", "0.5", "--processes", "1", "--stores", "sqlite", "--json", str(out))
    said = run("benchmarks.intake", *options)
    assert "| sqlite | 1 |" in said
    (figures,) = json.loads(out.read_text())
    assert figures["events"] > 0
    assert figures["others"] == 0
    assert 0 < figures["p50"] <= figures["p99"] <= figures["p999"] <= figures["worst"]


@pytest.mark.integration
def test_deliveries_are_made_on_each_engine(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    said = run("benchmarks.deliveries", "--rounds", "1", "--events", "8", "--json", str(out))
    assert "Note:" not in said
    for engine in ("sqlite", "postgresql"):
        assert said.count(f"| {engine}, ") == 5
    assert all(one["ours"][0] > 0 for one in json.loads(out.read_text()))


def test_page_of_the_limits_names_scenarios_that_exist() -> None:
    lines = plots.rows(plots.PAGE.read_text("utf-8"))
    names = [one.name for one in every()]
    assert list(lines) == [name for name in names if name in lines], "run: make plots"
    assert set(plots.PICTURES) <= set(lines)
    for name in plots.PICTURES:
        assert (plots.IMAGES / f"simulated-{name}.png").is_file()


def test_pictures_and_rows_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- simulated -->\n<!-- end -->\nafter\n")
    monkeypatch.setattr(plots, "PAGE", page)
    monkeypatch.setattr(plots, "IMAGES", tmp_path)
    monkeypatch.setattr(plots, "PICTURES", ("overload-AB",))
    for name in ("overload-AB", "overload-A"):
        monkeypatch.setattr(sys, "argv", ["", "--seeds", "1", "--only", name])
        plots.main()
    assert list(plots.rows(page.read_text())) == ["overload-A", "overload-AB"]
    assert page.read_text().startswith("before\n") and page.read_text().endswith("after\n")
    assert (tmp_path / "simulated-overload-AB.png").read_bytes().startswith(b"\x89PNG")
