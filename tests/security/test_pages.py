"""What is written for people shows hostile words as words: HTML, Markdown, LaTeX, CSV, cards and terminals."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import cases, changed, changes, obeys_the_law
from hypothesis import given

from fake_records import dataset, record, written
from html_check import check_site
from spdebench.data import generate, open_dataset
from spdebench.equations import equation
from spdebench.paper.base import Table
from spdebench.paper.fill import fill
from spdebench.paper.filled import Filled
from spdebench.records import Record
from spdebench.report.card import render_card
from spdebench.report.markup import md, tex
from spdebench.report.site import build, build_site
from spdebench.report.tables import FORMATS, render
from tiny_tables import made_up, tiny_table

EVIL = [
    "<script>alert(1)</script>",
    '"onerror="alert(1)" x="',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "<img src=http://evil.example/x onerror=alert(1)>",
    "</title><base href='//evil.example'>",
    "{{7*7}}${7*7}<%= 7*7 %>",
    "a\u202e\x1b[31m\nb\r\n\tc",
    "]]><!--",
    "$\\frac{1}{0}$ \\write18{rm}",
    "=cmd|' /C calc'!A0",
    "../../etc/passwd\x00",
]


@pytest.fixture(autouse=True)
def no_tables(monkeypatch):
    """The paper's own tables have tests elsewhere, and planning all their runs takes long."""
    monkeypatch.setattr(build, "TABLES", ())


def poisoned(value: Any, word: str) -> Any:
    """The value with every text, and every key besides, replaced by a hostile word."""
    if isinstance(value, dict):
        return {**{k: poisoned(v, word) for k, v in value.items()}, word: word}
    if isinstance(value, list):
        return [poisoned(v, word) for v in value]
    return word if isinstance(value, str) else value


@pytest.mark.parametrize("word", EVIL, ids=range(len(EVIL)))
def test_no_field_of_a_record_becomes_markup(tmp_path, word):
    """Every field, one page each: `check_site` refuses scripts but ours, handlers, images, and links that lead out."""
    clean = written("fno", dataset(8, 0.0))
    shifts = {word: {"dataset": dataset(16, 0.0).to_dict(), "part": word, "n": 6, "scores": clean["scores"]}}
    keys = ("model", "name", "digest", "task", "datasets", "config", "options")
    made = {"provenance": dict.fromkeys(clean["provenance"], word)}
    scores = {"scores": {word: {"value": 0.1}}, "samples": {word: [0.1]}}
    each = [{"shifts": shifts}, made, scores, *({key: poisoned(clean[key], word)} for key in keys)]
    each.append({key: value for change in each for key, value in change.items()})
    found = {f"{k:010d}": Record.from_dict(clean | change) for k, change in enumerate(each)}
    pages = check_site(build_site(found, tmp_path / "site").parent)
    assert len([name for name in pages if name.startswith("runs/")]) == len(found)
    for page in pages.values():
        urls = [v for _, attributes in page.elements for k, v in attributes.items() if k in ("href", "src", "action")]
        assert not [url for url in urls if re.match(r"\s*(javascript|data:text|https?:|//)", url, re.I)]


def test_no_card_file_log_or_dataset_name_becomes_markup(tmp_path):
    word = "<img src=x onerror=alert(1)>"
    eq = equation("phi41", points=16, truncation=8, frames=4, steps=4)
    file = open_dataset(generate(eq, n=20, out=tmp_path / "data"))
    (tmp_path / "data" / f"{word.replace('/', '')}.parquet").write_bytes(b"PAR1")
    file.path.with_suffix(".md").write_text(
        f"# {word}\n\n- {word}\n\n| {word} | distance |\n|---|---|\n| {word} | x |\n"
    )
    folder = tmp_path / "runs" / word
    folder.mkdir(parents=True)
    entry = written("fno", dataset(8, 0.0), datasets=[file.identity], name=word)
    (folder / "record.json").write_text(json.dumps(entry))
    (folder / "log.jsonl").write_text(json.dumps({"epoch": 1, "train": 0.5, "val": word, word: 1.0}) + "\n")
    (folder / "scores.json").write_text(json.dumps({"scores": {"rel_l2": {"curve": [0.1, word, None]}}}))
    np.save(folder / "predictions.npy", np.array([[word]]))
    check_site(build_site({}, tmp_path / "site", tmp_path / "runs", tmp_path / "data").parent)


@cases(15)
@given(changes)
def test_any_record_makes_a_site(tmp_path_factory, steps):
    """Fuzzed: pages are well-formed, or the line is refused before."""
    try:
        entry = json.loads(changed(written("fno", dataset(8, 0.0)), steps))
    except (ValueError, RecursionError):
        return
    if (known := obeys_the_law(lambda: Record.from_dict(entry))) is not None:
        content = build.gather({"0" * 10: known, "1" * 10: record("wno", dataset(8, 0.0))}, None, None)
        for _, text in build.pages(content):
            assert "<script>alert" not in text


# --- tables -------------------------------------------------------------------------------------------------------
def hostile_table(word: str) -> Filled:
    """A table whose names and whose records' device are hostile."""
    plain = tiny_table()
    runs = {run.digest: run for cell in plain.cells(1) for run in cell.runs}
    known = {digest: made_up(run, 0.1, provenance={"device": word}) for digest, run in runs.items()}
    table = Table(name=word, title=word, source=word, wants=plain.wants, notes=(word,), draw=(word,))
    return fill(table, known, seeds=1)


@pytest.mark.parametrize("word", EVIL, ids=range(len(EVIL)))
@pytest.mark.parametrize("format", FORMATS)
def test_no_word_of_a_table_becomes_markup(format, word):
    text = render(hostile_table(word), format)
    assert "\x1b" not in text and "\x00" not in text and "\r" not in text
    if format == "html":
        assert elements(text) <= {
            "section",
            "h2",
            "p",
            "code",
            "table",
            "caption",
            "thead",
            "tbody",
            "tfoot",
            "tr",
            "th",
            "td",
        } | {*("strong", "small", "ul", "li")}
    if format == "md":
        outside = re.sub(r"`[^`\n]*`", "", text)  # in a code span every sign is a sign
        assert "<img" not in outside and "<script" not in outside and "<base" not in outside
    if format == "csv":
        for row in csv.reader(io.StringIO(text)):
            assert not [cell for cell in row if re.match(r"\s*[=+@-]", cell) and not re.fullmatch(r"-?[\d.e+-]+", cell)]
    if format == "latex":
        body = re.sub(r"\\(?:textbackslash|textasciitilde|textasciicircum)\{\}", "", text)
        assert "\\write18" not in body and "\\frac" not in body


def elements(text: str) -> set[str]:
    found: set[str] = set()

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            found.add(tag)
            assert not [name for name, _ in attrs if name.startswith("on") or name in ("href", "src", "style")]

    Reader().feed(text)
    return found


@cases(150)
@given(changes)
def test_escaped_latex_has_no_active_sign(steps):
    word = changed({"a": "\\b{c}$d$ & 50% #1 _x^2~ <y> |z| -> ±"}, steps)
    escaped = tex(word)
    rest = re.sub(r"\\[&%$#_{}]|\$\\(?:pm|to)\$|\$[<>|]\$|\\text(?:backslash|asciitilde|asciicircum)\{\}", "", escaped)
    assert not set(rest) & set("\\$&%#_{}~^") and "\n" not in escaped


def test_escaped_markdown_cannot_end_its_cell_or_begin_an_element():
    for word in (*EVIL, "a|b", "a\\|b", "`x`", "[x](javascript:alert(1))", "![x](http://evil.example)", "&lt;"):
        out = md(word)
        assert "\n" not in out and "<" not in out and not re.search(r"(?<!\\)(?:\\\\)*[|`\[]", out.replace("&lt;", ""))


# --- cards and terminals ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("word", EVIL, ids=range(len(EVIL)))
def test_a_card_is_one_document(word):
    facts = {"file": word, "n": 3, "statistics": {"std": 0.1, "energy": 0.1, "largest": 1.0}, "origin": {"file": word}}
    lines = render_card(facts).splitlines()
    assert len(lines) == 7 and all(line.isprintable() for line in lines)
    assert lines[2].count("`") == 2


def test_an_error_is_one_line_for_a_terminal(capsys):
    from spdebench.cli.main import main

    with pytest.raises(SystemExit) as stop:
        main(["data", "info", "no\x1b[31m\nfile"])
    error = capsys.readouterr().err
    assert stop.value.code == 2 and error.count("\n") == 1 and "\x1b" not in error


def test_a_forged_record_in_a_run_folder_is_shown_as_words(tmp_path):
    folder: Path = tmp_path / "runs" / "x"
    folder.mkdir(parents=True)
    for content in (
        "[" * 5000,
        '{"digest": ["a"]}',
        '{"digest": "a", "model": {}}',
        "null",
        '{"digest": "b", "scores": 3}',
    ):
        (folder / "record.json").write_text(content)
        known = {"0" * 10: record("fno", dataset(8, 0.0))}
        check_site(build_site(known, tmp_path / "site", tmp_path / "runs").parent)
