"""Templates and the common parts of all pages: style, script, navigation, and a policy that loads nothing external."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from importlib import resources
from typing import TYPE_CHECKING, Any

from spdebench.errors import UserError
from spdebench.records.summary import mean_and_std
from spdebench.report import formatting
from spdebench.report.site import charts
from spdebench.report.site.strip import strip

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

Page = tuple[str, str]
"""Path within the site, and the text."""
Drawing = tuple[Any, str]
"""SVG and its caption."""


_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # of which a page needs none but the ends of lines and tabs


class Templates:
    """The templates, with the common parts of all pages."""

    def __init__(self, tables: bool) -> None:
        self._environment = _environment()
        self._nav = [("Overview", "index.html"), ("Leaderboard", "boards/index.html")]
        self._nav += [("Tables", "tables/index.html")] * tables + [("Datasets", "datasets/index.html")]
        static = resources.files("spdebench.report.site") / "static"
        self._style, self._script = ((static / n).read_text(encoding="utf-8") for n in ("style.css", "site.js"))

    def render(
        self, template: str, path: str, section: str, title: str, *, script: bool = False, **values: Any
    ) -> Page:
        """A page. Its content-security policy allows no external resource and no script except ours."""
        from markupsafe import Markup

        digest = base64.b64encode(hashlib.sha256(self._script.encode()).digest()).decode()
        allowed = [f"script-src 'sha256-{digest}'"] if script else []
        others = ["style-src 'unsafe-inline'", "img-src data:", "base-uri 'none'", "form-action 'none'"]
        policy = "; ".join(["default-src 'none'", *allowed, *others])
        page = self._environment.get_template(template).render(
            policy=policy,
            style=Markup(self._style),
            script=Markup(self._script) if script else "",
            root="../" * path.count("/"),
            nav=self._nav,
            section=section,
            title=title,
            **values,
        )
        return path, _CONTROLS.sub(" ", page)


def _environment() -> Environment:
    """The environment of the templates; a missing package is named now, not in the middle of the pages."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UserError(f"the site needs Jinja2 and matplotlib ({error}): pip install Jinja2 matplotlib") from None
    return _compiled_templates()


@functools.cache
def _compiled_templates() -> Environment:
    """The templates with our filters; a process compiles each of them once."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("spdebench.report.site"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = formatting.number
    environment.filters["text"] = formatting.text
    environment.filters["title_text"] = formatting.title
    environment.filters["strip"] = strip
    environment.filters["mean"] = lambda mean: mean_and_std(mean.mean, mean.std)
    return environment


def draw(figure: Figure, prefix: str, caption: str) -> Drawing:
    """A figure for a template, with its caption."""
    from markupsafe import Markup

    return Markup(charts.inline(figure, prefix, caption)), caption
