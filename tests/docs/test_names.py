"""Names in the text exist: settings, variables, metrics, modules; and nothing is left out."""

from __future__ import annotations

import ast
import logging
import re
from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from pathlib import Path

import attrs
import pytest

from gunicorn_admission.chaining import COMPOSERS
from gunicorn_admission.core.events import EventKind
from gunicorn_admission.gthread import capabilities
from gunicorn_admission.observe.log import _WORDS
from gunicorn_admission.observe.names import METRICS
from gunicorn_admission.settings import Settings, parse_duration
from tests.docs.markdown import ROOT, inline_code, name, pages

SETTINGS = {field.name for field in attrs.fields(Settings)}
VARIABLES = {f"GUNICORN_ADMISSION_{setting.upper()}" for setting in SETTINGS} | {
    "GUNICORN_ADMISSION_CONF",
    "GUNICORN_ADMISSION_FILE",
    "GUNICORN_ADMISSION_PAGES",
    "GUNICORN_ADMISSION_STORE_URL",
}
STATSD = {metric.statsd_name for metric in METRICS}
PROMETHEUS = {metric.prometheus_name for metric in METRICS}
PACKAGES = ("gunicorn_admission", "flask_ext")
SOURCES = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
LOG_ATTRIBUTES = ("admission_event", "admission_partition", "admission_data")
REFERENCE = ROOT / "docs" / "reference"


def rows(page: Path, heading: str) -> Iterator[list[str]]:
    """The rows of the table with this first heading."""
    lines = iter(page.read_text("utf-8").splitlines())
    assert any(line.startswith(f"| {heading} |") for line in lines), heading
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]


def resolved(dotted: str) -> object:
    """What a dotted name stands for."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        try:
            module = import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, parts[count:], module)
    raise AttributeError(dotted)


def named_otherwise() -> set[str]:
    """What is spelled like a module or a key of an environ, and is neither: loggers, groups."""
    logger = re.compile(r'getLogger\("(gunicorn_admission\.[a-z_]+)"\)')
    found = {name for path in SOURCES for name in logger.findall(path.read_text("utf-8"))}
    return found | {"gunicorn_admission.providers"}  # a group of entry points


def environ_keys() -> set[str]:
    """What the sources read from and write to an environ, as far as it is ours."""
    literals = re.compile(r'"(gunicorn_admission\.[a-z_]+)"')
    found = {key for path in SOURCES for key in literals.findall(path.read_text("utf-8"))}
    return {key for key in found if not (ROOT / f"{key.replace('.', '/')}.py").exists()} - {
        "gunicorn_admission.guard",  # in app.extensions
        "gunicorn_admission.toml",
        *named_otherwise(),
    }


@pytest.mark.parametrize("page", pages(), ids=name)
def test_names_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    misspelt = re.compile(r"LIMT\b")  # the one that settings.md shows on purpose
    for variable in re.findall(r"\bGUNICORN_ADMISSION_[A-Z_]+", text):
        assert variable in VARIABLES or misspelt.search(variable), variable
    for variable in re.findall(r"(?<![A-Z_])ADMISSION_[A-Z_]+", text):
        assert f"GUNICORN_{variable}" in VARIABLES or variable == "ADMISSION_", variable
    for metric in re.findall(r"\bgunicorn\.admission\.[\w.*]*\w", text):
        plain = re.sub(r"\.worker\.(?:\d+|\*)(?=\.)", "", metric)
        assert any(plain == known or plain.startswith(f"{known}.") for known in STATSD), metric
    for metric in re.findall(r"\bwebhook_ingress_\w+", text):
        assert metric in PROMETHEUS, metric


@pytest.mark.parametrize("page", pages(), ids=name)
def test_inline_code_is_right(page: Path) -> None:
    for code in inline_code(page.read_text("utf-8")):
        if re.fullmatch(r"(gunicorn_admission|flask_ext)(\.\w+)+", code):
            known = code in environ_keys() or code in named_otherwise() or code.endswith(".toml")
            assert known or resolved(code) is not None
        if match := re.fullmatch(r"([a-z_]+)=(.+)", code):
            Settings(**{match[1]: ast.literal_eval(match[2])})
        if match := re.fullmatch(r"admission_([a-z_]+)", code):
            assert match[1] in SETTINGS or code in LOG_ATTRIBUTES, code


def test_environ_page_is_complete() -> None:
    page = REFERENCE / "environ.md"
    mentioned = {
        code
        for code in inline_code(page.read_text("utf-8"))
        if code.startswith("gunicorn_admission.")
    }
    assert mentioned == environ_keys()


def test_hooks_page_is_complete() -> None:
    assert {row[0] for row in rows(REFERENCE / "hooks.md", "hook")} == set(COMPOSERS)


def test_log_lines_are_complete() -> None:
    documented = {row[0]: row[1:] for row in rows(REFERENCE / "metrics.md", "event")}
    assert documented == {
        kind.value: [logging.getLevelName(_WORDS[kind][0]), _WORDS[kind][1]] for kind in EventKind
    }


def test_versions_are_those_of_the_code() -> None:
    pattern = re.compile(r"^``([^`]+)``\s+(2[\d.]+ to 2[\d.]+)", re.MULTILINE)
    known = dict(pattern.findall(capabilities.__doc__ or ""))
    known = {part.removeprefix("worker."): versions for part, versions in known.items()}
    table = rows(REFERENCE / "gunicorn-versions.md", "private part of gunicorn")
    assert {row[0].removeprefix("worker."): row[1] for row in table} == known


def test_numbers_are_those_of_the_code() -> None:
    table = list(rows(ROOT / "docs" / "explanation" / "how-it-decides.md", "what"))
    assert table
    for what, value, where in table:
        real = resolved(where)
        assert isinstance(real, int | float)
        number, _, unit = value.partition(" ")
        expected = parse_duration(f"{number}{unit}") if unit else float(number)
        scale = 1e9 if where.endswith(("_NS", "_TARGET")) else 1
        assert real == expected * scale, f"{what}: {value}, but {where} = {real}"
