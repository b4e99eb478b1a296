"""Senders by name, those of other packages too."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from attrs import evolve

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.providers import (
    Provider,
    Secret,
    Tolerance,
    Verified,
    load_provider,
    provider_names,
    registry,
)
from gunicorn_admission.webhooks.providers.github import GitHub
from tests import senders
from tests.senders import AT

HERE = "gunicorn_admission.webhooks.providers"
FOLDER = Path(registry.__file__).parent


@pytest.mark.parametrize("name", provider_names())
def test_each_name_is_a_file_with_one_sender(name: str) -> None:
    provider = load_provider(name)
    assert provider.facts.name == name
    assert type(provider).__module__ == f"{HERE}.{name}"
    assert (FOLDER / f"{name}.py").is_file()


def test_each_file_with_a_sender_has_a_name() -> None:
    with_facts = {
        path.stem for path in FOLDER.glob("*.py") if "facts: ClassVar[Facts] = " in path.read_text()
    }
    assert with_facts == set(provider_names())


def test_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'github'"):
        load_provider("githup")


def install(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    points = EntryPoints([EntryPoint(name, value, registry.ENTRY_POINTS)])
    monkeypatch.setattr(registry, "entry_points", points.select)


def test_other_packages_add_senders(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "acme", f"{HERE}.github:GitHub")
    assert "acme" in provider_names()
    assert isinstance(load_provider("acme"), GitHub)


class Acme(GitHub):
    """A sender as another package would write it, with no more than it must have."""

    facts = evolve(GitHub.facts, name="acme", tolerance=Tolerance(max_age=1.0))


def test_a_sender_of_another_package_verifies() -> None:
    acme = Acme()
    assert acme.tolerance.max_age == 1.0
    sent = senders.github(b"{}", "secret", AT)
    outcome = acme.verify(sent.body, sent.headers, sent.url, [Secret("secret")], AT)
    assert isinstance(outcome, Verified)


def test_other_packages_cannot_replace_a_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "stripe", f"{HERE}.github:GitHub")
    assert provider_names().count("stripe") == 1
    assert not isinstance(load_provider("stripe"), GitHub)


@pytest.mark.parametrize("value", ["json:loads", f"{HERE}.facts:Facts"])
def test_what_is_no_sender_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    install(monkeypatch, "acme", value)
    with pytest.raises(ConfigError, match="a subclass of Provider"):
        load_provider("acme")


def loaded(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_a_sender_is_loaded_when_it_is_asked_for() -> None:
    names = loaded(f"import {HERE}")
    assert names.isdisjoint(f"{HERE}.{name}" for name in provider_names())


def test_no_sender_loads_a_library_before_it_needs_a_key() -> None:
    names = loaded(f"from {HERE} import *\nfor name in provider_names(): load_provider(name)")
    heavy = {"cryptography", "gunicorn", "flask", "ssl", "http.client", "urllib.request"}
    assert names.isdisjoint(heavy)


def test_a_provider_must_say_how_it_verifies() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Provider()  # type: ignore[abstract]
