"""Links lead somewhere, pictures exist, and every page can be reached from the README."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, anchors, links, name, pages

OTHERS = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "examples/*/*.md")
LINKING = [*pages(), *(path for pattern in OTHERS for path in sorted(ROOT.glob(pattern)))]
SVG = "{http://www.w3.org/2000/svg}"


def target(page: Path, link: str) -> tuple[Path, str]:
    path, _, anchor = link.partition("#")
    return ((page.parent / path).resolve() if path else page), anchor


@pytest.mark.parametrize("page", LINKING, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page.read_text("utf-8")):
        if link.startswith("https://"):
            continue
        assert "://" not in link, f"{link}: not by https"
        path, anchor = target(page, link)
        assert path.is_relative_to(ROOT) and path.exists(), f"{link}: no such file"
        if anchor:
            assert anchor in anchors(path.read_text("utf-8")), f"{link}: no such heading"


def test_every_page_is_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    todo = [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        texts = links(page.read_text("utf-8"))
        todo += [target(page, link)[0] for link in texts if "://" not in link]
    assert set(pages()) <= reached


@pytest.mark.parametrize("picture", sorted((ROOT / "docs").rglob("*.svg")), ids=name)
def test_picture_can_be_read_aloud(picture: Path) -> None:
    root = ET.parse(picture).getroot()
    assert root.tag == f"{SVG}svg"
    for part in ("title", "desc"):
        element = root.find(f"{SVG}{part}")
        assert element is not None and element.text
        assert element.get("id") in root.get("aria-labelledby", "").split()


def test_every_picture_is_shown() -> None:
    shown = {target(page, link)[0] for page in pages() for link in links(page.read_text("utf-8"))}
    pictures = {path for path in (ROOT / "docs" / "images").iterdir() if path.is_file()}
    assert pictures <= shown
