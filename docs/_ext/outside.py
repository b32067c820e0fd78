"""Sphinx extension: a link to a Markdown file outside of docs/, which is no page, leads to a copy of the file.

On GitHub such a link leads to the file itself. Other files outside of docs/ are copied by MyST without this.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"\]\((\.\./[^)#\s]+\.md)(?:#[^)\s]*)?\)")


def copy_instead_of_page(app: Any, docname: str, source: list[str]) -> None:
    folder, root = Path(app.env.doc2path(docname)).parent, Path(app.srcdir).resolve()

    def target(match: re.Match[str]) -> str:
        file = (folder / match.group(1)).resolve()
        return match.group(0) if file.is_relative_to(root) or not file.exists() else f"](path:{match.group(1)})"

    source[0] = LINK.sub(target, source[0])


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", copy_instead_of_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
