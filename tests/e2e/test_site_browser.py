"""The site as a reader meets it: in headless Chromium where there is one, and its script alone where there is node."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_records import EVIL, fake_records, hostile_records
from html_check import Page, text
from spdebench.report.site import build, build_site


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The made-up records and hostile ones, in one site."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "TABLES", ())
        return build_site(fake_records() | hostile_records(), tmp_path_factory.mktemp("site") / "site").parent


def leading(cell: str) -> float:
    return float(re.split(r"[ ±]", cell)[0])


# --- the script alone ---------------------------------------------------------------------------------------------
def run_script(page: Page, *actions: list[str]) -> list[dict[str, Any]]:
    """What the first sortable table shows at the start and after each action."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the site's script is not run")
    request = {"tree": page.tree, "script": text(page.all("script")[0]), "actions": actions}
    answer = subprocess.run(
        [node, str(Path(__file__).with_name("page.js"))],
        input=json.dumps(request), capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return json.loads(answer.stdout)


def test_the_script_sorts_by_any_column(site):
    start, up, down, words = run_script(
        Page(site / "index.html"), ["click", "rel_l2"], ["click", "rel_l2"], ["click", "model"]
    )
    column = start["head"].index("rel_l2")
    shown = [[row[column] for row in state["rows"]] for state in (up, down)]
    blank = [[cell in ("–", "nan") for cell in cells] for cells in shown]
    assert all(any(flags) and flags == sorted(flags) for flags in blank)  # what is missing comes last both ways
    numbers = [[leading(cell) for cell in cells if cell not in ("–", "nan")] for cells in shown]
    assert len(numbers[0]) > 28 and numbers[0] == sorted(numbers[0]) and numbers[1] == sorted(numbers[0], reverse=True)
    assert numbers[1][0] == math.inf
    assert [s for s in up["sort"] if s] == ["ascending"] and [s for s in down["sort"] if s] == ["descending"]
    models = [row[start["head"].index("model")].lower() for row in words["rows"]]
    assert models == sorted(models)
    for state in (up, down, words):
        assert sorted(map(tuple, state["rows"])) == sorted(map(tuple, start["rows"]))


def test_whole_numbers_are_sorted_as_numbers(site):
    start, by_runs = run_script(Page(site / "datasets" / "index.html"), ["click", "runs"])
    column = start["head"].index("runs")
    counts = [int(row[column]) for row in by_runs["rows"]]
    assert counts == sorted(counts) and max(counts) >= 15


def test_the_script_filters_by_equation_task_and_metric(site):
    page = Page(site / "index.html")
    assert "hidden" in page.all("form")[0][1]  # without the script no filter is offered
    start, equation, task, metric, every = run_script(
        page, ["select", "equation", "phi41"], ["select", "task", "xi -> u"], ["select", "metric", "rel_l2"],
        ["select", "metric", ""],
    )  # fmt: skip
    hidden, message = start["form"][0]
    assert not hidden and message == f"{len(start['rows'])} of {len(start['rows'])} rows"
    assert {row[0] for row in equation["rows"]} == {"phi41"} and len(equation["rows"]) < len(start["rows"])
    place = start["head"].index("task")
    assert {row[place] for row in task["rows"]} == {"xi -> u"}
    assert len(task["rows"]) == sum(1 for row in start["rows"] if (row[0], row[place]) == ("phi41", "xi -> u"))
    assert "rel_l2" in metric["head"] and "mse" not in metric["head"] and len(metric["head"]) == len(metric["rows"][0])
    assert every["head"] == start["head"]


# --- a browser ----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.skip("playwright is not installed: pip install playwright && playwright install chromium")
    with sync_playwright() as playwright:
        try:
            own = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
            found = playwright.chromium.launch(executable_path=own)  # None: the one that playwright brought
        except Exception as error:
            pytest.skip(f"no Chromium can be started: {str(error).splitlines()[0]}")
        yield found
        found.close()


@pytest.fixture
def view(browser) -> Iterator[Any]:
    """A tab; afterwards it must have asked for nothing from outside and have had nothing to complain of."""
    tab = browser.new_page()
    asked: list[str] = []
    complaints: list[str] = []

    def answer(dialog: Any) -> None:
        complaints.append(dialog.message)
        dialog.dismiss()

    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("dialog", answer)
    yield tab
    tab.close()
    assert asked and all(url.startswith(("file://", "data:")) for url in asked), asked
    assert not complaints


def cells(view: Any, column: str) -> list[str]:
    """The words of a column in the rows that are shown."""
    heads = [head.strip() for head in view.locator("#board thead th").all_text_contents()]
    nth = heads.index(column) + 1
    return [cell.strip() for cell in view.locator(f"#board tbody tr:visible td:nth-child({nth})").all_text_contents()]


def test_a_click_sorts(view, site):
    view.goto((site / "index.html").as_uri())
    before = cells(view, "rel_l2")
    button = view.locator('#board th[data-metric="rel_l2"] button')
    button.click()
    up = cells(view, "rel_l2")
    numbers = [leading(cell) for cell in up if cell not in ("–", "nan")]
    assert sorted(before) == sorted(up) and len(numbers) > 28 and numbers == sorted(numbers)
    assert view.locator("#board th[aria-sort=ascending]").count() == 1
    button.click()
    assert view.locator("#board th[aria-sort=descending]").count() == 1
    assert [leading(c) for c in cells(view, "rel_l2") if c not in ("–", "nan")] == numbers[::-1]


def test_filters_choose(view, site):
    view.goto((site / "index.html").as_uri())
    view.locator('form select[data-column="4"]').select_option("(u0, xi) -> u")
    assert set(cells(view, "task")) == {"(u0, xi) -> u"}
    view.locator("form select[data-metric]").select_option("mse")
    assert view.locator('#board th[data-metric="mse"]').is_visible()
    assert not view.locator('#board th[data-metric="rel_l2"]').is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_pages_render_and_do_not_overflow(view, site, width, scheme):
    view.set_viewport_size({"width": width, "height": 800})
    view.emulate_media(color_scheme=scheme)
    shown = [
        site / "index.html",
        *sorted((site / "datasets").glob("*.html")),
        *sorted((site / "runs").glob("*.html"))[:9],
    ]
    for path in shown:
        view.goto(path.as_uri())
        assert view.locator("h1").inner_text()
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert view.evaluate(wide) <= 0, path
        dark = view.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 27)"
        assert dark == (scheme == "dark")


def test_hostile_words_are_words(view, site):
    view.goto((site / "index.html").as_uri())
    assert EVIL.split("'")[0] in view.locator("#board").inner_text()
    for path in (site / "runs").glob("*.html"):
        view.goto(path.as_uri())
    assert view.evaluate("document.images.length") == 0  # and `view` has seen no dialog
