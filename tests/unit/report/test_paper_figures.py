"""The paper's figures, drawn from small runs that were really made: what is drawn is what the runs say."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from spdebench.campaign.run import fill_missing
from spdebench.cli.main import main
from spdebench.data import open_dataset
from spdebench.data.identity import dataset_of
from spdebench.errors import UserError
from spdebench.metrics import metric_title
from spdebench.paper import catalogue
from spdebench.paper.catalogue import TABLES, table
from spdebench.paper.fill import fill
from spdebench.paper.shown_sample import shown_grids
from spdebench.records import FigureData, Record
from spdebench.records import store as records
from spdebench.report.paper_figures import FIGURES, radar
from spdebench.report.site import build
from spdebench.report.site.paper import table_pages
from spdebench.report.site.render import Templates
from spdebench.training import open_run, part_for
from tiny_figures import tiny_evolution, tiny_losses, tiny_moments, tiny_radar
from tiny_tables import places, todo

TINY = {t.name: t for t in (tiny_radar(), tiny_moments(), tiny_losses(), tiny_evolution())}
SEEDS = 2


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """All runs of the four figures, made once."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("figures")
    where = places(folder)
    cells = [cell for each in TINY.values() for cell in each.cells(SEEDS)]
    outcomes = fill_missing(todo(cells, where), where)
    assert {o.state for o in outcomes} == {"added"}, [o.message for o in outcomes]
    return folder


def drawn(made: Path, name: str, known=None):
    known = records.read(made / "results") if known is None else known
    return FIGURES[name](fill(TINY[name], known, SEEDS))


def lines(axes) -> list[np.ndarray]:
    return [np.asarray(line.get_ydata(), dtype=float) for line in axes.get_lines()]


def test_every_figure_of_runs_is_drawn():
    """A figure of the catalogue that needs runs has a drawing, and says its command."""
    wanted = {t.name: t.draw for t in TABLES if t.wants and (t.kind == "figure" or t.draw)}
    assert set(wanted) == set(FIGURES)
    assert all(draw == (f"spdebench plot {name}",) for name, draw in wanted.items())


# --- radar --------------------------------------------------------------------------------------------------------
def test_radius_is_a_decade_a_ring():
    assert radar.radius(0.02, 0.02) == 1.0
    assert radar.radius(0.2, 0.02) == pytest.approx(2 / 3)
    assert radar.radius(2.0, 0.02) == pytest.approx(1 / 3)
    assert [radar.radius(x, 0.02) for x in (50.0, math.inf, math.nan, None)] == [0.0] * 4
    assert radar.radius(0.0, 0.0) == 1.0 and radar.radius(1.0, 0.0) == 0.0


def test_radar_shows_the_scores(made):
    found = drawn(made, "radar")
    assert not found.missing
    filled = fill(TINY["radar"], records.read(made / "results"), SEEDS)
    for axes, group in zip(found.figure.axes, filled.groups, strict=True):
        for ends, row in zip(lines(axes), group.rows, strict=True):
            best = [min(e.mean for e in group.column(c)) for c in group.columns]
            wanted = [1 - math.log10(e.mean / b) / 3 for e, b in zip(group.row(row), best, strict=True)]
            assert ends == pytest.approx([*wanted, wanted[0]])
        assert np.max(lines(axes), axis=0) == pytest.approx(1)  # on every axis somebody is the best
        labels = [label.get_text().replace("\n", " ") for label in axes.get_xticklabels()]
        assert labels == [metric_title(column) for column in group.columns] and labels[0] == "relative L2"


def test_radar_draws_what_there_is_and_names_the_rest(made):
    known = records.read(made / "results")
    for digest in [d for d, r in known.items() if r.model == "gt"]:
        del known[digest]
    found = drawn(made, "radar", known)
    assert [len(axes.get_lines()) for axes in found.figure.axes] == [2, 2]
    what, command = found.missing[0]
    assert what == "dirichlet: xi -> u, GT; periodic: xi -> u, GT"
    assert command == "spdebench table radar --run --only gt --seeds 2"
    assert "No complete runs yet: GT" in " ".join(t.get_text().replace("\n", " ") for t in found.figure.texts)
    groups = fill(TINY["radar"], known, SEEDS).groups
    for digest in {digest for entry in groups[0].entries.values() for digest in entry.digests}:
        known.pop(digest, None)
    found = drawn(made, "radar", known)
    assert [len(axes.get_lines()) for axes in found.figure.axes] == [2]  # no empty panel
    assert f"panel {groups[0].name}" in " ".join(t.get_text().replace("\n", " ") for t in found.figure.texts)
    assert drawn(made, "radar", {}).figure is None


# --- mean and variance --------------------------------------------------------------------------------------------
def test_moments_are_those_of_the_predictions_and_the_data(made):
    found = drawn(made, "mean-variance")
    assert not found.missing
    grid = np.array(found.figure.axes).reshape(4, 2)
    table = TINY["mean-variance"]
    for column, j in enumerate((8, 4)):
        cells = [c for c in table.cells(SEEDS) if c.group == f"J={j}"]
        truth = part_of(made, cells[0]).u.numpy().astype(float)
        own = [np.load(made / "runs" / c.runs[0].name / "predictions.npy").astype(float) for c in cells]
        for line, (statistic, frame) in enumerate((s, f) for s in ("mean", "variance") for f in (5, 10)):
            for curve, u in zip(lines(grid[line, column]), (truth, *own), strict=True):
                wanted = u[:, frame].mean(0) if statistic == "mean" else u[:, frame].var(0, ddof=1)
                assert curve == pytest.approx(wanted, rel=1e-3)  # four digits are kept


def part_of(made: Path, cell):
    run = open_run(made / "runs" / cell.runs[0].name)
    return part_for(run, open_dataset(made / "data" / dataset_of(run.spec.datasets[0]).file_name))


def test_a_record_without_moments_is_named(made):
    known = records.read(made / "results")
    cell = next(c for c in TINY["mean-variance"].cells(SEEDS) if (c.group, c.model) == ("J=4", "gt"))
    digest = cell.runs[0].digest
    known[digest] = dataclasses.replace(known[digest], figure_data=FigureData())
    found = drawn(made, "mean-variance", known)
    assert found.missing == (("J=4, GT", "spdebench table mean-variance --run --only gt --seeds 2"),)
    assert [len(axes.get_lines()) for axes in found.figure.axes] == [3, 2] * 4


@pytest.mark.parametrize("bad", [3, [], {}, {"frames": [1]}, "short", "deep"])
def test_moments_that_are_none_are_refused(made, bad):
    good = next(r for r in records.read(made / "results").values() if r.figure_data.moments).to_dict()
    moments = good["figure_data"]["moments"]
    if bad == "short":
        bad = moments | {"times": []}
    elif bad == "deep":
        bad = moments | {"true": {"mean": [["x"]], "variance": [[0.0]]}}
    with pytest.raises(UserError, match="moments"):
        Record.from_dict(good | {"figure_data": {"moments": bad}})


# --- losses -------------------------------------------------------------------------------------------------------
def test_losses_show_the_logs_and_the_scores(made):
    found = drawn(made, "loss-comparison")
    assert not found.missing
    left, right = found.figure.axes
    cells = [c for c in TINY["loss-comparison"].cells(SEEDS) if c.column == "rel_l2"]
    logs = [open_run(made / "runs" / run.name).log for cell in cells for run in cell.runs]
    assert len(left.get_lines()) == len(cells) * SEEDS
    for curve, log in zip(lines(left), logs, strict=True):
        assert curve == pytest.approx([line["val"] for line in log], rel=1e-3)
    filled = fill(TINY["loss-comparison"], records.read(made / "results"), SEEDS)
    for bars, row in zip(right.containers, filled.rows, strict=True):
        assert bars.lines[0].get_xdata() == pytest.approx([e.mean for e in filled.groups[0].row(row)])


def test_losses_without_logs_show_scores_and_say_so(made):
    found = drawn(made, "loss-comparison", without_figure_data(made))
    assert len(found.figure.axes[0].get_lines()) == 0 and len(found.figure.axes[1].containers) == 2
    assert found.missing == (("loss rel_l2; loss w12", "spdebench table loss-comparison --run --only nspde --seeds 2"),)


# --- evolution ----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def evolution_run(made):
    return open_run(made / "runs" / TINY["nse-evolution"].cells(SEEDS)[0].runs[0].name)


def test_evolution_shows_the_predicted_fields_of_the_record_and_solves_the_true_ones(made, evolution_run):
    """On its own grid that is what the run has kept; on the finer one the truth is the same path at more points."""
    frames = [2, 4, 6, 8, 10]
    truth = part_of(made, TINY["nse-evolution"].cells(SEEDS)[0]).u[0].numpy()[frames]
    kept = np.load(evolution_run.file("predictions.npy"))[0, frames]
    found = drawn(made, "nse-evolution")
    assert not found.missing
    pictures = [axes.images[0].get_array().data.T for axes in found.figure.axes if axes.images]
    own, finer = (np.stack(pictures[k : k + 5]) for k in (0, 15))
    assert own.shape == (5, 8, 8) and finer.shape == (5, 16, 16)
    assert own == pytest.approx(truth, rel=1e-4, abs=1e-6)
    assert finer[:, ::2, ::2] == pytest.approx(own, rel=1e-4, abs=1e-6)
    close = 2**-15 * np.abs(kept).max()
    assert np.abs(np.stack(pictures[5:10]) - kept).max() < close
    assert np.abs(np.stack(pictures[10:15]) - (kept - truth)).max() < close + 1e-5
    titles = [axes.get_title(loc="left") for axes in found.figure.axes[:5]]
    assert titles == [f"t = {t:g}" for t in (0.1, 0.2, 0.3, 0.4, 0.5)]


def test_the_finer_grid_of_evolution_is_the_one_that_the_data_are_solved_on(made):
    """The columns of the table are the names of the grids, and their data those that are shown."""
    for each in (table("nse-evolution"), TINY["nse-evolution"]):
        own, finer = each.cells(1)
        grids = shown_grids(own.runs[0])
        assert list(grids) == [own.column, finer.column]
        assert grids[own.column] == (dataset_of(own.runs[0].datasets[0]).equation, 1)
        assert grids[finer.column] == (finer.shift.equation, 1)
        assert finer.shift.equation.solve_points == grids[own.column][0].solve_points


def test_evolution_without_fields_in_the_records_says_what_to_type(made):
    known = without_figure_data(made)
    found = drawn(made, "nse-evolution", known)
    assert found.figure is None
    assert found.missing == (("NSPDE", "spdebench table nse-evolution --run --only nspde --seeds 2"),)
    filled = fill(TINY["nse-evolution"], known, SEEDS)
    assert filled.done == 2 and not any(entry.drawable for entry in filled.entries)
    assert all(entry.drawable for entry in fill(TINY["nse-evolution"], records.read(made / "results"), SEEDS).entries)


def test_fields_of_another_sample_are_not_compared_with_this_one(made, evolution_run):
    known = records.read(made / "results")
    record = known[evolution_run.spec.digest]
    data = record.figure_data.fields
    for other in (dataclasses.replace(data, row=data.row + 1), dataclasses.replace(data, frames=(1, 2, 3, 4, 5))):
        forged = dataclasses.replace(record, figure_data=FigureData(fields=other))
        with pytest.raises(UserError, match="not those of sample"):
            drawn(made, "nse-evolution", known | {record.digest: forged})


def without_figure_data(made: Path) -> dict[str, Record]:
    known = records.read(made / "results")
    return {digest: dataclasses.replace(record, figure_data=FigureData()) for digest, record in known.items()}


# --- the verb and the site ----------------------------------------------------------------------------------------
@pytest.fixture
def small(monkeypatch):
    """The catalogue's figures replaced by the small ones."""
    monkeypatch.setattr(catalogue, "table", TINY.__getitem__)
    monkeypatch.setattr(build, "TABLES", tuple(TINY.values()))


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(list(words))
    return stopped.value.code


@pytest.mark.parametrize("name", TINY)
def test_the_verb_draws_each(made, small, tmp_path, name, capsys):
    out = tmp_path / f"{name}.png"
    assert run("plot", name, "--results", str(made / "results"), "--out", str(out)) == 0
    assert str(out) in capsys.readouterr().out and out.stat().st_size > 20_000


def test_records_without_fields_are_one_line_and_no_file(made, small, tmp_path, capsys):
    for record in without_figure_data(made).values():
        records.add(tmp_path / "results", record)
    out = tmp_path / "a.png"
    assert run("plot", "nse-evolution", "--results", str(tmp_path / "results"), "--out", str(out)) == 2
    error = capsys.readouterr().err
    assert "not the data that it shows" in error and "'spdebench table nse-evolution --run --seeds 1'" in error
    assert error.count("\n") == 1 and not out.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plot", "radar", "--results", "none"), "spdebench table radar --run"),
        (("plot", "radar", "phi41"), "takes no 'phi41'"),
        (("plot", "radr"), "did you mean 'radar'"),
        (("plot", "noise"), "needs a dataset file"),
        (("plot", "truncation"), "needs an equation"),
        (("plot", "truncation-statistics"), "spdebench plot truncation phi41 sigma=1 -n 1200"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(*words) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1 and not list(tmp_path.iterdir())


def test_the_site_shows_them(made, small, monkeypatch, tmp_path):
    pages = dict(table_pages(build.gather(made / "results", None, None), Templates(tables=True)))
    for name in TINY:
        page = pages[f"tables/{name}.html"]
        assert page.count("<figure") == 1 and "rawn yet" not in page, name
    monkeypatch.setattr(build, "TABLES", (TINY["nse-evolution"],))
    for record in without_figure_data(made).values():
        records.add(tmp_path, record)
    bare = dict(table_pages(build.gather(tmp_path, None, None), Templates(tables=True)))
    page = bare["tables/nse-evolution.html"]
    assert "<figure>" not in page
    assert "Nothing is drawn yet" in page
    assert "<li>NSPDE: <code>spdebench table nse-evolution --run --only nspde</code></li>" in page
