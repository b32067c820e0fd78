"""A small table of laws, really made: data with members, runs, drawn noise, references and skill."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spdebench.campaign.run import fill_missing
from spdebench.campaign.unit import Places
from spdebench.errors import UserError
from spdebench.metrics import skill
from spdebench.paper.base import Table, Want, data
from spdebench.paper.fill import fill
from spdebench.records import store
from spdebench.report.board.shown import shown_runs
from spdebench.report.formatting import page_name
from spdebench.report.run_laws import laws_of
from spdebench.report.site import build
from spdebench.report.site.content import Content
from spdebench.report.site.render import Templates
from spdebench.report.site.runs import run_pages
from spdebench.training import open_run
from spdebench.training.law_rows import CONDITIONAL_MEAN, INDEPENDENT_LAW
from tiny_tables import places, todo

WHOLE = data("phi41", points=16, frames=5, steps=5, truncation=8, sigma=1.0, kappa=0.1, n=60)
PART = dataclasses.replace(WHOLE, seen=2, members=6)
METRICS = ("skill", "energy_score", "crps", "mean_error")


def tiny_laws() -> Table:
    common: dict[str, Any] = {"inputs": "u0+xi", "published": None}
    small: dict[str, Any] = {"model": "deeponet", "config": {"width": 8}}
    task = {"split": "blocks"}
    wants = []
    for metric in METRICS:
        place = {"column": metric, "metric": metric, **common}
        law = {"group": "law", "data": (PART,), "task": {**task, "seen": 2}, **place}
        whole = {"data": (WHOLE,), "task": {**task, "seen": 8}, "options": {"epochs": 2}, **place}
        wants += [
            Want(group="whole", row="climatology", model="climatology", **{**whole, "options": {}}),
            Want(group="whole", row="DeepONet", **whole, **small),
            Want(row="climatology", model="climatology", **law),
            Want(row="DeepONet", options={"epochs": 2, "loss": "energy"}, **law, **small),
            Want(group="law", row="drawn", part="seen=2", test=PART, ranked=False, **whole, **small),
            Want(row="conditional mean", model=INDEPENDENT_LAW, part=CONDITIONAL_MEAN, ranked=False, **law),
            Want(row="true law", model=INDEPENDENT_LAW, ranked=False, **law),
        ]
    return Table(name="tiny-laws", title="Tiny laws", source="not in the paper", wants=tuple(wants))


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Places:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("laws")
    where = places(folder)
    outcomes = fill_missing(todo(tiny_laws().cells(1), where), where)
    assert {o.state for o in outcomes} == {"added"}, [o.message for o in outcomes]
    return where


def test_every_number_of_a_table_of_laws_is_made(made):
    known = store.read(made.results)
    filled = fill(tiny_laws(), known, 1)
    value = {(e.cell.group, e.cell.row, e.cell.metric): e.mean for e in filled.entries}
    assert all(v is not None and math.isfinite(v) for v in value.values())
    assert not filled.missing()
    energy = {row: value["law", row, "energy_score"] for row in filled.rows}
    ends = energy["climatology"], energy["true law"]
    assert value["law", "DeepONet", "skill"] == pytest.approx(skill(ends[0], energy["DeepONet"], ends[1]))
    assert ends[1] < energy["conditional mean"] < ends[0]  # no law is better than the true one
    assert value["whole", "climatology", "skill"] == 0.0


def test_with_all_noise_seen_the_law_is_a_point(made):
    """The sample is the truth: the error of the mean is the relative L2 error, and the CRPS the mean absolute error."""
    cells = [c for c in tiny_laws().cells(1) if (c.group, c.row) == ("whole", "DeepONet")]
    record = store.read(made.results)[cells[0].runs[0].digest]
    assert record.value("mean_error") == pytest.approx(record.value("rel_l2"), rel=1e-5)
    assert 0 < record.value("crps") < record.value("energy_score")


def test_the_page_of_a_run_shows_its_law(made):
    """Fan, members and ranks; members that do not fit are refused."""
    cell = next(c for c in tiny_laws().cells(1) if (c.group, c.row) == ("law", "DeepONet"))
    digest = cell.runs[0].digest
    files, _ = build.data_files(made.data)
    assert {file.spec.members for file in files.values()} == {1}  # files of members are shown with their samples
    folder = Path(made.runs) / cell.runs[0].name
    content = Content(shown_runs({digest: store.read(made.results)[digest]}), {page_name(digest): folder}, files)

    file = next(f.path for f in files.values() if f.spec.seen == 2)
    laws = laws_of(open_run(folder), file)
    assert laws.truth.shape == (4, 6, 6, 16) and laws.predicted.shape == (4, 64, 6, 16)
    ((_, page),) = run_pages(content, Templates(False))
    assert all(words in page for words in ("bands of these", "True and predicted members", "Ranks of true values"))
    np.save(folder / "members.npy", np.zeros((4, 2)))
    with pytest.raises(UserError, match="does not fit the true members"):
        laws_of(open_run(folder), file)
