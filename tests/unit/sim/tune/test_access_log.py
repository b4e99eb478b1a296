"""Files and pipes with access logs."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from gunicorn_admission.classify import Classifier
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings import Settings
from gunicorn_admission.sim.tune.access_log import STDIN, AccessLog, read_logs
from tests.access_logs import COMBINED, START, written

LINES = [
    (START + 0.2, 0.1, "/orders/1?x=%20"),
    (START + 0.6, 0.2, "/items"),
    (START + 1.5, 0.3, "/healthz"),
    (START + 5.0, 4.0, "http://host.example/orders/2"),
]


def read(*paths: Path, settings: Settings | None = None, **options: object) -> AccessLog:
    classifier = Classifier(settings or Settings())
    return read_logs(paths, classifier, **options)  # type: ignore[arg-type]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "access.log"
    path.write_text(written(LINES))
    return path


def test_columns(log: Path) -> None:
    found = read(log)
    assert [one.partition for one in found.classes] == ["/orders", "/items"]
    assert list(found.kind) == [0, 1, 0]
    assert list(found.seconds) == [0.1, 0.2, 4.0]
    # Two in the first second, in their order; one in the sixth.
    assert [end - START for end in found.ended] == [0.25, 0.75, 5.5]
    assert (found.lines, found.exempt, found.unreadable, found.assumed) == (4, 1, 0, False)
    assert found.resolution == 1e-6


def test_rules_make_classes(log: Path) -> None:
    settings = Settings(routes={"/items": "high"}, partition_by="route")
    found = read(log, settings=settings)
    assert [(one.partition, one.priority.name) for one in found.classes] == [
        ("(default)", "DEFAULT"),
        ("/items", "HIGH"),
    ]


def test_gzip_and_several(log: Path, tmp_path: Path) -> None:
    packed = tmp_path / "access.log.1"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    assert len(read(packed, log).seconds) == 6


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
def test_standard_input(pack: object, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = pack(log.read_bytes())  # type: ignore[operator]
    stream = SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(content)))  # type: ignore[type-var]
    monkeypatch.setattr(sys, "stdin", stream)
    assert len(read(STDIN).seconds) == 3


def test_a_cut_gzip_file(tmp_path: Path) -> None:
    packed = tmp_path / "access.log.gz"
    packed.write_bytes(gzip.compress(written(LINES * 1000).encode())[:-20])
    with pytest.raises(ConfigError, match=r"after line \d+"):
        read(packed)


def test_refusals_and_processes(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    format = f"{COMBINED} %(p)s %(L)s"
    log.write_text(written(LINES[:2], format) + written(LINES[:1], format, status=503))
    found = read(log, format=format)
    assert list(found.refused) == [0, 0, 1]
    assert found.processes == 1


@pytest.mark.parametrize("atom", "LDMT")
def test_every_unit(atom: str, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    format = f"{COMBINED} %({atom})s"
    log.write_text(written(LINES, format))
    assert read(log, format=format).seconds[-1] == 4.0


@pytest.mark.parametrize("bad", ["Traceback (most recent call last):", "\0\xff"])
def test_an_unreadable_line_is_named(bad: str, log: Path) -> None:
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines[:2], bad, *lines[2:], ""]), encoding="latin-1")
    with pytest.raises(ConfigError, match=r"access\.log, line 3\)"):
        read(log)
    found = read(log, skip=True)
    assert (found.lines, found.unreadable, len(found.seconds)) == (5, 1, 3)


def test_a_day_that_does_not_exist(log: Path) -> None:
    log.write_text(log.read_text().replace("30/Nov", "31/Nov"))
    with pytest.raises(ConfigError, match=r"line 1\)"):
        read(log)


def test_the_last_line_may_still_be_written(log: Path) -> None:
    log.write_text(log.read_text()[:-9])
    assert len(read(log).seconds) == 2


def test_mostly_unreadable_is_another_format(log: Path) -> None:
    log.write_text(log.read_text() + "x\n" * 9)
    with pytest.raises(ConfigError, match="9 of 13"):
        read(log, skip=True)


@pytest.mark.parametrize(("text", "words"), [("", "empty"), (written(LINES[2:3]), "1 were probes")])
def test_nothing_to_learn_from(text: str, words: str, log: Path) -> None:
    log.write_text(text)
    with pytest.raises(ConfigError, match=words):
        read(log)


def test_whole_numbers_are_taken_for_what_they_look_like(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(written(LINES, f"{COMBINED} %(D)s"))
    found = read(log)
    assert found.assumed
    assert found.seconds[0] == pytest.approx(0.1)
