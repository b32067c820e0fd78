"""The results page and README's headline: what the records give, no more, and the same each time."""

from __future__ import annotations

import csv
import dataclasses
import html
import io
import itertools
import math
import re
from pathlib import Path

import pytest
from matplotlib.text import Text

from spdebench.campaign.plan import published_status
from spdebench.cli.main import main
from spdebench.errors import UserError
from spdebench.models import MODELS
from spdebench.paper.catalogue import TABLES, table
from spdebench.paper.comparison import comparisons, explanations, parse
from spdebench.paper.fill import fill
from spdebench.records import store as records
from spdebench.records.solver_times import large_batches
from spdebench.report import headline, opening, results
from spdebench.report.results import numbers_csv, page
from spdebench.report.site import paper
from tiny_tables import made_up

ROOT = Path(__file__).parents[3]
NAME = "phi41-periodic"
AGAIN = f"out of date: type '{results.COMMAND}'"


@pytest.fixture(scope="module")
def cells():
    """The cells of one group and column, by row."""
    found = table(NAME).cells()
    return {c.row: c for c in found if c.group == "xi -> u" and c.column == "J=128"}


@pytest.fixture
def few(monkeypatch):
    """One table is enough for what does not count them all."""
    monkeypatch.setattr(results, "TABLES", (table(NAME),))


def recorded(cells, errors, seeds=1, **changes):
    """Records of the first runs of some rows."""
    runs = [(run, error) for row, error in errors.items() for run in cells[row].runs[:seeds]]
    return {run.digest: made_up(run, error, **changes) for run, error in runs}


def flowing(*given):
    """The page without its line breaks."""
    return " ".join(page(*given).split())


# --- what is committed --------------------------------------------------------------------------------------------
def test_the_committed_page_is_what_the_records_give():
    known = records.read(ROOT / "results")
    assert page(known) == (ROOT / "docs" / "results.md").read_text(encoding="utf-8"), AGAIN
    assert numbers_csv(known) == (ROOT / "docs" / "results.csv").read_text(encoding="utf-8"), AGAIN


def test_the_committed_headline_is_what_the_records_give():
    known = records.read(ROOT / "results")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert headline.readme_with_tables(text, known) == text, AGAIN
    for path in opening.FIGURES.values():
        told = re.search(r"<dc:description>(.*?)</dc:description>", (ROOT / path).read_text(encoding="utf-8"))
        assert told and html.unescape(told[1]) == opening.drawn(known), AGAIN


def test_every_explanation_of_ours_is_about_a_cell():
    """And so is every value that it names."""
    cells = [cell for each in TABLES for cell in each.cells(1)]
    for each in explanations():
        spoken = [cell for cell in cells if each.applies_to(cell)]
        for key, values in each.about.items():
            assert {getattr(cell, key) for cell in spoken} == set(values), each.about


# --- the page -----------------------------------------------------------------------------------------------------
def test_an_empty_folder_gives_a_page_without_numbers(few):
    text = page({})
    assert "**0 of the 594 published numbers" in text and "Nothing to compare yet." in text
    assert "###" not in text


def test_counts_agree_with_the_plan(cells):
    known = recorded(cells, {"FNO": 0.02, "NSPDE": 0.004}, seeds=2) | recorded(cells, {"mean": 0.2, "solver": 1e-8})
    every = [cell for each in TABLES for cell in each.cells()]
    have = sum(entry["status"] != "missing" for entry in published_status(every, known))
    text = page(known)
    assert have == 2 and f"**{have} of the 594 published numbers" in text
    assert f"| `{NAME}` | `tab:phi41_trc_P` | 2 / 60 | 0 | 2 | 0 | 0 |" in text
    assert "| FNO | 0.0200±0 (2) / 0.023±1e-4 | 0.5 | x1 |" in text
    found = csv.DictReader(io.StringIO(numbers_csv(known)))
    assert [(row["row"], row["seeds"]) for row in found if row["published"]] == [("FNO", "2"), ("NSPDE", "2")]


def test_numbers_that_are_not_finite_or_negative_are_shown_and_not_averaged(cells, few):
    known = recorded(cells, {"FNO": 0.046, "NSPDE": math.nan, "DeepONet": -1.0, "linear": math.nan, "trees": 0.01})
    text = flowing(known, ())
    assert "Of the 3 relative L2 errors, 1 lie at or below; the geometric mean of ours / published is 2." in text
    assert "trained model on 1 of 1 problems" in text  # trees, although linear has no finite error
    assert re.search(r"NSPDE \| nan \(1\)\S* / 0.009", text) and "xnan" not in text


def test_the_order_of_records_does_not_matter(cells, few):
    known = recorded(cells, {"FNO": 0.02, "NSPDE": 0.004, "trees": 1e-5, "solver": 1e-8}, seeds=1)
    assert page(known) == page(dict(reversed(known.items())))


def test_numbers_above_the_published_ones_are_listed_with_their_explanation(cells, few):
    """0.023 ± 1e-4 published: 0.0232 is the last value within two standard deviations."""
    known = recorded(cells, {"FNO": 0.0233, "NSPDE": 0.0231})
    filled = fill(table(NAME), known)
    assert [(s.entry.cell.row, s.above) for s in comparisons(filled, ())] == [("FNO", True), ("NSPDE", True)]
    assert [s.above for s in comparisons(fill(table(NAME), recorded(cells, {"FNO": 0.0231})), ())] == [False]
    plain = flowing(known, ())
    assert "2 lie above it, 2 of them unexplained" in plain and "**Unexplained.**" in plain
    why = parse(f'[[explanation]]\ntable = "{NAME}"\nmodel = "fno"\ntext = "the noise aliases"\n')
    told = flowing(known, why)
    assert "2 lie above it, 1 of them unexplained and 0 explained in part" in told
    assert "**Explained.** the noise aliases" in told
    assert told.index("**Unexplained.**") < told.index("**Explained.**")
    partly = flowing(known, [dataclasses.replace(why[0], partly=True)])
    assert "1 of them unexplained and 1 explained in part" in partly
    assert "**Explained in part.** the noise aliases" in partly and "**Explained.**" not in partly


def test_the_evidence_of_an_explanation_is_a_list_below_its_answer(cells, few):
    known = recorded(cells, {"FNO": 0.1})
    (why,) = parse(
        '[[explanation]]\nmodel = "fno"\ntext = """\nToo few\nmodes.\n- They hold\n  0.1.\n- So\n  it is."""\n'
    )
    assert why.text == "Too few modes.\n- They hold 0.1.\n- So it is."
    told = page(known, [why])
    assert "**Explained.** Too few modes.\n\n- They hold 0.1.\n- So it is.\n\n| table |" in told
    assert "| FNO | Too few modes |" in told


def test_reasons_that_begin_alike_are_one_line_of_the_first_page(cells, few):
    known = recorded(cells, {"FNO": 0.1, "NSPDE": 0.1})
    why = parse("".join(f'[[explanation]]\nmodel = "{m}"\ntext = "Too few modes. {m}"\n' for m in ("fno", "nspde")))
    told = page(known, why)
    assert "| 2 | explained | `phi41` | FNO, NSPDE | Too few modes |" in told
    assert "**Explained.** Too few modes. fno" in told and "**Explained.** Too few modes. nspde" in told


def test_a_table_that_exists_in_one_edition_is_listed_once():
    """Its numbers are in its own section, and the CSV file states the edition of its data."""
    cell = table("core").cells(1)[0]
    known = {cell.runs[0].digest: made_up(cell.runs[0], 0.1234)}
    assert page(known).count("0.123 (1)") == 1
    (line,) = [line for line in numbers_csv(known).splitlines() if line.startswith("core,")]
    assert line.split(",")[2] == "converged"


def test_the_first_matching_explanation_is_used_and_only_for_numbers_above(cells):
    why = parse(
        '[[explanation]]\nmodel = "fno"\ncolumn = "J=128"\ntext = "narrow"\n'
        '[[explanation]]\nmodel = "fno"\ntext = "wide"\n'
    )
    (found,) = comparisons(fill(table(NAME), recorded(cells, {"FNO": 0.5})), why)
    assert found.explanation.text == "narrow"
    (found,) = comparisons(fill(table(NAME), recorded(cells, {"FNO": 0.01})), why)
    assert found.explanation is None
    both = parse('[[explanation]]\nmodel = ["wno", "fno"]\ntext = "either"\n')
    (found,) = comparisons(fill(table(NAME), recorded(cells, {"FNO": 0.5})), both)
    assert found.explanation.text == "either"


def test_a_number_that_is_not_finite_is_above(cells):
    known = recorded(cells, {"FNO": 0.01}, scores={"rel_l2": {"value": None}})
    (found,) = comparisons(fill(table(NAME), known), ())
    assert found.above


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[explanation]]\nmodle = "fno"\ntext = "x"\n', "modle"),
        ('[[explanation]]\ntext = "x"\n', "at least one of"),
        ('[[explanation]]\nmodel = "fno"\n', "needs a text"),
        ('[[explanation]]\nmodel = "fno"\ntext = "x"\npartly = 1\n', "partly is true or false"),
        ('[[explanation]]\nmodel = "fno"\ntext = "x"\nbelow = 1\n', "below is true or false"),
    ],
)
def test_an_explanation_about_nothing_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        parse(text)


def test_times_of_two_devices_are_not_divided(cells, few):
    here = recorded(cells, {"solver": 1e-8}, inference_ms=2.0)
    same = here | recorded(cells, {"FNO": 0.02})
    other = here | recorded(cells, {"FNO": 0.02}, provenance={"device": "cuda: other"})
    assert "| 0.5 | x4 |" in page(same)
    assert "| 0.5 |  |" in page(other)


def test_baselines_ahead_are_counted_once_a_problem(cells, few):
    ahead = flowing(recorded(cells, {"FNO": 0.02, "trees": 1e-5, "mean": 0.3}))
    behind = flowing(recorded(cells, {"FNO": 0.02, "trees": 0.3, "trees, generator's kernel": 1e-5}))
    assert "a smaller error than every trained model on 1 of 1 problems" in ahead
    assert "a smaller error than every trained model on 0 of 1 problems" in behind
    assert "than every trained model" not in flowing(recorded(cells, {"FNO": 0.02, "trees, generator's kernel": 1e-5}))


def test_a_regression_at_the_floor_is_not_ahead_but_at_the_floor(cells, few):
    """All noise is stored: the floor is the solver's own error, 0.010; 0.011 is within 1.2 of it, and 0.0119 too."""
    alone = flowing(recorded(cells, {"FNO": 0.02, "trees": 0.011, "solver": 0.010}))
    assert "a smaller error than every trained model on 0 of 1 problems" in alone
    assert "On 1 of the 1 problems (phi41 1) the error of the regression is within a factor 1.2 of the floor" in alone
    assert "on 0 of these problems the error of a trained model is at the floor too" in alone
    both = flowing(recorded(cells, {"FNO": 0.0119, "trees": 0.011, "solver": 0.010}))
    assert "on 1 of these problems the error of a trained model is at the floor too" in both
    lines = page(recorded(cells, {"FNO": 0.0119, "WNO": 0.0121, "solver": 0.010})).splitlines()
    rows = [line for line in lines if "| J=128 |" not in line]
    marked = {name: "†" in line for line in rows for name in ("FNO", "WNO") if line.startswith(f"| {name} | 0")}
    assert marked == {"FNO": True, "WNO": False}


def test_a_problem_has_the_networks_of_all_tables(cells, monkeypatch):
    """WNO and the baselines stand in two tables, FNO in one of them; it is the best wherever one looks first."""
    known = recorded(cells, {"FNO": 1e-6, "WNO": 0.1, "trees": 1e-5, "mean": 0.3})
    for names in ((NAME, "phi41-forms"), ("phi41-forms", NAME)):
        monkeypatch.setattr(results, "TABLES", tuple(map(table, names)))
        assert "on 0 of 1 problems (data and task): phi41 0 of 1." in flowing(known)
    known = recorded(cells, {"FNO": 0.02, "trees": 1e-5, "mean": 0.3})
    assert "phi41 1 of 1 (1 with one network only)." in flowing(known)


def test_numbers_far_below_are_listed_with_their_own_explanations(cells, few):
    """0.023 published: 0.0057 is under a quarter."""
    why = parse(
        '[[explanation]]\nmodel = "fno"\ntext = "too much"\n'
        '[[explanation]]\nmodel = "fno"\nbelow = true\npartly = true\ntext = "too little"\n'
    )
    near, far = (flowing(recorded(cells, {"FNO": error}), why) for error in (0.0058, 0.0057))
    assert "(0 of them below a quarter" in near and "## Far below" not in near
    assert "(1 of them below a quarter" in far and "**Explained in part.** too little" in far and "too much" not in far
    above = flowing(recorded(cells, {"FNO": 0.1}), why)
    assert "**Explained.** too much" in above and "too little" not in above


def test_times_of_the_paper_are_not_compared(monkeypatch):
    """They were taken on another device."""
    singular = table("metrics-singular")
    monkeypatch.setattr(results, "TABLES", (singular,))
    cell = next(c for c in singular.cells() if c.metric == "inference_ms" and c.published_keys)
    text = page({cell.runs[0].digest: made_up(cell.runs[0], 1e-9, inference_ms=1e6)}, ())
    assert " 1 are inference times" in text
    numbers = text.split("## Numbers")[1].split("###")[1]
    assert f"1.0e+06 (1) / {cell.published:g}" in numbers  # without the mark of a number above


def test_notes_of_a_table_are_on_the_page(cells, few):
    text = flowing(recorded(cells, {"FNO": 0.02}))
    assert all(note in text for note in table(NAME).notes)


def test_a_commit_that_is_not_all_of_the_code_is_told(cells, few):
    provenance = {"device": "cpu: test", "commit": "0123456789abcdef+"}
    assert "| 0123456789ab+ |" in page(recorded(cells, {"FNO": 0.02}, provenance=provenance))


# --- the headline -------------------------------------------------------------------------------------------------
def test_the_headline_has_the_solver_with_its_true_error(cells):
    shifts = {"finer": {"scores": {"rel_l2": {"value": 0.0125}}}}
    known = recorded(cells, {"FNO": 0.02}) | recorded(cells, {"solver": 1e-8}, shifts=shifts, inference_ms=2.0)
    text = headline.headline_table(known)
    assert "| solver vs fine reference | 0.0125 (1) |  | 2 |" in text
    assert re.search(r"\| FNO \| 0.0200 \(1\) \| 0.023±1e-4 \| 0.5 \| [^|]* \| - \| 0.16±3e-3 \|  \|  \|", text)
    waiting = "NCDE, NRDE, NCDE-FNO, DeepONet, WNO, NSPDE, DLR-Net, generator's kernel, GT, mean, linear, trees, step"
    assert f"Not run yet: {waiting}, linear, generator's kernel, trees, generator's kernel." in " ".join(text.split())
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 120


def test_a_row_with_the_generators_kernel_is_shown_and_not_ranked(cells):
    known = recorded(cells, {"FNO": 0.02, "trees": 0.05, "trees, generator's kernel": 1e-5})
    text = headline.headline_table(known)
    assert "| trees | 0.0500 (1) |" in text and "| trees, generator's kernel | 1.0e-05 (1) |" in text
    filled = fill(table(NAME), known)
    assert filled.best["xi -> u", "J=128"] == ("FNO",) and filled.significance["xi -> u", "J=128"][1] == "trees"
    note = [text for text in filled.notes if "generator's kernel" in text]
    assert len(note) == 1 and all(name in note[0] for name in ("linear", "trees", "DLR-Net", "NORS"))


def test_the_first_screen_has_every_row_with_a_record():
    cells = {c.row: c for c in table(opening.TABLE).cells() if c.group == "xi -> u" and c.column == opening.COLUMN}
    shifts = {"finer": {"scores": {"rel_l2": {"value": 0.0625}}}}
    known = recorded(cells, {"FNO": 0.15, "trees": 1e-5}) | recorded(cells, {"step": 3e-8}, inference_ms=None)
    known |= recorded(cells, {"solver": 1e-8}, shifts=shifts, inference_ms=2.0)
    found = {d.name: d for d in opening.dots(known)}
    large = f"solver, batch {large_batches()['phi41'].samples:,}"
    lines = {"discretisation error", "floor: what the given noise allows"}
    assert set(found) == {"FNO", "trees", "step", "solver", large, *lines}
    assert found["FNO"].published == 0.16 and found["solver"].error == found[large].error == 0.0625
    assert found["solver"].time == 2.0 and found["step"].time is None
    text = " ".join(opening.opening(known).split())
    assert "error of the best published network (FNO) is 0.16; a regression" in text
    assert "knowing the equation has 3e-08. The discretisation error of these data" in text
    assert "is 0.062: 0 of the 1 published errors are smaller" in text
    networks = sum(m.trainable for m in MODELS.values() if m.__module__.startswith("spdebench."))
    assert f"trains {networks} neural networks" in text
    assert len(opening.sentences(opening.dots(known))) == 3 and len(opening.sentences([])) == 2
    figure = opening.plot_opening(list(found.values()), opening.PALETTES["dark"])
    names = {t.get_text() for t in figure.axes[0].texts}
    low, high = figure.axes[0].get_ylim()
    assert all(low < value < high for d in found.values() for value in (d.error, d.published) if value)
    assert {"FNO", "trees", "solver", large} <= names and any(n.startswith("step (time") for n in names)


def test_names_of_networks_do_not_overlap():
    """Nine networks with errors within 2 %: their names stand at least 15 points apart, within the axes."""
    found = [opening.Dot(f"net {k}", "network", 0.1 * 1.002**k, None, 0.01 * 1.1**k) for k in range(9)]
    figure = opening.plot_opening([*found, opening.Dot("step", "regression", 1e-8)], opening.PALETTES["light"])
    figure.draw_without_rendering()
    (axes,) = figure.axes
    extents = [Text.get_window_extent(t) for t in axes.texts if "net" in t.get_text()]  # without the thin lines
    boxes = sorted((e.y0, e.y1) for e in extents)
    assert len(boxes) == 9 and all(low[1] <= high[0] + 1 for low, high in itertools.pairwise(boxes))
    assert boxes[-1][1] <= axes.bbox.y1 + 1


def test_names_of_marks_close_to_each_other_do_not_touch():
    """Two regressions next to each other on the line of the discretisation error: two points of space at least."""
    found = [
        opening.Dot("discretisation error", "data", 0.06),
        opening.Dot("solver, batch 100,000", "solver", 0.06, time=0.0008),
        opening.Dot("linear", "regression", 0.057, time=0.0057),
        opening.Dot("trees", "regression", 0.054, time=0.011),
        opening.Dot("step", "regression", 4e-8),
    ]
    figure = opening.plot_opening(found, opening.PALETTES["light"])
    figure.draw_without_rendering()
    boxes = [text.get_window_extent().padded(2, 0) for text in figure.axes[0].texts]
    assert len(boxes) == 5 and not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


def test_no_line_strikes_through_a_name():
    dots = [opening.Dot("trees", "regression", 0.1, time=0.01), opening.Dot("discretisation error", "data", 0.1)]
    figure = opening.plot_opening(dots, opening.PALETTES["light"])
    (axes,) = figure.axes
    height = axes.transData.transform((1.0, 0.1))[1]
    extents = [Text.get_window_extent(t) for t in axes.texts]
    assert len(extents) == 2 and not any(e.y0 < height < e.y1 for e in extents)


def test_only_the_text_between_the_marks_changes():
    text = f"before\n{headline.OPEN}\nold\n{headline.CLOSE}\nafter\n"
    assert headline.replace_between_marks(text, "new\n") == f"before\n{headline.OPEN}\nnew\n{headline.CLOSE}\nafter\n"
    for wrong in ("none", text + text, f"{headline.CLOSE}\n{headline.OPEN}\n"):
        with pytest.raises(UserError, match="must hold the lines"):
            headline.replace_between_marks(wrong, "new\n")


def test_the_command_writes_all_or_nothing(tmp_path, cells, few, capsys):
    for record in recorded(cells, {"FNO": 0.02, "trees": 1e-5}).values():
        records.add(tmp_path / "results", record)
    readme = tmp_path / "README.md"
    readme.write_text("no marks\n")
    out = tmp_path / "r.md"
    words = ["results", "--results", str(tmp_path / "results"), "--readme", str(readme), "--out", str(out)]
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2 and "must hold the lines" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["README.md", "results"]
    marks = [*headline.FIRST, headline.OPEN, headline.CLOSE, *headline.equation_marks, *headline.core_marks]
    readme.write_text("\n".join(marks) + "\n")
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 0
    assert all((tmp_path / path).stat().st_size > 10_000 for path in opening.FIGURES.values())
    assert "| FNO | 0.0200 (1)" in readme.read_text() and out.read_text().startswith("# Results")


def test_a_table_page_draws_cost_over_the_columns_that_are_filled(cells):
    shifts = {"finer": {"scores": {"rel_l2": {"value": 0.0125}}}}
    known = recorded(cells, {"FNO": 0.02, "trees": 1e-5}) | recorded(cells, {"solver": 1e-8}, shifts=shifts)
    filled = fill(table(NAME), known)
    ((drawing, caption),) = paper._cost(filled, filled.groups[0], "c")
    assert "(J=128)" in caption and all(name in drawing for name in ("FNO", "trees", "solver"))
    assert not list(paper._cost(filled, filled.groups[1], "c"))
