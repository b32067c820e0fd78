"""The documentation site is built without a warning, and every address in it leads to a file or to a heading."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]


class Addresses(HTMLParser):
    """What a page links to or loads, and the names of its elements."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.used: list[str] = []
        self.names: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        self.names |= {given[key] for key in ("id", "name") if key in given}
        self.used += [given[key] for key in ("href", "src") if key in given]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built from a copy of the sources with a warning being an error; its notebooks are executed."""
    pytest.importorskip("sphinx", reason="make docs installs Sphinx")
    folder = tmp_path_factory.mktemp("docs")
    for entry in ROOT.iterdir():
        if entry.is_file():
            shutil.copy(entry, folder)  # a link of an included page is relative to the real place of the file
        elif entry.name not in ("docs", "build", ".git", ".venv"):
            (folder / entry.name).symlink_to(entry)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("api", "equations", "models"))
    call = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "docs", "site"]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-5000:]
    return folder / "site"


@pytest.mark.slow
def test_every_address_in_the_site_leads_somewhere_and_none_to_the_network(site: Path) -> None:
    pages = {page: Addresses(page) for page in site.rglob("*.html") if "_static" not in page.parts}
    assert len(pages) > 15
    broken = []
    for page, found in pages.items():
        for address in found.used:
            parts = urlsplit(address)
            if parts.scheme in ("http", "https", "mailto", "data"):
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            known = pages[target].names if target in pages else None
            if not target.is_file() or (parts.fragment and known is not None and unquote(parts.fragment) not in known):
                broken.append((page.name, address))
    assert broken == []
    everything = "".join(page.read_text() for page in pages)
    assert re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(https?:[^"]+)"', everything) == []
