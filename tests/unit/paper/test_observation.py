"""The table of laws: skill is computed from three records, its data have members, and cheap runs come first."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spdebench.campaign import plan
from spdebench.campaign.needs import Needs
from spdebench.metrics.law import terms
from spdebench.paper.base import Cell
from spdebench.paper.catalogue import table
from spdebench.paper.fill import fill
from spdebench.paper.filled import Filled
from spdebench.paper.skill import skill_interval
from spdebench.records import Record, store
from spdebench.report import headline
from spdebench.report.numbers import measured
from spdebench.report.observation_table import observation_tables
from spdebench.report.paper_figures import FIGURES
from spdebench.training.law_rows import INDEPENDENT_LAW
from tiny_tables import made_up

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    return table("observation").cells(1)


def scored(cells: list[Cell], wanted: dict[tuple[str, str], float]) -> dict[str, Record]:
    """Records whose energy score is given by group and row."""
    runs = {(c.group, c.row): c.runs[0] for c in cells}
    parts = {(c.group, c.row): c.part for c in cells}
    out: dict[str, Record] = {}
    for place, value in wanted.items():
        run, scores = runs[place], {"energy_score": {"value": value}}
        changes: dict[str, Any] = {"scores": scores}
        if parts[place] != "test":
            changes = {"scores": {}, "shifts": {parts[place]: {"scores": scores}}}
        out[run.digest] = made_up(run, 0.1, **changes)
    return out


def skills(filled: Filled, group: str) -> dict[str, float | None]:
    return {e.cell.row: e.mean for e in filled.entries if (e.cell.group, e.cell.metric) == (group, "skill")}


def test_skill_lies_between_climatology_and_the_true_law(cells):
    law = "kpz, seen=8"
    known = scored(
        cells,
        {
            (law, "climatology"): 3.0,
            (law, "true law"): 1.0,
            (law, "FNO"): 1.5,
            (law, "NSPDE, drawn noise"): 3.5,
            ("kpz, seen=J", "climatology"): 4.0,
            ("kpz, seen=J", "FNO"): 1.0,
        },
    )
    filled = fill(table("observation"), known, 1)
    found = skills(filled, law)
    assert found["climatology"] == 0.0 and found["true law"] == 1.0
    assert found["FNO"] == pytest.approx(0.75) and found["NSPDE, drawn noise"] == pytest.approx(-0.25)
    assert found["step"] is None
    assert filled.best[law, "skill"] == ("FNO",)  # the true law and drawn noise do not compete
    assert skills(filled, "kpz, seen=J")["FNO"] == pytest.approx(0.75)  # the true law is a point and scores 0
    page = observation_tables(known)
    assert "| FNO | **0.750** | **0.750** | - | - |" in page and "`phi41`" not in page
    drawn = FIGURES["observation"](filled)
    lines = {line.get_label(): list(line.get_ydata()) for line in drawn.figure.axes[0].get_lines()}
    assert lines["FNO"] == pytest.approx([0.75, 0.75]) and lines["climatology"] == [0.0, 0.0]
    assert lines["true law"] == [1.0, 1.0]


def test_a_line_has_a_gap_where_a_run_is_missing(cells):
    values = {"climatology": 3.0, "true law": 1.0}
    wanted = {(f"kpz, seen={k}", row): value for k in (8, 2, 0) for row, value in values.items()}
    known = scored(cells, wanted | {(f"kpz, seen={k}", "FNO"): 1.5 for k in (8, 0)})
    drawn = FIGURES["observation"](fill(table("observation"), known, 1))
    (line,) = [line for line in drawn.figure.axes[0].get_lines() if line.get_label() == "FNO"]
    assert list(line.get_ydata()) == pytest.approx([0.75, np.nan, 0.75], nan_ok=True)  # seen = 0, 2, 8


def test_there_is_no_skill_before_both_references_have_a_record(cells):
    law = "kpz, seen=8"
    known = scored(cells, {(law, "climatology"): 3.0, (law, "FNO"): 1.5})
    filled = fill(table("observation"), known, 1)
    assert set(skills(filled, law).values()) == {None}
    entry = next(e for e in filled.entries if (e.cell.group, e.cell.row, e.cell.metric) == (law, "FNO", "skill"))
    assert entry.missing == 0  # the run of this row is made; it is another one that is missing


def test_there_is_no_skill_where_the_climatology_is_the_law(cells):
    law = "nse, seen=0"
    known = scored(cells, {(law, "climatology"): 1.0, (law, "true law"): 0.995, (law, "FNO, drawn noise"): 2.0})
    filled = fill(table("observation"), known, 1)
    assert set(skills(filled, law).values()) == {None}
    shown = {e.cell.row: measured(e) for e in filled.entries if (e.cell.group, e.cell.metric) == (law, "skill")}
    assert shown["FNO, drawn noise"] == "none" and shown["step"] == "-"  # no skill is possible; not run yet


@pytest.mark.parametrize(("climate", "truth"), [("nan", 1.0), (3.0, "nan"), ("inf", 1.0), ("nan", "nan")])
def test_there_is_no_skill_where_a_reference_has_no_finite_score(cells, climate, truth):
    law = "kpz, seen=8"
    known = scored(cells, {(law, "climatology"): climate, (law, "true law"): truth, (law, "FNO"): 1.5})
    filled = fill(table("observation"), known, 1)
    assert set(skills(filled, law).values()) == {None}
    shown = {e.cell.row: measured(e) for e in filled.entries if (e.cell.group, e.cell.metric) == (law, "skill")}
    assert shown["FNO"] == "-"


def test_the_interval_of_a_skill_is_that_of_a_ratio_of_means(cells):
    """By the delta method skill +- 1.96 s.d.(gained - skill gap) / (sqrt(N) mean gap), N = 180 inputs."""
    rng = np.random.default_rng(0)
    climate, law = 2 + 0.3 * rng.standard_normal((2, 180))
    law, own = 0.5 * law, climate - 1.2 + 0.2 * rng.standard_normal(180)
    entries = fill(table("observation"), {}, 1).entries[:3]
    a, b, c = (replace(e, samples=x) for e, x in zip(entries, (climate, own, law), strict=True))
    for ensemble, gap in ((c, climate - law), (None, climate)):
        gained = climate - own
        value = gained.mean() / gap.mean()
        half = 1.96 * (gained - value * gap).std() / (np.sqrt(180) * gap.mean())
        found = skill_interval(a, b, ensemble)
        assert found is not None
        assert (found.low, found.high) == pytest.approx((value - half, value + half), abs=0.2 * half)
    assert skill_interval(a, replace(b, samples=None), c) is None


def test_the_sentence_about_another_seed_has_the_numbers_of_its_table():
    text = " ".join((ROOT / headline.LAW_PAGE).read_text(encoding="utf-8").split())
    row = r"\| (phi41|kpz) \| seen=(\w) \| ([\d.]+) \[.*?\] \| ([\d.]+) \[.*?\] \|"
    found = {(name, seen): numbers for name, seen, *numbers in re.findall(row, text)}
    for name in ("phi41", "kpz"):
        laws = [found[name, seen] for seen in "J820"]
        words = ["{}, {}, {} and {}".format(*(pair[k] for pair in laws)) for k in (1, 0)]
        assert " instead of ".join(words) in text


def test_a_run_of_the_table_needs_members(cells, tmp_path):
    chosen = [c for c in cells if c.group == "phi42, seen=2" and c.row == "FNO"]
    (job,) = plan.jobs(chosen, {}, tmp_path)
    assert job.members == 16 and job.spec.options["loss"] == "energy"
    facts = plan.overview(chosen, [job], tmp_path)["datasets"]
    samples, members = facts["missing"]
    assert "seen2" in samples and "-members16-" in members
    path = 4 * 26 * 32 * 32
    assert facts["bytes"] == 1200 * (3 * path + path // 26) + 180 * 15 * path


def test_drawn_noise_is_another_score_of_the_run_that_saw_everything(cells):
    own = {c.runs[0].digest for c in cells if c.group == "phi41, seen=J" and c.row == "FNO"}
    drawn = [c for c in cells if c.group == "phi41, seen=2" and c.row == "FNO, drawn noise"]
    assert {c.runs[0].digest for c in drawn} == own and {c.part for c in drawn} == {"seen=2"}
    assert drawn[0].shift.seen == 2 and drawn[0].members == 64


def test_one_dimension_comes_first(cells, tmp_path):
    jobs = plan.jobs([c for c in cells if c.model in ("climatology", "fno", INDEPENDENT_LAW)], {}, tmp_path, "cuda")
    order = Needs({}).ordered(jobs)
    planes = [job.spec.datasets[0]["equation"] in ("phi42", "nse") for job in order]
    assert planes == sorted(planes)
    lines = [job.trained for job, plane in zip(order, planes, strict=True) if not plane]
    assert lines == sorted(lines)  # without training first


def test_the_notes_state_the_nominal_coverage():
    i, j = terms.interval_ranks(64, 0.9)
    assert f"{(j - i) / 65:.3f}" in table("observation").notes[-1]


def test_the_committed_page_is_what_the_records_give():
    text = (ROOT / headline.LAW_PAGE).read_text(encoding="utf-8")
    again = "out of date: type 'spdebench results --out docs/results.md --readme README.md'"
    assert headline.law_page(text, store.read(ROOT / "results")) == text, again
