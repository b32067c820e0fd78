"""Sphinx extension: what pages have for GitHub, in the form that the site needs.

A link to a Markdown file outside of docs/, which is no page of the site, leads to a copy of the file. A ``<picture>``
with a light and a dark image becomes two images, of which the theme shows one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"\]\((\.\./[^)#\s]+\.md)(?:#[^)\s]*)?\)")

PICTURE = re.compile(r'<picture><source [^>]*srcset="([^"]+)"><img alt="([^"]*)" src="([^"]+)"></picture>')


def for_the_site(app: Any, docname: str, source: list[str]) -> None:
    folder, root = Path(app.env.doc2path(docname)).parent, Path(app.srcdir).resolve()

    def target(match: re.Match[str]) -> str:
        file = (folder / match.group(1)).resolve()
        return match.group(0) if file.is_relative_to(root) or not file.exists() else f"](path:{match.group(1)})"

    text = LINK.sub(target, source[0])
    source[0] = PICTURE.sub(r"![\2](\3){.only-light} ![\2](\1){.only-dark}", text)


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", for_the_site)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
