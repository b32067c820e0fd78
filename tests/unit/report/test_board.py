"""Submissions and our runs in one ranking: on the command line, in files and on the site."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import spdebench as sb
from fake_records import EVIL, dataset, record, solver_record
from html_check import Page, check_page, table, text
from spdebench import spec
from spdebench.challenge import submissions
from spdebench.cli.main import main
from spdebench.data import DatasetSpec
from spdebench.errors import UserError
from spdebench.records import Record
from spdebench.records.store import add
from spdebench.report.board import Leaderboard, listing, problems_of, rows_of, shown_runs, shown_submissions
from spdebench.report.board.problems import LAW
from spdebench.report.board.shown import ShownDataset, pilots_of
from spdebench.report.board.submitted import identity_of
from spdebench.report.site import build
from spdebench.report.site.pages import _boards
from spdebench.report.site.render import Templates
from spdebench.report.site.submissions import submission_pages
from spdebench.suites import CORE
from submitted import CARD, scored, write_submission_folder

PHI41 = CORE.choose("phi41")[0].spec
TASK = {"inputs": "u0+xi", "split": "blocks", "seed": 3407, "n": 0, "every": 1, "stride": 1}

SOLVED = spec.digest({"solver": 1, "dataset": PHI41.to_dict(), "task": TASK})


def ours(model: str, error: float, seed: int = 0, **changes: Any) -> Record:
    return record(model, PHI41, seed, task=TASK, scores={"rel_l2": {"value": error}}, **changes)


@pytest.fixture(scope="module", autouse=True)
def no_tables():
    """Planning the pilots of all tables takes longer than all of this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "TABLES", ())
        patch.setattr(build, "TABLES", ())
        yield


@pytest.fixture(scope="module")
def records() -> dict[str, Record]:
    """A network with three seeds, one with one, a baseline, and the solver, whose own error 1e-7 is the floor."""
    found = [ours("fno", 0.03 + 0.001 * seed, seed) for seed in range(3)]
    found += [ours("wno", 0.2), ours("mean", 0.9), solver_record(PHI41, task=TASK, digest=SOLVED)]
    return {entry.digest: entry for entry in found}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """One submission with three seeds on hidden truth, of which one was run again, and one with nothing of that."""
    base = tmp_path_factory.mktemp("submissions")
    three = tuple(
        scored(seed=seed, value=0.02 + 0.001 * seed, again=0.0202 if seed == 0 else None) for seed in range(3)
    )
    write_submission_folder(base / "good", three)
    plain = CARD.replace("A small regression", "Another one")
    write_submission_folder(base / "late", (scored(value=0.1, hidden=False, again=0.2),), plain)
    return base


def board(records: dict[str, Record], folder: Path) -> listing.ProblemBoard:
    (found,) = listing.boards(CORE, records, submissions(folder))
    return found


def test_submissions_and_runs_are_ranked_together(records, folder):
    rows = {row["model"]: row for row in listing.tidy([board(records, folder)])}
    order = ["A small regression", "fno", "Another one", "wno", "mean"]
    assert list(rows) == order and [row["rank"] for row in rows.values()] == [1, 2, 3, 4, 5]
    good, late = rows["A small regression"], rows["Another one"]
    assert (good["hidden"], good["reproduced"], good["seeds"], good["few_seeds"]) == (True, True, 3, False)
    assert (late["hidden"], late["reproduced"], late["seeds"], late["few_seeds"]) == (False, False, 1, True)
    assert good["submission"] == "good" and good["parameters"] == 120 and good["training_seconds"] == 30
    assert rows["fno"]["hidden"] is None and rows["fno"]["few_seeds"] is False and rows["wno"]["few_seeds"] is True
    assert rows["mean"]["kind"] == "baseline" and rows["mean"]["few_seeds"] is False  # it does not depend on a seed
    assert all(0 < row["floor"] < 2e-7 for row in rows.values())


def test_errors_near_the_floor_are_not_ranked_and_the_floor_is_listed_in_order(records, tmp_path):
    floor = board(records, tmp_path).floor
    near = write_submission_folder(tmp_path / "near", (scored(value=1.1 * floor),))
    below = ours("nspde", 0.9 * floor)
    known = board(records | {below.digest: below}, near.parent)
    assert [row.first.model for row in known.leaders] == ["nspde", "A small regression"]
    assert [line["model"] for line in listing.lines(known)][:4] == ["nspde", "floor", "A small regression", "fno"]


def test_problems_of_a_suite_and_trained_ones_come_first(records):
    plain = record("mean", dataset(8, 0.5), 0)
    trained = record("fno", dataset(16, 0.5), 0)
    rows = rows_of(shown_runs({entry.digest: entry for entry in (plain, trained, *records.values())}, set()))
    order = Leaderboard(problems_of(rows)).by_interest
    assert [problem.rows[0].first.datasets[0].fields["truncation"] for problem in order] == [24, 16, 8]


def test_a_model_that_knows_the_scheme_and_a_pilot_have_no_rank(records, tmp_path):
    given = ours("linear", 1e-3, config={"kernel": "generator"})
    pilot = ours("gt", 1e-2)
    everything = {**records, given.digest: given, pilot.digest: pilot}
    (problem,) = problems_of(rows_of(shown_runs(everything, {pilot.digest})))
    ranks = {row.first.model: row.rank for row in problem.rows}
    assert ranks == {"linear": None, "solver": None, "fno": 1, "wno": 2, "mean": 3, "gt": None}
    assert list(ranks)[-1] == "gt"  # a pilot comes last
    assert problem.best_network is not None and problem.best_network.first.model == "fno"


def test_a_pilot_does_not_lengthen_the_name_of_the_run_that_it_was_for():
    final, short = ours("gt", 0.1, options={"lr": 1e-3, "epochs": 300}), ours("gt", 0.2, 1, options={"epochs": 100})
    rows = rows_of(shown_runs({final.digest: final, short.digest: short}, {short.digest}))
    assert [row.label for row in rows] == ["gt", "gt (lr=–, epochs=100)"]


def test_pilots_are_those_of_the_tables():
    """The committed records of the core suite hold pilots; none of them is a run that a table shows."""
    from spdebench.paper.catalogue import table as find

    core = find("core")
    small = dataclasses.replace(core, wants=tuple(w for w in core.wants if w.group == "phi41" and w.model == "fno"))
    pilots = pilots_of([small])
    assert len(pilots) == 3
    assert not pilots & {run.digest for cell in small.cells(3) for run in cell.runs}


def test_laws_are_ranked_by_their_own_score(records, folder, tmp_path):
    for name, value in (("first", 0.3), ("second", 0.2)):
        title = CARD.replace("A small regression", name)
        write_submission_folder(tmp_path / name, (scored(value=value, seen=4, members=16),), title)
    paths, law = listing.boards(CORE, records, (*submissions(folder), *submissions(tmp_path)))
    assert (paths.seen, law.seen) == (None, 4) and law.title == "phi41, seen=4"
    assert law.problem.metric == LAW and [row.first.model for row in law.leaders] == ["second"]
    assert len(paths.rows) == 5  # the other problem is as it was
    assert paths.at_floor(1.1 * (paths.floor or 0.0)) and not law.at_floor(0.0)


def test_our_laws_are_ranked_with_submitted_ones_and_the_true_law_is_the_floor(tmp_path):
    data, task = identity_of(CORE.choose("phi41")[0], 4)
    common = {"datasets": [data], "task": task, "epochs": 0}
    values = {"step": 0.25, "climatology": 0.9, "independent": 0.1}
    scores = {name: {LAW: {"value": value}, "crps": {"value": value}} for name, value in values.items()}
    found = [record(name, PHI41, digest=str(k) * 10, scores=scores[name], **common) for k, name in enumerate(values)]
    write_submission_folder(tmp_path / "ours", (scored(value=0.3, seen=4, members=16),))
    (law,) = listing.boards(CORE, {entry.digest: entry for entry in found}, submissions(tmp_path))
    assert [(row.rank, row.first.model) for row in law.rows] == [
        (1, "step"), (2, "A small regression"), (3, "climatology"),
    ]  # fmt: skip
    assert law.floor == 0.1 and [line["model"] for line in listing.lines(law)][:2] == ["floor", "step"]


# --- on the command line ------------------------------------------------------------------------------------------
def command(capsys, *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stop:
        main(["leaderboard", *words])
    seen = capsys.readouterr()
    return int(stop.value.code or 0), seen.out + seen.err


@pytest.fixture
def here(records, folder, tmp_path, monkeypatch) -> None:
    for entry in records.values():
        add(tmp_path / "r", entry)
    (tmp_path / "submissions").symlink_to(folder)
    monkeypatch.chdir(tmp_path)


def test_the_command_prints_who_leads_all_rows_csv_and_json(here, capsys):
    code, out = command(capsys, "--results", "r")
    first = next(line for line in out.splitlines() if line.startswith("phi41"))
    assert code == 0 and first.split()[1:5] == ["A", "small", "regression", "0.0210±1e-3"]
    code, out = command(capsys, "phi41", "--results", "r")
    assert code == 0 and "good: hidden truth, reproduced by us within 2 %" in out and "1 seed (fewer than 3)" in out
    assert "late: truth known to its authors, not reproduced within 2 %" in out and "the best possible" in out
    code, out = command(capsys, "all", "--results", "r", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0 and [row["rank"] for row in rows] == list("12345") and tuple(rows[0]) == listing.FIELDS
    code, out = command(capsys, "--results", "r", "--json")
    assert code == 0 and json.loads(out)[0]["model"] == "A small regression"
    code, out = command(capsys, "phi41", "--results", "r", "--format", "md")
    assert code == 0 and "| 1 | A small regression | 0.0210±1e-3 | 3 |" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["phy41", "--results", "r"], "unknown problem of the suite core 'phy41'; did you mean 'phi41'?"),
        (["--suite", "cor", "--results", "r"], "unknown suite 'cor'; did you mean 'core'?"),
        (["--format", "html", "--results", "r"], "unknown format 'html'"),
        (["nse", "--results", "r"], "no run and no submission on nse yet; 'spdebench table core --run' makes runs"),
        (["--submissions", "nowhere", "--results", "r"], "no such folder of submissions: nowhere"),
    ],
)
def test_a_mistake_is_one_line(here, capsys, words, message):
    code, out = command(capsys, *words)
    assert code == 2 and message in out and out.count("\n") == 1


def test_a_score_on_an_unknown_problem_is_one_line(tmp_path):
    write_submission_folder(tmp_path / "a", (scored("phi99"),))
    with pytest.raises(
        UserError,
        match="submission a: there is no problem phi99 of the suite core; 'spdebench suite core' lists its problems",
    ):
        shown_submissions(submissions(tmp_path))
    write_submission_folder(tmp_path / "a", (scored(suite="heart"),))
    with pytest.raises(UserError, match="of the suite heart; 'spdebench suite' lists the suites"):
        shown_submissions(submissions(tmp_path))


# --- on the site --------------------------------------------------------------------------------------------------
def test_the_site_ranks_them_together_draws_the_floor_and_shows_the_cards(records, folder, tmp_path):
    evil = json.dumps(EVIL)[1:-1].replace("\\\\", "/").replace('\\"', "'")
    write_submission_folder(tmp_path / "in" / "evil", (scored(value=0.5),), CARD.replace("A small regression", evil))
    for name in ("good", "late"):
        shutil.copytree(folder / name, tmp_path / "in" / name)
    content = build.gather(records, None, None, tmp_path / "in")
    templates = Templates(tables=False)
    made = dict([*_boards(content, templates), *submission_pages(content, templates)])
    for name in ("index.html", *(f"runs/{digest}.html" for digest in records), "datasets/index.html"):
        made.setdefault(name, "")
    made |= {f"datasets/{key}.html": "" for key in content.datasets}
    for name, words in made.items():
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text(words, encoding="utf-8")
    pages = {name: Page(tmp_path / "site" / name) for name, words in made.items() if words}
    for page in pages.values():
        check_page(page, tmp_path / "site")
    whole = pages["boards/index.html"]
    head, rows = table(whole)
    rows = [row for row in rows if not row[0].startswith("solver")]
    assert [row[head.index("rank")] for row in rows] == list("123456")
    first = rows[0][0].split()
    assert " ".join(first) == "A small regression submission hidden truth reproduced by us within 2 %"
    assert rows[2][0].split()[-1] == "seed" and "truth known to its authors" in rows[2][0]
    assert "../submissions/good.html" in whole.links
    assert text(whole.all("h2")[0]).startswith("core suite: phi41 (J = 24, ")
    (drawing,) = whole.all("svg")
    assert drawing[1]["aria-label"].startswith("rel_l2 of 6 rows from 0.0210 to 0.900, and the floor 1.0e-07")
    assert "floor 1.0e-07" in text(drawing) and len(whole.all("title", drawing)) == 6
    card = pages["submissions/good.html"]
    seen = text(card.tree)
    for words in ("A. Author, B. Author", "A regression of one time step", "spdebench train step", "hidden truth"):
        assert words in seen
    assert table(card)[1][0][:4] == ["core: phi41", "1", "rel_l2", "0.0210±1e-3"]
    assert len(content) == 3 + 1 + len(records) + 3


def test_the_command_of_a_dataset_makes_it_with_what_is_seen_of_its_noise():
    eq = sb.equation("phi41", points=16, truncation=8, frames=4, steps=4, kappa=0.1)
    for seen in (None, 0, 2):
        identity = DatasetSpec(equation=eq, n=20, seed=1, seen=seen).to_dict()
        shown = ShownDataset(identity).command
        assert shown is not None and shown.endswith("--seed 1" + ("" if seen is None else f" --seen {seen}"))
