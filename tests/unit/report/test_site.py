"""The site: true numbers on well-formed pages, whatever the records hold, and nothing lost on the way to the disk."""

from __future__ import annotations

import ast
import dataclasses
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fake_records import EVIL, fake_records, hostile_records, record, scores, solver_record
from fake_records import dataset as dataset_spec
from html_check import Page, check_site, table, text
from spdebench.cli.main import main
from spdebench.data import generate, open_dataset
from spdebench.equations import EQUATIONS, equation
from spdebench.errors import UserError
from spdebench.models import MODELS
from spdebench.paper.base import Table, data
from spdebench.paper.layout import by_truncation, with_reference_rows
from spdebench.records import Record
from spdebench.records.store import add
from spdebench.report import formatting
from spdebench.report.board import Leaderboard, problems_of, rows_of
from spdebench.report.board.shown import shown_runs
from spdebench.report.card import render_card
from spdebench.report.costs import Point, plot_cost
from spdebench.report.site import build, build_site, charts
from spdebench.tasks import TaskSpec


@pytest.fixture(scope="module", autouse=True)
def no_tables():
    """The paper's own tables have tests elsewhere; planning all their runs takes longer than all of this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "TABLES", ())
        yield


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    return build_site(fake_records(), tmp_path_factory.mktemp("site") / "site").parent


@pytest.fixture(scope="module")
def pages(site) -> dict[str, Page]:
    return check_site(site)


# --- the leaderboard ----------------------------------------------------------------------------------------------
def test_every_run_has_a_page_and_every_seed_a_link(site, pages):
    records = fake_records()
    assert {name for name in pages if name.startswith("runs/")} == {f"runs/{digest}.html" for digest in records}
    board = pages["boards/index.html"]
    assert {href for href in board.links if "/runs/" in href} == {f"../runs/{digest}.html" for digest in records}
    assert all(text(link).startswith("seed ") for link in board.all("a") if "/runs/" in link[1]["href"])
    assert len([name for name in pages if name.startswith("datasets/")]) == 1 + 4


def test_rows_are_means_over_seeds(pages):
    board = pages["boards/index.html"]
    places = [text(heading).strip() for heading in board.all("h2")]
    assert len(places) == len(board.all("table")) == 4
    assert "Unless a problem says otherwise: σ = 0.1, periodic, n=40" in text(board.tree)  # and not in every heading
    head, rows = table(board, places.index("J = 8, xi -> u"))
    assert head[:4] == ["model", "rel_l2", "rank", "parameters"] and len(rows) == 4 + 2 + 1
    wanted = [record("fno", dataset_spec(8, 0.0), seed).scores["rel_l2"].value for seed in range(3)]
    (row,) = (r for r in rows if r[0] == "fno")
    mean, std = (float(word) for word in row[head.index("rel_l2")].split("±"))
    assert mean == pytest.approx(np.mean(wanted), abs=1e-3) and std == float(f"{np.std(wanted, ddof=1):.0e}")
    assert row[head.index("runs")] == "seed 0, seed 1, seed 2"
    (single,) = (r for r in rows if r[0].startswith("mean"))
    assert "±" not in single[head.index("rel_l2")] and single[0].endswith("baseline")
    ranks = {row[0].split()[0]: row[head.index("rank")] for row in rows}
    assert ranks == {"nspde": "1", "fno": "2", "wno": "3", "linear": "4", "deeponet": "5", "mean": "6", "solver": "–"}


def test_the_best_is_nearest_to_the_ideal_and_the_solver_does_not_compete():
    rows = rows_of(shown_runs(fake_records()))
    for problem in {row.first.problem for row in rows}:
        here = [row for row in rows if row.first.problem == problem]
        best = [row for row in here if "rel_l2" in row.best]
        assert [row.first.model for row in best] == ["nspde"]
        (ratio,) = (row for row in here if "std_ratio" in row.best)  # ideal 1, not 0
        assert ratio.scores["std_ratio"].mean == max(r.scores["std_ratio"].mean for r in here if not r.first.solver)
        (solver,) = (row for row in here if row.first.solver)
        assert not solver.best and 0.015 < solver.scores["rel_l2"].mean < 0.025  # its distance to the finer solution


def test_ranks_are_shown_only_where_a_network_ran(tmp_path):
    data, other = dataset_spec(8, 0.0), dataset_spec(16, 0.0)
    found = [record("mean", data), record("linear", data), record("mean", other), record("fno", other)]
    rows = rows_of(shown_runs({entry.digest: entry for entry in found}))
    known = {(row.field("truncation"), row.first.model): (row.rank, "rel_l2" in row.best) for row in rows}
    assert known["8", "mean"] == known["8", "linear"] == (None, False)
    assert known["16", "fno"] == (1, True) and known["16", "mean"] == (2, False)
    site = build_site({entry.digest: entry for entry in found}, tmp_path / "site").parent
    page = Page(site / "boards" / "index.html")
    assert ["rank" in table(page, k)[0] for k in range(2)] == [False, True]
    assert text(page.tree).count("no network was trained") == 1


def test_problems_and_datasets_are_sorted_by_number(tmp_path):
    found = [record("fno", dataset_spec(truncation, 0.0)) for truncation in (16, 4, 128, 8)]
    site = build_site({entry.digest: entry for entry in found}, tmp_path / "site").parent
    headings = [text(node).split(",")[0].strip() for node in Page(site / "boards" / "index.html").all("h2")]
    assert headings == ["J = 4", "J = 8", "J = 16", "J = 128"]
    head, rows = table(Page(site / "datasets" / "index.html"))
    assert [row[head.index("J")] for row in rows] == ["4", "8", "16", "128"]


def test_what_most_problems_share_is_said_once():
    data = [dataset_spec(truncation, 0.0, n=n) for truncation, n in ((4, 40), (8, 40), (16, 80))]
    found = [record("fno", each) for each in data]
    board = Leaderboard(problems_of(rows_of(shown_runs({entry.digest: entry for entry in found}))))
    assert {"n=40", "σ = 0.1", "xi -> u"} <= set(board.common) and "n=80" not in board.common
    assert sorted(map(board.words, board.problems)) == ["J = 16, n=80", "J = 4", "J = 8"]


def test_settings_that_differ_make_rows_that_say_so():
    data = dataset_spec(8, 0.0)
    wide = record("fno", data, config={"width": 64, "modes": [8, 6], "form": "default"}, digest="0" * 10)
    rows = rows_of(shown_runs({"1" * 10: record("fno", data), "0" * 10: wide, "2" * 10: record("fno", data, 1)}))
    assert sorted((row.variant, len(row.runs)) for row in rows) == [("width=32", 2), ("width=64", 1)]


def test_diverged_seeds_are_not_hidden():
    data = dataset_spec(8, 0.0)
    lost = record("fno", data, 1, scores={"rel_l2": {"value": None, "low": None, "high": None}})
    (row,) = rows_of(shown_runs({"0" * 10: record("fno", data), "1" * 10: lost}))
    assert math.isnan(row.scores["rel_l2"].mean) and row.scores["rel_l2"].count == 2 and not row.best


def test_a_long_leaderboard_is_split_by_equation(tmp_path):
    data = dataset_spec(8, 0.0)
    other = dataset_spec(16, 0.0)
    lone = record("fno", other, digest="f" * 10, datasets=[other.to_dict() | {"equation": "Burgers/../x"}])
    like = record("fno", data)
    many = {f"{k:010x}": dataclasses.replace(like, model=f"model-{k:03d}") for k in range(600)}
    content = build.gather(many | {"f" * 10: lone}, None, None)
    found = {}
    for name, html in build.pages(content):
        if name.startswith("datasets"):
            break  # the boards come first
        found[name] = html
    assert len(found) == 2 + 3 + 1 and {"boards/phi41.html", "boards/phi41-2.html", "boards/phi41-3.html"} < set(found)
    assert len(content) == len(found) + 3 + 601
    assert all(len(html.encode()) < 300_000 for html in found.values())
    (other,) = (name for name in found if "burgers" in name)
    assert ".." not in other and other.count("/") == 1
    assert sum(html.count('t model">model-') for name, html in found.items() if "index" not in name) == 600


# --- the first page -----------------------------------------------------------------------------------------------
def test_the_first_page_shows_equations_the_best_models_and_the_citation(pages):
    page = pages["index.html"]
    names = [text(node) for node in page.all("h3")]
    assert names == [formatting.title(EQUATIONS[name].title) for name in EQUATIONS] and "Dynamic Φ⁴₁" in names
    assert len(page.all("image")) == len(names) + 2  # one picture each; the animation, and its last frame
    head, rows = table(page)
    assert (
        head[:3] == ["problem", "best network or submission", "rel_l2"] and len(rows) == 1
    )  # one equation has records
    assert rows[0][0].startswith("phi41") and rows[0][1] == "nspde" and rows[0][3] == "linear"
    assert float(rows[0][head.index("floor")]) == 1e-7  # all noise is stored: the solver's own error
    seen = text(page.tree)
    root = Path(__file__).parents[3] / "CITATION.cff"
    for line in root.read_text(encoding="utf-8").splitlines():  # every title, name and note of the file
        if found := re.search(r'(?:title|name|notes): "(.*)"', line):
            assert found[1] in seen, line


def test_the_site_brings_the_citation_of_the_repository():
    copy = Path(build.__file__).parent / "static" / "CITATION.cff"
    assert copy.read_bytes() == (Path(__file__).parents[3] / "CITATION.cff").read_bytes()


# --- other pages --------------------------------------------------------------------------------------------------
def test_a_run_page_shows_everything(pages):
    (shifted,) = (r for r in fake_records().values() if "J=16" in r.shifts)
    page = pages[f"runs/{shifted.digest}.html"]
    seen = text(page.tree)
    for word in ("Shift: J=16", "width", "blocks", "0123abc", "2026-01-02T03:04:05", "1 min 33 s", "0.001"):
        assert word in seen
    head, rows = table(page)
    assert head == ["metric", "value", "low", "high"] and [r[0] for r in rows] == list(shifted.scores)
    value = shifted.scores["rel_l2"]
    assert [float(x) for x in rows[0][1:]] == pytest.approx([value.value, value.low, value.high], rel=1e-2)
    assert f"../datasets/{dataset_spec(16, 0.0).digest}.html" in page.links
    assert "spdebench generate phi41 truncation=8 points=16 frames=10 steps=10 -n 40 --seed 0" in seen
    assert f"spdebench train {shifted.model} data/phi41-" in seen


def test_a_dataset_page_gives_spec_command_and_floor(pages):
    data = dataset_spec(8, 0.0)
    seen = text(pages[f"datasets/{data.digest}.html"].tree)
    assert "spdebench generate phi41 truncation=8 points=16 frames=10 steps=10 -n 40 --seed 0" in seen
    mean = record("mean", data).scores["rel_l2"].value
    assert f"scores rel_l2 = {formatting.number(mean)}" in seen
    finer = solver_record(data).shifts["finer"].scores["rel_l2"].value
    assert f"with the same noise is rel_l2 = {formatting.number(finer)}." in seen
    drawings = [each[1].get("class") for each in pages[f"datasets/{data.digest}.html"].all("svg")]
    assert "was not found when" in seen and len(drawings) == 3 and drawings.count("strip") == 1


DISTANCE = {"mean": 0.02, "error": 0.001}
FACTS = {
    "file": "x.parquet",
    "n": 20,
    "statistics": {"std": 0.1, "energy": 0.2, "largest": 0.3},
    "origin": {"file": "<b>"},
    "distances": dict.fromkeys(("editions", "continuum", "storage", "residual"), DISTANCE)
    | {"samples": 2, "other_substeps": 4, "refinement": 8},
}


@pytest.fixture(scope="module")
def with_files(tmp_path_factory) -> tuple[Path, Record, str]:
    """A site with a data file, its card and a run's folder: (site, record of the run, digest of the dataset)."""
    base = tmp_path_factory.mktemp("files")
    eq = equation("phi41", points=16, truncation=8, frames=10, steps=10)
    file = open_dataset(generate(eq, n=20, seed=0, out=base / "data"))
    file.path.with_suffix(".md").write_text(render_card(FACTS))
    (base / "data" / "other.parquet").write_bytes(b"PAR1")
    entry = record("fno", dataset_spec(8, 0.0), datasets=[file.identity], name="../../elsewhere")
    folder = base / "runs" / "fno"
    folder.mkdir(parents=True)
    lines = [{"epoch": k, "train": 1.0 / k, "val": 1.2 / k, "lr": 1e-3, "seconds": 1.0} for k in range(1, 20)]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"epoch": 20, "tr')
    curve = [0.01 * k for k in range(1, 11)]
    (folder / "scores.json").write_text(json.dumps({"scores": {"rel_l2": {"curve": curve}}}))
    (folder / "record.json").write_text(json.dumps(entry.to_dict()))
    row = TaskSpec().rows(20)["test"]
    np.save(folder / "predictions.npy", 0.9 * file.u[row])
    first = build_site({}, base / "site", base / "runs", base / "data")
    return first.parent, entry, file.spec.digest


def test_files_at_hand_are_drawn(with_files):
    site, entry, digest = with_files
    pages = check_site(site)
    run = pages[f"runs/{entry.digest}.html"]
    words = {text(node).strip() for node in run.all("text")}
    assert len(run.all("svg")) == 2 and {"loss", "prediction − truth, colours × 10"} <= words
    data = pages[f"datasets/{digest}.html"]
    drawings = [figure[1]["aria-label"].split(":")[0] for figure in data.all("svg")]
    assert drawings == ["noise", "solution", "statistics"]
    assert "2 % ± 0.1 %" in text(data.tree) and "Imported from <b>" in text(data.tree)
    distances = [t for t in data.all("table") if text(t).strip().startswith("Relative L² distances")]
    assert len(distances) == 1 and len(data.all("tr", distances[0])) == 5
    assert "other.parquet" in text(pages["datasets/index.html"].tree)


def test_the_picture_shows_the_first_test_sample(with_files):
    site, _, _ = with_files
    content = build.gather({}, site.parent / "runs", site.parent / "data")
    from spdebench.report.site.runs import _sample

    (run,) = content.runs
    truth, predicted, file = _sample(content, run, content.folders[run.key] / "predictions.npy")
    np.testing.assert_allclose(predicted, 0.9 * truth, rtol=1e-6)
    assert np.array_equal(truth, file.u[TaskSpec().rows(20)["test"][0]])


# --- tables -------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def tiny_table() -> Table:
    models = [name for name in ("deeponet", "wno") if name in MODELS]
    wants = by_truncation(data("phi41", sigma=0.1), {"xi": models}, columns=(32, 64))
    return Table(
        name="tiny", title="Phi^4_1", source="tab:phi41_trc_P", wants=with_reference_rows(wants), notes=("<b>note",)
    )


def test_a_table_shows_the_published_numbers(tiny_table, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "TABLES", (tiny_table,))
    records = {}
    rng = np.random.default_rng(0)
    for cell in tiny_table.cells(3):
        for run in cell.runs[:2]:
            own = {"digest": run.digest, "datasets": list(run.datasets), "task": run.task}
            if run.model == "solver":
                records[run.digest] = solver_record(dataset_spec(8, 0.0), **own)
            else:
                error = {"deeponet": 0.05, "wno": 0.2}.get(run.model, 0.1)  # apart, so that every label has room
                own |= {"options": run.options, **scores(error, rng)}
                records[run.digest] = record(run.model, dataset_spec(8, 0.0), **own)
    site = build_site(records, tmp_path / "site").parent
    page = check_site(site)["tables/tiny.html"]
    head, rows = table(page)
    assert head == ["model", "J=32", "J=64", "parameters", "ms per sample"]
    (wno,) = (row for row in rows if row[0] == "WNO")
    (cell,) = (c for c in tiny_table.cells(3) if (c.row, c.column) == ("WNO", "J=32"))
    assert "(2) seed 0, seed 1" in wno[1] and f"paper {cell.published:g}" in wno[1]
    runs = [run.digest for run in cell.runs[:2]]
    assert all(f"../runs/{digest}.html" in page.links for digest in runs)
    seen = text(page.tree)
    assert "spdebench table tiny --run --only wno" in seen and "<b>note" in seen
    labels = [figure[1]["aria-label"] for figure in page.all("svg")]
    assert len(labels) == 2 and "published" in labels[0] and "inference time" in labels[1]
    names = {text(node).strip() for node in page.all("text", page.all("svg")[1])}
    assert {"solver", "DeepONet", "WNO"} <= names and not {"solver vs fine reference", "independent ensemble"} & names


# --- whatever records hold ----------------------------------------------------------------------------------------
def test_hostile_records_neither_run_nor_leave_the_folder(tmp_path):
    folder = tmp_path / "deep" / "site"
    build_site(hostile_records(), folder)
    pages = check_site(folder)
    assert {p for p in tmp_path.rglob("*") if not p.is_relative_to(folder)} == {tmp_path / "deep"}
    assert len([name for name in pages if name.startswith("runs/")]) == 3
    page = next(p for p in pages.values() if formatting.text(EVIL) in text(p.all("h1")[0]))
    assert EVIL in text(page.tree)  # shown as it is, as words
    assert not page.all("img") and "49" not in text(page.all("h1")[0])


def test_names_in_drawings_are_no_mathematics():
    points = [Point(EVIL, (0.1, 0.2), "model", 1.0), Point("$x$", (0.3,), "solver", 2.0)]
    for figure in (charts.plot_ranking(points, "rel_l2", EVIL), plot_cost(points, "$", "\\")):
        drawn = charts.inline(figure, "a", EVIL)
        assert "<script" not in drawn and "<img" not in drawn and "http" not in drawn
        assert drawn == charts.inline(figure, "a", EVIL)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0973, "0.0973"),
        (1e-7, "1.0e-07"),
        (1234567, "1\u202f234\u202f567"),
        (0, "0"),
        (float("nan"), "nan"),
        (None, "–"),
    ],
)
def test_numbers_are_written_for_people(value, shown):
    assert formatting.number(value) == shown


# --- onto the disk ------------------------------------------------------------------------------------------------
def test_the_same_records_give_the_same_bytes(site, tmp_path):
    data = [dataset_spec(8, 0.0).to_dict()]
    records = {digest: entry for digest, entry in fake_records().items() if data == list(entry.datasets)}
    again = build_site(dict(reversed(records.items())), tmp_path / "again").parent
    page = again / "datasets" / f"{dataset_spec(8, 0.0).digest}.html"
    assert page.read_bytes() == (site / "datasets" / page.name).read_bytes()  # other records change nothing
    before = {path.relative_to(again): path.read_bytes() for path in again.rglob("*") if path.is_file()}
    build_site(records, again)
    assert before == {path.relative_to(again): path.read_bytes() for path in again.rglob("*") if path.is_file()}


def few() -> dict[str, Any]:
    return {"0" * 10: record("fno", dataset_spec(8, 0.0))}


def test_a_site_is_replaced_and_other_folders_are_not(tmp_path, monkeypatch):
    out = tmp_path / "site"
    build_site(few(), out)
    build_site({"1" * 10: record("fno", dataset_spec(8, 0.0))}, out)
    assert not (out / "runs" / f"{'0' * 10}.html").exists() and (out / "runs" / f"{'1' * 10}.html").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["site"]
    (out / "CNAME").write_text("mine")
    with pytest.raises(UserError, match=r"not belong to the site \(CNAME\)"):
        build_site(few(), out)
    assert (out / "CNAME").read_text() == "mine" and (out / "runs" / f"{'1' * 10}.html").exists()
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "index.html").write_text("mine")
    with pytest.raises(UserError, match="is not a site of spdebench"):
        build_site(few(), other)
    with pytest.raises(UserError, match="is a file"):
        build_site(few(), other / "index.html")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="the folder you are in"):
        build_site(few(), ".")
    assert (other / "index.html").read_text() == "mine"


def test_an_interrupted_build_leaves_the_old_site(tmp_path, monkeypatch):
    out = tmp_path / "site"
    build_site(few(), out)
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}

    def broken(content):
        yield "index.html", "half"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(build, "pages", broken)
    with pytest.raises(UserError, match="No space left on device"):
        build_site(few(), out)
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["site"]


def test_nothing_to_show_is_one_line(tmp_path):
    with pytest.raises(UserError, match="no run records in"):
        build_site(tmp_path / "results", tmp_path / "site", tmp_path / "runs", tmp_path / "data")
    assert not list(tmp_path.iterdir())


def test_records_are_read_from_their_folder(tmp_path):
    entry = record("fno", dataset_spec(8, 0.0))
    add(tmp_path / "results", entry)
    first = build_site(tmp_path / "results", tmp_path / "site")
    assert (first.parent / "runs" / f"{entry.digest}.html").is_file()


def test_the_verb_says_what_to_open(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for line, code, message in (
        (["report", "--results", "none"], 2, "error: no such folder of run records: none"),
        (["report", "--results", "r", "--out", "pages"], 0, "open pages/index.html"),
        (["report", "--results", "r", "--out", "r"], 2, "error: 'r' is not a site of spdebench"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(line)
        seen = capsys.readouterr()
        assert int(caught.value.code or 0) == code and message in seen.out + seen.err
        add(tmp_path / "r", record("fno", dataset_spec(8, 0.0)))
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("name", ["jinja2", "matplotlib"])
def test_a_missing_package_is_a_one_line_error(tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match="pip install Jinja2 matplotlib"):
        build_site(few(), tmp_path / "site")
    assert not list(tmp_path.iterdir())


def test_importing_draws_nothing():
    for path in Path(build.__file__).parent.glob("*.py"):
        top = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {getattr(node, "module", None) or node.names[0].name for node in top}
        assert not {name.split(".")[0] for name in names} & {"matplotlib", "jinja2", "markupsafe"}, path


def test_boards_offer_what_they_hold():
    board = Leaderboard(problems_of(rows_of(shown_runs(fake_records()))))
    assert board.choices == {"J": ["8", "16"], "task": ["(u0, xi) -> u", "xi -> u"]}  # the rest is the same for all
    assert board.metrics == ["mse", "w12_paper", "corr", "sigw1", "std_ratio"]
