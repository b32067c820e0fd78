"""What every page of the site must be: well-formed, whole, self-contained, readable without a script."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

VOID = {"meta", "link", "br", "img", "input", "hr", "col"}


class Page(HTMLParser):
    """A page as a tree of [tag, attributes, children]; complains of tags that do not close."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.path = path
        self.source = path.read_text(encoding="utf-8")
        self.tree: list[Any] = ["#", {}, []]
        self._open = [self.tree]
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.feed(self.source)
        self.close()
        assert len(self._open) == 1, f"{path}: <{self._open[-1][0]}> is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._begin(tag, attrs)
        if tag in VOID:
            self._open.pop()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._begin(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1][0] == tag, f"{self.path}: </{tag}> closes <{self._open[-1][0]}> at {self.getpos()}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1][2].append(data)

    def _begin(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"{self.path}: <{tag}> has an attribute twice"
        node: list[Any] = [tag, {name: value or "" for name, value in attrs}, []]
        self._open[-1][2].append(node)
        self._open.append(node)
        self.elements.append((tag, node[1]))

    # --- looking around -------------------------------------------------------------------------------------------
    def all(self, tag: str, within: list[Any] | None = None) -> list[list[Any]]:
        """All elements of a kind, in order."""
        found = []
        for child in (within or self.tree)[2]:
            if isinstance(child, list):
                found += [child] if child[0] == tag else []
                found += self.all(tag, child)
        return found

    @property
    def links(self) -> list[str]:
        return [attrs["href"] for tag, attrs in self.elements if tag == "a"]


def text(node: Any) -> str:
    """What a reader sees of an element."""
    return node if isinstance(node, str) else "".join(text(child) for child in node[2])


def table(page: Page, index: int = 0) -> tuple[list[str], list[list[str]]]:
    """Head and body of a table as words."""
    rows = [
        [text(c).strip() for c in row[2] if isinstance(c, list)] for row in page.all("tr", page.all("table")[index])
    ]
    return rows[0], rows[1:]


def check_page(page: Page, site: Path, limit: int = 300_000) -> None:
    """All that is asked of one page."""
    where, source = page.path, page.source
    assert len(source.encode()) < limit, f"{where}: {len(source.encode())} bytes"
    assert source.startswith("<!DOCTYPE html>")
    tags = [tag for tag, _ in page.elements]
    assert page.all("html")[0][1].get("lang") == "en" and tags.count("h1") == 1 and tags.count("main") == 1
    assert text(page.all("title")[0]).strip() and 'name="viewport"' in source and '<meta charset="utf-8">' in source
    identifiers = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(identifiers) == len(set(identifiers)), f"{where}: an id stands twice"
    for tag, attrs in page.elements:
        assert not [name for name in attrs if name.startswith("on")], f"{where}: <{tag}> listens"
        assert tag not in ("link", "iframe", "object", "embed", "base", "img"), f"{where}: <{tag}>"
        assert "src" not in attrs and "xmlns" not in attrs
        if "href" in attrs:
            check_link(attrs["href"], tag, page, set(identifiers), site)
        if tag == "th":
            assert attrs.get("scope") in ("row", "col")
    for each in page.all("table"):
        assert page.all("caption", each) or "facts" in each[1].get("class", ""), f"{where}: a table has no caption"
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and all(b <= a + 1 for a, b in itertools.pairwise(levels)), f"{where}: {levels}"
    assert len(page.all("select")) == sum(len(page.all("select", label)) for label in page.all("label"))
    for drawing in page.all("svg"):
        assert drawing[1].get("role") == "img" and drawing[1].get("aria-label")
    for reference in re.findall(r"url\(([^)]*)\)", source):
        assert reference[:1] == "#" and reference[1:] in identifiers
    check_policy(page)


def check_link(href: str, tag: str, page: Page, identifiers: set[str], site: Path) -> None:
    if href.startswith("#"):
        assert href[1:] in identifiers, f"{page.path}: {href} leads nowhere"
    elif tag == "image":
        assert href.startswith("data:image/png;base64,")
    else:
        path, _, place = href.partition("#")
        assert re.fullmatch(r"[a-z0-9./-]+", path), f"{page.path}: {href}"
        target = (page.path.parent / path).resolve()
        assert target.is_relative_to(site.resolve()) and target.is_file(), f"{page.path}: {href} leads nowhere"
        assert not place or f'id="{place}"' in target.read_text(encoding="utf-8"), f"{page.path}: {href} leads nowhere"


def check_policy(page: Page) -> None:
    """No script but one, whose hash the policy names; nothing may be fetched."""
    policy = next(a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ") and "http" not in policy
    scripts = page.all("script")
    hashes = [base64.b64encode(hashlib.sha256(text(s).encode()).digest()).decode() for s in scripts]
    assert len(scripts) < 2 and re.findall(r"sha256-([^']*)'", policy) == hashes
    assert all(not script[1] for script in scripts)


def check_site(site: Path) -> dict[str, Page]:
    """Check every page; gives them back by their path."""
    pages = {path.relative_to(site).as_posix(): Page(path) for path in sorted(site.rglob("*.html"))}
    assert {p.suffix for p in site.rglob("*") if p.is_file()} == {".html", ""}
    for page in pages.values():
        check_page(page, site)
    return pages
