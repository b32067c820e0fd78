"""Every published number has a cell, and every cell a run that can be built."""

from __future__ import annotations

import csv
from collections import Counter
from importlib import resources

import pytest

from spdebench.campaign.plan import published_status
from spdebench.models import MODELS
from spdebench.paper import published
from spdebench.paper.catalogue import TABLES, table
from spdebench.training import RunSpec


def lines() -> list[dict[str, str]]:
    text = (resources.files("spdebench.paper") / "published.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def test_all_594_published_numbers_have_their_own_cell():
    cells = [cell for each in TABLES for cell in each.cells()]
    entries = published_status(cells, {})
    assert len(entries) == len(lines()) == 594
    assert Counter(key for cell in cells for key in cell.published_keys) == Counter(range(2, 596))
    assert all(e["status"] == "missing" and e["digests"] for e in entries)
    for entry, row in zip(entries, lines(), strict=True):
        assert entry["table"] == row["table"]
    by_line = {key: cell for cell in cells for key in cell.published_keys}
    for line, row in enumerate(lines(), start=2):
        cell = by_line[line]
        assert cell.published == float(row["mean"])
        assert cell.published_std == (float(row["std"]) if row["std"] else None)
        assert published.title(cell.model) == row["model"]
        assert published.METRICS.get(cell.metric, cell.metric) == row["metric"]


def test_wants_find_their_numbers_without_models():
    """What a file declares as published is published, and nothing published is left over."""
    found: Counter[int] = Counter()
    for each in TABLES:
        for want in each.wants:
            if want.published is None or each.kind == "figure":
                continue
            numbers = published.find(each.source, want.columns())
            assert numbers, (each.name, want.columns())
            found.update(n.line for n in numbers)
    assert set(found) == {n.line for n in published.numbers()}


@pytest.mark.parametrize("each", [*TABLES], ids=lambda t: t.name)
@pytest.mark.parametrize("edition", ["paper", "converged"])
def test_every_run_can_be_built(each, edition):
    """Configurations are valid for their model and data, and what a run is planned as is what it will be named."""
    for cell in each.cells(1, edition):
        (run,) = cell.runs
        expected = each.edition or edition
        if not isinstance(run, RunSpec):
            assert run.dataset.equation.edition == expected
            continue
        model = MODELS[run.model]
        model.supports(run.setting)
        assert run.setting.equation.edition == expected
        assert run.options["epochs"] == (0 if not model.trainable else run.options["epochs"])
        if cell.shift is not None:
            same = cell.shift.equation.grid.points == run.setting.grid.points
            assert same or model.any_grid


def test_the_paper_is_read_as_stated():
    """Readings that are easy to get wrong."""
    every = {(t.name, w.group, w.row, w.column): w for t in TABLES for w in t.wants}
    kpz = every["wave-kdv-kpz-nse", "KPZ, sigma 0.1: xi -> u", "FNO", "J=32"].data[0].spec().equation
    assert (kpz.coupling, kpz.sigma, kpz.truncation, kpz.kappa) == (0.5, 0.1, 32, 0.0)
    nse = every["wave-kdv-kpz-nse", "NSE: (u0, xi) -> u", "NSPDE", "J=128"].data[0].spec().equation
    assert (nse.kappa, nse.points) == (1.0, 16)
    kdv = every["wave-kdv-kpz-nse", "KdV, Q-Wiener: (u0, xi) -> u", "GT", "J=64"].data[0].spec().equation
    assert (kdv.noise, kdv.points, kdv.kappa) == ("q_wiener", 128, 0.1)
    mixed = every["phi42-noise-levels", "trained on all five, tested on J", "NSPDE-S", "J=8"]
    assert [d.spec().equation.truncation for d in mixed.data] == [2, 8, 32, 64, 128]
    assert mixed.test.spec().equation.truncation == 8
    scaled = every["scaling", "samples for training and validation", "FNO", "n=3000"]
    rows = scaled.task_spec("paper").rows(scaled.data[0].n)
    assert [len(rows[p]) for p in ("train", "val", "test")] == [2400, 600, 600]
    haar = every["fourier-haar", "Haar, J=256", "WNO", "sigw1"].data[0].spec().equation
    assert (haar.basis, haar.sigma) == ("haar", 1.0)
    phi43 = every["metrics-singular", "Phi43", "FNO", "rel_l2"]
    assert (phi43.data[0].spec().equation.truncation, phi43.task_spec("paper").every) == (16, 8)
    loss = every["loss-comparison", "", "NSPDE, loss w12", "rel_l2"]
    assert dict(loss.options) == {"loss": "w12"}


def test_reference_rows_are_in_every_table_of_errors():
    for each in TABLES:
        errors = [w for w in each.wants if w.metric == "rel_l2" and w.part != "fresh"]
        if each.kind == "figure" or not errors:
            continue
        for group, column in dict.fromkeys((w.group, w.column) for w in errors):
            rows = {w.row for w in errors if (w.group, w.column) == (group, column)}
            assert {"mean", "linear", "trees", "solver", "solver vs fine reference"} <= rows, (each.name, group, column)


def test_runs_are_shared_between_tables():
    """The base of the network scaling is the main table's run; the radar needs no run of its own but NORS."""
    main = {r.digest for c in table("phi41-periodic-sigma1").cells() for r in c.runs}
    base = [c for c in table("scaling").cells() if c.column == "W*D"]
    assert base and all(r.digest in main for c in base for r in c.runs)


def test_an_unknown_table_is_one_line():
    with pytest.raises(Exception, match="did you mean 'scaling'"):
        table("scalin")
