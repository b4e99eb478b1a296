"""The wheel holds both packages, their types and the licence, and works where nothing else is."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", "gunicorn_admission", "flask_ext")


def pip(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that an old build/ folder cannot add files nor this test leave one."""
    source = tmp_path_factory.mktemp("source")
    for entry in SOURCES:
        if (ROOT / entry).is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / entry, source / entry, ignore=ignore)
        else:
            shutil.copy(ROOT / entry, source / entry)
    out = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", out, source)
    (built,) = out.glob("gunicorn_admission-*.whl")
    return built


@pytest.mark.timeout(180)
def test_every_file_is_in_the_wheel(wheel: Path) -> None:
    packed = set(zipfile.ZipFile(wheel).namelist())
    for package in ("gunicorn_admission", "flask_ext"):
        assert f"{package}/py.typed" in packed
        modules = {str(path.relative_to(ROOT)) for path in (ROOT / package).rglob("*.py")}
        assert modules <= packed
    assert any(entry.endswith("/LICENSE") for entry in packed)
    assert {entry.partition("/")[0].partition("-")[0] for entry in packed} == {
        "gunicorn_admission",
        "flask_ext",
    }


@pytest.mark.timeout(180)
def test_base_install_needs_two_packages(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (path,) = (entry for entry in archive.namelist() if entry.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(archive.read(path).decode())
    required = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert sorted(line.partition(">")[0] for line in required) == ["attrs", "gunicorn"]
    assert metadata["Requires-Python"] == ">=3.11"


@pytest.mark.timeout(180)
def test_installed_wheel_imports(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    pip("install", "--no-deps", "--no-index", "--target", target, wheel)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import gunicorn_admission, flask_ext;"
        "print(gunicorn_admission.__file__, flask_ext.__file__, sep='\\n')"
    )
    command = [sys.executable, "-I", "-c", code, str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(Path(line).is_relative_to(target) for line in done.stdout.splitlines())
