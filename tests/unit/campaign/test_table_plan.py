"""Planning: what is done, what it costs, what a user means."""

from __future__ import annotations

import dataclasses
import json

import pytest

from measure_rates import cases
from spdebench.campaign import plan
from spdebench.campaign.rates import Rates, volume
from spdebench.errors import UserError
from spdebench.paper.catalogue import table
from spdebench.spec import canonical_json
from tiny_tables import made_up


def test_each_run_is_planned_once_with_all_that_is_needed(tiny):
    cells = tiny.cells(2)
    jobs = plan.jobs(cells, {})
    assert len({j.spec.digest for j in jobs}) == len(jobs) == 2 * 2 + 2 * 7
    first = next(j for j in jobs if j.spec.model == "deeponet")
    assert set(first.shifts) == {"truncation=8", "fresh"}
    assert all(j.status == "missing" for j in jobs)


def test_states(tiny, tmp_path):
    cells = [c for c in tiny.cells(3) if c.row == "DeepONet"]
    jobs = plan.jobs(cells, {})
    done, finished, begun, tested, missing, _ = (j.spec for j in jobs)
    shifts = {"truncation=8": {"scores": {}}, "fresh": {"scores": {}}}
    (tmp_path / finished.name).mkdir()
    (tmp_path / finished.name / "record.json").write_text(json.dumps(made_up(finished, 0.1).to_dict()))
    (tmp_path / begun.name).mkdir()
    (tmp_path / begun.name / "last.pt").touch()
    (tmp_path / begun.name / "log.jsonl").write_text('{"epoch": 1}\n')
    (tmp_path / tested.name).mkdir()
    (tmp_path / tested.name / "best.pt").touch()
    known = {done.digest: made_up(done, 0.1, shifts=shifts)}
    states = [j.status for j in plan.jobs(cells, known, tmp_path)]
    assert states == ["done", "finished", "begun", "begun", "missing", "missing"]
    facts = plan.overview(cells, plan.jobs(cells, known, tmp_path), tmp_path)
    total = facts["total"]
    assert [total[s] for s in ("done", "finished", "begun", "missing")] == [1, 1, 2, 2]
    assert len(facts["datasets"]["missing"]) == 3 and facts["datasets"]["bytes"] > 0
    # a record without a shift that is wanted, and no weights any more: the run must be made again
    again = plan.jobs(tiny.cells(3), {missing.digest: made_up(missing, 0.1), done.digest: made_up(done, 0.1)}, tmp_path)
    assert {j.spec.digest: j.status for j in again}[done.digest] == "missing"


def test_cost_is_measured(tiny):
    """Twice the data, twice the time; the rate and the number of epochs are those of finished runs."""
    cells = plan.only(tiny.cells(1), "deeponet")
    one, other = (j.spec for j in plan.jobs(cells, {}))
    size = volume(one.datasets, one.task)
    assert size == pytest.approx(28 * 11 * 16 / 1e6)
    record = made_up(one, 0.1, epochs=2, training_seconds=10.0)  # 2 of 3 epochs
    rates = Rates({one.digest: record}, "cpu")
    assert rates.seconds(other) == pytest.approx(10.0)
    assert rates.epochs(other) == pytest.approx(2.0)
    assert Rates({one.digest: record}, "cuda").seconds(other) != pytest.approx(10.0)


def test_every_model_of_the_bank_has_a_committed_rate():
    from spdebench.campaign.rates import _committed
    from spdebench.paper.catalogue import TABLES

    wanted = {w.model for t in TABLES for w in t.wants if plan.is_trained(w.model)}
    for device in ("cpu", "cuda"):
        assert wanted <= {row["model"] for row in _committed() if row["device"] == device}


def test_a_committed_rate_holds_for_its_configuration(tiny, monkeypatch):
    one = plan.jobs(plan.only(tiny.cells(1), "deeponet"), {})[0].spec
    wide = dataclasses.replace(one, config={**one.config, "width": 1024})
    row = {"model": "deeponet", "equation": one.equation, "device": "cpu", "million": "1"}
    rows = [row | {"seconds": "2", "config": ""}, row | {"seconds": "20", "config": canonical_json(wide.config)}]
    monkeypatch.setattr("spdebench.campaign.rates._committed", lambda: rows)
    rates = Rates({}, "cpu")
    assert rates.seconds(wide) == pytest.approx(10 * rates.seconds(one))
    monkeypatch.setattr("spdebench.campaign.rates._committed", lambda: rows[1:])
    assert Rates({}, "cpu").seconds(one) == pytest.approx(rates.seconds(wide))  # better than nothing


def test_rates_are_measured_for_every_configuration():
    runs = cases(["phi41-periodic", "phi41-periodic-sigma1"])
    found = [(r.equation, r.model, canonical_json(r.config)) for r in runs]
    assert len(found) == len(set(found))
    assert [json.loads(c)["width"] for _, m, c in found if m == "wno"] == [128, 32]
    assert {m for _, m, _ in found} >= {"fno", "gt", "ncde-fno"} and not {m for _, m, _ in found} & {"mean", "solver"}


@pytest.mark.parametrize(("text", "seconds"), [("25m", 1500), ("1h30m", 5400), ("90s", 90), ("90", 90), ("0.5h", 1800)])
def test_budgets(text, seconds):
    assert plan.seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "25 m", "-5m", "0", "ten", "5d"])
def test_bad_budgets(text):
    with pytest.raises(UserError, match="a budget is a time such as 25m"):
        plan.seconds_of(text)


def test_only(tiny):
    cells = tiny.cells(1)
    assert {c.model for c in plan.only(cells, "deeponet,mean")} == {"deeponet", "mean"}
    assert {c.row for c in plan.only(cells, "solver")} == {
        "solver",
        "floor",
        "solver vs fine reference",
    }  # a model: all that its run gives
    assert {c.column for c in plan.only(cells, "moved")} == {"J=8", "fresh"}
    assert {(c.model, c.column) for c in plan.only(cells, "deeponet fresh, mean")} == {
        ("deeponet", "fresh"),
        *((c.model, c.column) for c in cells if c.model == "mean"),
    }  # words of one pattern must all fit
    assert plan.only(cells, "") == cells
    with pytest.raises(
        UserError, match="no row matches 'nothing'; the models here are deeponet, mean, linear, trees, step, solver"
    ):
        plan.only(cells, "nothing")


def test_runs_that_shared_a_device_count_for_epochs_but_not_for_rates(tiny):
    one = plan.jobs(plan.only(tiny.cells(1), "deeponet"), {})[0].spec
    record = made_up(one, 0.1, epochs=2, training_seconds=1e6, shared_device=True)
    rates, none = Rates({one.digest: record}, "cpu"), Rates({}, "cpu")
    assert rates.epochs(one) == pytest.approx(2.0)
    assert rates.seconds(one) / rates.epochs(one) == pytest.approx(none.seconds(one) / none.epochs(one))


def test_a_long_plan_names_requests_that_take_less():
    cells = plan.cells_of([table("phi41-periodic")], 3, "paper", "fno,mean")
    whole = sum(job.seconds for job in plan.jobs(cells, {}))
    found = plan.shorter(cells, {}, "runs", "cpu")
    assert set(found) == {"--device cuda", "--seeds 1", "--only mean"}
    assert all(0 < seconds < whole for seconds in found.values())
    one = plan.cells_of([table("phi41-periodic")], 1, "paper", "fno,mean")
    assert found["--seeds 1"] == pytest.approx(sum(job.seconds for job in plan.jobs(one, {})))
    assert plan.shorter(cells, {}, "runs", "cuda") == {}
