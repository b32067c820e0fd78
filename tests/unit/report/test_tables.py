"""A filled table in five formats: readable, parseable, escaped, and whole."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from spdebench.errors import UserError
from spdebench.paper.base import Table
from spdebench.paper.fill import fill
from spdebench.paper.filled import Filled
from spdebench.paper.layout import want
from spdebench.records.summary import count, number, one_digit
from spdebench.report.markup import tex
from spdebench.report.tables import FIELDS, FORMATS, WIDTH, render
from tiny_tables import FIXED, made_up

EVIL = "<b>100 % & co_{1} $x$ | #~^\\"


@pytest.fixture(scope="module")
def filled() -> Filled:
    """Two models on six columns with hostile names; one lacks runs, one number is published."""
    wants = tuple(
        want(m, FIXED, "xi", group=f"group {EVIL}", column=f"column {k}", options={"epochs": 2}, published=None)
        for m in ("deeponet", "gt")
        for k in range(6)
    )
    table = Table(
        name="evil", title=f"Title {EVIL}", source="tab:x_y", wants=wants, notes=(f"A note: {EVIL} ± 3 -> 4",)
    )
    records = {}
    for cell in table.cells(2):
        for run in cell.runs[: 2 if cell.model == "gt" else 1]:
            records[run.digest] = made_up(run, 0.2 if cell.model == "gt" else 0.1, provenance={"device": "cuda: H200"})
    found = fill(table, records, 2)
    first = found.entries[0]
    cell = dataclasses.replace(first.cell, published=0.05, published_std=4e-5)
    return dataclasses.replace(
        found,
        entries=(dataclasses.replace(first, cell=cell), *found.entries[1:]),
        groups=tuple(_with(g, first.cell, cell) for g in found.groups),
    )


def _with(group, old, new):
    entries = {k: dataclasses.replace(e, cell=new) if e.cell is old else e for k, e in group.entries.items()}
    return dataclasses.replace(group, entries=entries)


def test_numbers():
    assert [number(x) for x in (0.003124, 0.1, 12.11, 1.5e-7, 0.0, None)] == [
        *("0.00312", "0.100", "12.1", "1.5e-07", "0.00", "-")
    ]
    assert (number(float("nan")), one_digit(2.3e-5), one_digit(0.0), one_digit(0.17)) == ("nan", "2e-5", "0", "2e-1")
    assert [count(x) for x in (3283457, 48769, 512, 0, None)] == ["3.28M", "48.8k", "512", "", ""]
    assert [count(x) for x in (999_999, 999_499, 999)] == ["1M", "999k", "999"]


def test_text_fits_and_says_everything(filled):
    out = render(filled, "text")
    assert max(map(len, out.splitlines())) <= WIDTH
    assert "*0.100 (1)" in out and "0.200±0 (2)" in out  # the best, and a spread over two seeds
    assert "0.05±4e-5  x2" in out  # the published number and ours as its multiple
    assert "p<0.001" in out and "1.23k" in out and "0.500" in out and "cuda: H200" in out
    for k in range(6):  # columns that do not fit go on below
        assert f"column {k}" in out
    assert "Missing 1 run in " in out or "Missing 6 runs in" in out
    assert "spdebench table evil --run --only deeponet --seeds 2" in out


def test_markdown_is_rectangular(filled):
    out = render(filled, "md")
    rows = [line for line in out.splitlines() if line.startswith("| ")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in rows}) == 1
    assert "**0.100 (1)**" in out and "/ 0.05±4e-5 x2" in out


def test_csv_is_tidy(filled):
    rows = list(csv.DictReader(io.StringIO(render(filled, "csv"))))
    assert len(rows) == len(filled.entries) == 12 and list(rows[0]) == list(FIELDS)
    assert float(rows[0]["mean"]) == 0.1 and rows[0]["group"] == f"group {EVIL}"
    assert (rows[0]["seeds"], rows[0]["wanted"], rows[0]["best"]) == ("1", "2", "True")
    assert float(rows[0]["ratio"]) == pytest.approx(2)
    assert rows[0]["command"] and not rows[-1]["command"]
    assert len(rows[0]["digests"].split()) == 2


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sort: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        self.sort += [value for key, value in attrs if key == "data-sort"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_html_is_whole_and_escaped(filled):
    out = render(filled, "html")
    reader = Reader()
    reader.feed(out)
    assert reader.open == [] and "b" not in reader.tags and "<b>" not in out
    assert reader.tags.count("tr") == 3 and reader.tags.count("td") == 2 * 8
    values = [float(v) for v in reader.sort if re.fullmatch(r"[\d.e-]+", v)]
    assert values.count(0.1) == values.count(0.2) == 6
    assert "1 runs missing: spdebench table evil" in out and "p&lt;0.001 against GT" in out


def test_latex_is_balanced(filled):
    out = render(filled, "latex")
    assert out.count(r"\begin{") == out.count(r"\end{")
    plain = re.sub(r"\\[{}\\]", "", out)
    assert plain.count("{") == plain.count("}")
    columns = 3 + 2 * 6
    for line in out.splitlines():
        if line.endswith(r"\\") and "&" in line:
            spans = sum(int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", line))
            assert len(re.findall(r"(?<!\\)&", line)) + spans == columns - 1, line
    assert tex("a_b -> 50 % ± |x|") == r"a\_b $\to$ 50 \% $\pm$ $|$x$|$"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex here")
def test_latex_compiles(filled, tmp_path):
    body = render(filled, "latex")
    packages = r"\usepackage{booktabs,graphicx}"
    (tmp_path / "t.tex").write_text(rf"\documentclass{{article}}{packages}\begin{{document}}{body}\end{{document}}")
    subprocess.run(["pdflatex", "-halt-on-error", "t.tex"], cwd=tmp_path, check=True, capture_output=True, timeout=600)


def test_a_table_of_ones_own_speaks_of_no_paper():
    """Without published numbers there is no column of them; the note states the split of the table's runs."""
    wanted = want("gt", FIXED, "xi", group="", column="error", published=None, task={"split": "blocks"})
    found = fill(Table(name="own", title="Own", source="not in the paper", wants=(wanted,)), {}, 1)
    pages = {name: render(found, name) for name in ("text", "md", "latex", "html")}
    assert all("paper:" not in page.lower() and "the paper's" not in page for page in pages.values())
    assert "not in the paper" in pages["text"] and "split 14:3:3 in blocks of 20" in pages["text"]
    assert r"\begin{tabular}{lrr*{1}{l}}" in pages["latex"] and "ours & paper" not in pages["latex"]


def test_a_table_without_runs_names_the_command_that_draws_it():
    table = Table(name="t", title="A figure", source="fig:x", kind="figure", draw=("spdebench plot truncation phi41",))
    found = fill(table, {})
    for format in FORMATS:
        assert "A figure" in render(found, format) or format == "csv"
    assert "Drawn by:\n  spdebench plot truncation phi41" in render(found, "text")


def test_an_unknown_format_is_one_line(filled):
    with pytest.raises(UserError, match="unknown format 'txt'"):
        render(filled, "txt")
