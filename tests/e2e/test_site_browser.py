"""The site as a reader meets it: in headless Chromium where there is one, and its script alone where there is node."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chromium import Chromium
from fake_records import EVIL, dataset, fake_records, hostile_records, record
from html_check import Page, text
from spdebench.report.site import build, build_site
from submitted import scored, write_submission_folder
from tiny_tables import made_up, tiny_table

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Made-up records and hostile ones, on the last problem two that diverged, a table and submissions in one site."""
    data = dataset(16, 0.0)
    lost = [
        record(f"lost-{v}", data, digest=d * 10, scores={"rel_l2": {"value": v}})
        for d, v in (("1", math.nan), ("2", math.inf))
    ]
    records = fake_records() | hostile_records() | {entry.digest: entry for entry in lost}
    small = tiny_table()
    records |= {run.digest: made_up(run, 0.1) for cell in small.cells(1) for run in cell.runs}
    base = tmp_path_factory.mktemp("site")
    write_submission_folder(base / "in" / "good", tuple(scored(seed=k, again=0.25) for k in range(3)))
    write_submission_folder(base / "in" / "late", (scored(value=0.5, hidden=False),))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "TABLES", (small,))
        return build_site(records, base / "site", submissions=base / "in").parent


def leading(cell: str) -> float:
    return float(re.split(r"[ ±]", cell)[0])


# --- the script alone ---------------------------------------------------------------------------------------------
def run_script(page: Page, *actions: list[str]) -> list[dict[str, Any]]:
    """What the last sortable table shows at the start and after each action."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the site's script is not run")
    request = {"tree": page.tree, "script": text(page.all("script")[0]), "actions": actions}
    answer = subprocess.run(
        [node, str(Path(__file__).with_name("page.js"))],
        input=json.dumps(request), capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    return json.loads(answer.stdout)


def test_the_script_sorts_by_any_column(site):
    page = Page(site / "datasets" / "index.html")
    start, up, down, words = run_script(page, ["click", "runs"], ["click", "runs"], ["click", "boundary"])
    column = start["head"].index("runs")
    counts = [[int(row[column]) for row in state["rows"]] for state in (up, down)]
    assert counts[0] == sorted(counts[0]) and counts[1] == counts[0][::-1] and max(counts[0]) >= 15
    assert [s for s in up["sort"] if s] == ["ascending"] and [s for s in down["sort"] if s] == ["descending"]
    boundaries = [row[start["head"].index("boundary")].lower() for row in words["rows"]]
    assert boundaries == sorted(boundaries, key=lambda word: (word == "–", word))
    for state in (up, down, words):
        assert sorted(map(tuple, state["rows"])) == sorted(map(tuple, start["rows"]))


def test_missing_values_are_sorted_last_in_both_directions(site):
    page = Page(site / "boards" / "index.html")
    start, up, down = run_script(page, ["click", "rel_l2"], ["click", "rel_l2"])
    column = start["head"].index("rel_l2")
    shown = [[row[column] for row in state["rows"]] for state in (up, down)]
    blank = [[cell in ("–", "nan") for cell in cells] for cells in shown]
    assert all(any(flags) and flags == sorted(flags) for flags in blank)
    numbers = [[leading(cell) for cell in cells if cell not in ("–", "nan")] for cells in shown]
    assert numbers[0] == sorted(numbers[0]) and numbers[1] == sorted(numbers[0], reverse=True)
    assert numbers[1][0] == math.inf


def test_the_first_column_is_sorted_by_number(site):
    """The names of datasets hold J = 8 and J = 16, which as words would come in the other order."""
    page = Page(site / "datasets" / "index.html")
    start, runs, again = run_script(page, ["click", "runs"], ["click", "dataset"])
    assert runs["rows"] != start["rows"] and again["rows"] == start["rows"]


def test_the_script_filters_problems_and_metrics(site):
    page = Page(site / "boards" / "index.html")
    assert "hidden" in page.all("form")[0][1]  # without the script no filter is offered
    start, equation, task, metric, every = run_script(
        page, ["select", "equation", "phi41"], ["select", "task", "xi -> u"], ["select", "metric", "mse"],
        ["select", "metric", ""],
    )  # fmt: skip
    hidden, message = start["form"][0]
    assert not hidden and message == f"{len(start['sections'])} of {len(start['sections'])} problems"
    assert all(name.startswith("phi41:") for name in equation["sections"])
    assert 1 < len(task["sections"]) < len(equation["sections"]) < len(start["sections"])
    assert all("(u0" not in name and "xi -> u" in name for name in task["sections"])
    assert "mse" in metric["head"] and "corr" not in metric["head"] and "rel_l2" in metric["head"]
    assert len(metric["head"]) == len(metric["rows"][0]) and every["head"] == start["head"]


# --- a browser ----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    try:
        found = Chromium()
    except (OSError, AssertionError) as error:
        pytest.skip(f"no Chromium can be started: {error}")
    with found:
        yield found


@pytest.fixture
def view(browser) -> Iterator[Chromium]:
    """The browser; afterwards it must have asked for nothing from outside and have had nothing to complain of."""
    browser.asked.clear()
    browser.complaints.clear()
    browser.look(1280)
    yield browser
    assert browser.asked and all(url.startswith(("file://", "data:")) for url in browser.asked), browser.asked
    assert not browser.complaints


TABLE = "[...document.querySelectorAll('section.problem table')].at(-1)"
"""A table of a problem that networks were trained on."""


def cells(view: Chromium, column: str) -> list[str]:
    """The words of a column."""
    heads = view.evaluate(f"[...{TABLE}.tHead.rows[0].cells].map(c => c.textContent.trim())")
    return view.evaluate(f"[...{TABLE}.tBodies[0].rows].map(r => r.cells[{heads.index(column)}].textContent.trim())")


def test_a_click_anywhere_in_a_head_sorts(view, site):
    view.goto(site / "boards" / "index.html")
    before = cells(view, "rel_l2")
    view.evaluate(f"{TABLE}.scrollIntoView()")
    corner = f"(r => [r.left + 3, r.top + 3])({TABLE}.tHead.rows[0].cells[1].getBoundingClientRect())"
    x, y = view.evaluate(corner)  # next to the text
    view.click(x, y)
    up = cells(view, "rel_l2")
    numbers = [leading(cell) for cell in up if cell != "nan"]
    assert sorted(before) == sorted(up) and len(numbers) > 5 and numbers == sorted(numbers)
    assert view.evaluate(f"{TABLE}.tHead.rows[0].cells[1].getAttribute('aria-sort')") == "ascending"
    view.evaluate(f"{TABLE}.tHead.rows[0].cells[1].firstChild.focus()")
    view.press(" ", 32)  # and by the keyboard
    assert view.evaluate(f"{TABLE}.tHead.rows[0].cells[1].getAttribute('aria-sort')") == "descending"
    assert [leading(cell) for cell in cells(view, "rel_l2") if cell != "nan"] == numbers[::-1]


def test_filters_choose(view, site):
    view.goto(site / "boards" / "index.html")
    choose = "(s => { s.value = '%s'; s.dispatchEvent(new Event('change')); })(document.querySelector('select[%s]'))"
    view.evaluate(choose % ("(u0, xi) -> u", "data-choice=task"))
    shown = view.evaluate("[...document.querySelectorAll('section:not([hidden]) h2')].map(h => h.textContent)")
    assert shown and all("(u0, xi) -> u" in name for name in shown)
    view.evaluate(choose % ("mse", "data-metric"))
    heads = "[...document.querySelectorAll('th[data-metric=%s]')].every(h => h.offsetParent === null)"
    assert view.evaluate(heads % "corr") and not view.evaluate(heads % "mse")


def shown_pages(site: Path, most: int = 5) -> list[Path]:
    """The pages that there is one of, and a few of each other kind."""
    several = [path for kind in ("datasets", "runs") for path in sorted((site / kind).glob("[!i]*.html"))[:most]]
    names = ("index", "boards/index", "tables/index", "tables/tiny", "datasets/index", "submissions/good")
    return [*(site / f"{name}.html" for name in names), *several]


WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SCORES = """[...document.querySelectorAll('section.problem .box')].map(box => {
  const frame = box.getBoundingClientRect();
  const inside = () => [...box.querySelectorAll('th.model, .score')].every(c => {
    const r = c.getBoundingClientRect(); return r.left >= frame.left - 1 && r.right <= frame.right + 1; });
  const start = inside(); box.scrollLeft = 1e6; return start && inside(); })"""


@pytest.mark.parametrize("width", [400, 1280])
def test_pages_do_not_overflow_and_the_score_stays_in_sight(view, site, width):
    view.look(width)
    for path in shown_pages(site):
        view.goto(path)
        assert view.evaluate("document.querySelector('h1').innerText")
        assert view.evaluate(WIDE) <= 0, path
        assert all(view.evaluate(SCORES)), path  # at the start of its box, and after scrolling to the end


CONTRAST = """(() => {
  const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const linear = v => v <= 10.3 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4;
  const light = colour => colour.slice(0, 3).map(linear).reduce((s, v, k) => s + v * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length && (c.length < 4 || c[3] > 0)) return c; } return [255, 255, 255]; };
  const found = {};
  for (const e of document.body.querySelectorAll('*')) {
    const words = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!words || e.closest('script, style') || !e.getClientRects().length) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(parse(e.closest('svg') ? style.fill : style.color)), light(behind(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const key = e.tagName + '.' + (e.getAttribute('class') || '');
    if (!(key in found) || ratio < found[key]) found[key] = ratio;
  }
  return found; })()"""


AXE = ROOT / "tests" / "vendor" / "axe-core" / "axe.min.js"
VIOLATIONS = """axe.run(document, {resultTypes: ['violations'], elementRef: false}).then(found => found.violations.map(
  v => `${v.impact} ${v.id}: ${v.nodes[0].html.slice(0, 200)} (${v.nodes[0].failureSummary})`))"""


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 400)])
def test_everybody_can_read_the_pages(view, site, scheme, width):
    """axe-core finds nothing, and all words, also those of drawings, stand out from what is behind them."""
    view.look(width, scheme=scheme)
    for path in shown_pages(site, 1):
        view.goto(path)
        dark = view.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 27)"
        assert dark == (scheme == "dark")
        ratios = view.evaluate(CONTRAST)
        assert len(ratios) > 5 and min(ratios.values()) >= 4.5, (path, {k: v for k, v in ratios.items() if v < 4.5})
        view.evaluate(AXE.read_text(encoding="utf-8"))
        assert view.evaluate(VIOLATIONS) == [], path


def test_axe_is_the_file_that_its_note_names_and_finds_what_is_wrong(view, site):
    assert hashlib.sha256(AXE.read_bytes()).hexdigest() in AXE.with_name("README.md").read_text(encoding="utf-8")
    view.goto(site / "submissions" / "late.html")
    view.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<select></select>')")
    view.evaluate(AXE.read_text(encoding="utf-8"))
    (line,) = view.evaluate(VIOLATIONS)
    assert line.startswith("critical select-name: <select>")


DRAWN = """document.querySelector('.film .%s').decode().then(
  () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done()))))"""
"""Until a picture is shown."""


def changes(view: Chromium, seconds: float) -> bool:
    """Whether the window shows something else within so many seconds."""
    first, limit = view.screenshot(), time.monotonic() + seconds
    while time.monotonic() < limit:
        time.sleep(0.05)
        if view.screenshot() != first:
            return True
    return False


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_the_animation_plays_unless_less_motion_is_asked_for(view, site, motion):
    """The checkbox changes what is shown, by keyboard too; a still picture stays the same."""
    view.look(1280, motion=motion)
    view.goto(site / "index.html")
    for pressed in (False, True):
        plays = pressed == (motion == "reduce")
        shown = view.evaluate("['.moving', '.still'].map(n => getComputedStyle(document.querySelector(n)).display)")
        assert [each != "none" for each in shown] == [plays, not plays]
        view.evaluate("document.querySelector('.film svg').scrollIntoView()")
        view.evaluate(DRAWN % ("moving" if plays else "still"))
        assert changes(view, 120 if plays else 0.3) == plays
        view.evaluate("document.getElementById('film').focus({preventScroll: true})")
        view.press(" ", 32)
    assert view.evaluate("document.querySelector('.film label').innerText") == (
        "Play the animation" if motion == "reduce" else "Still picture"
    )


def test_the_keyboard_reaches_links_heads_and_boxes(view, site):
    view.goto(site / "boards" / "index.html")
    names = set()
    for _ in range(30):
        view.press("Tab", 9)
        names.add(view.evaluate("document.activeElement.tagName"))
        outline = view.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline not in ("none", "")
    assert {"A", "SELECT", "DIV", "BUTTON"} <= names


def test_links_lead_to_their_section(view, site):
    view.goto(site / "index.html")
    links = view.evaluate("[...document.querySelectorAll('#best a')].map(a => a.href)")
    assert links
    view.follow("#best a")
    assert view.evaluate("document.querySelector(':target').className") == "problem"


def test_hostile_words_are_words(view, site):
    view.goto(site / "boards" / "index.html")
    assert EVIL.split("'")[0] in view.evaluate("document.getElementById('board').innerText")
    hostile = [path for path in (site / "runs").glob("*.html") if "onerror" in path.read_text(encoding="utf-8")]
    assert len(hostile) == 3
    for path in hostile:
        view.goto(path)
    assert view.evaluate("document.images.length") == 0  # and `view` has seen no dialog
