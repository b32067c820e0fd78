"""Planning: what is done, what it costs, what a user means."""

from __future__ import annotations

import csv
import dataclasses
import json
import statistics
from pathlib import Path

import pytest

from estimates import ratios
from measure_rates import cases
from spdebench.campaign import plan, sharing
from spdebench.campaign.deadline import budget_seconds
from spdebench.campaign.effort import STEP_START, epoch_cost, million_numbers, step_numbers, training_part
from spdebench.campaign.rates import START_SECONDS, Rates
from spdebench.campaign.selection import cells_of, matching
from spdebench.campaign.sharing import gpu_share, loads, slowdown
from spdebench.errors import UserError
from spdebench.models import MODELS
from spdebench.paper.catalogue import table
from spdebench.records import store
from spdebench.spec import canonical_json
from tiny_tables import made_up

ROOT = Path(__file__).resolve().parents[3]


def test_each_run_is_planned_once_with_all_that_is_needed(tiny):
    cells = tiny.cells(2)
    jobs = plan.jobs(cells, {})
    assert len({j.spec.digest for j in jobs}) == len(jobs) == 2 * 2 + 2 * 7
    first = next(j for j in jobs if j.spec.model == "deeponet")
    assert set(first.shifts) == {"truncation=8", "fresh"}
    assert all(j.status == "missing" for j in jobs)


@pytest.mark.parametrize("value", ["", None, False, True, 0, -3, 2**70, 1e308, [1], "x"])
def test_options_of_a_forged_record_do_not_stop_the_plan(tiny, value):
    """A number of samples or of draws that is none counts as the default."""
    (run, *_) = (j.spec for j in plan.jobs(tiny.cells(1), {}) if j.spec.model == "deeponet")
    record = made_up(run, 0.1)
    energy = {"loss": "energy", "draws": value, "batch": value}
    forged = dataclasses.replace(record, options={**record.options, **energy})
    assert plan.jobs(tiny.cells(1), {record.digest: forged}, device="cuda")
    assert plan.jobs(tiny.cells(1), {record.digest: forged})
    assert (
        epoch_cost(100, 1.0, energy, "cuda")
        == epoch_cost(100, 1.0, {"loss": "energy"}, "cuda")
        == 2 * (1 + 5 * STEP_START)
    )


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
    cells = matching(tiny.cells(1), "deeponet")
    one, other = (j.spec for j in plan.jobs(cells, {}))
    size = million_numbers(one.datasets, one.task)
    assert size == pytest.approx(28 * 11 * 16 / 1e6)
    record = made_up(one, 0.1, epochs=2, training_seconds=10.0)  # 2 of 3 epochs
    rates = Rates({one.digest: record}, "cpu")
    assert rates.seconds(other) == pytest.approx(START_SECONDS + 10.0)
    assert rates.epochs(other) == pytest.approx(2.0)
    assert Rates({one.digest: record}, "cuda").seconds(other) != pytest.approx(START_SECONDS + 10.0)


def test_every_model_of_the_bank_has_a_committed_rate():
    from spdebench.campaign.rates import _rates_of_the_package
    from spdebench.paper.catalogue import TABLES

    wanted = {w.model for t in TABLES for w in t.wants if plan.is_trained(w.model)}
    for device in ("cpu", "cuda"):
        assert wanted <= {row["model"] for row in _rates_of_the_package() if row["device"] == device}


def test_a_committed_rate_holds_for_its_configuration(tiny, monkeypatch):
    one = plan.jobs(matching(tiny.cells(1), "deeponet"), {})[0].spec
    wide = dataclasses.replace(one, config={**one.config, "width": 1024})
    row = {"model": "deeponet", "equation": one.equation, "device": "cpu", "million": "1"}
    rows = [row | {"seconds": "2", "config": ""}, row | {"seconds": "20", "config": canonical_json(wide.config)}]
    monkeypatch.setattr("spdebench.campaign.rates._rates_of_the_package", lambda: rows)
    rates = Rates({}, "cpu")
    assert rates.seconds(wide) - START_SECONDS == pytest.approx(10 * (rates.seconds(one) - START_SECONDS))
    monkeypatch.setattr("spdebench.campaign.rates._rates_of_the_package", lambda: rows[1:])
    assert Rates({}, "cpu").seconds(one) == pytest.approx(rates.seconds(wide))  # better than nothing


def test_rates_are_measured_for_every_configuration():
    runs = cases(["phi41-periodic", "phi41-periodic-sigma1"])
    found = [(r.equation, r.model, canonical_json(r.config)) for r in runs]
    assert len(found) == len(set(found))
    assert [json.loads(c)["width"] for _, m, c in found if m == "wno"] == [128, 32]
    assert {m for _, m, _ in found} >= {"fno", "gt", "ncde-fno"} and not {m for _, m, _ in found} & {"mean", "solver"}


@pytest.mark.parametrize(("text", "seconds"), [("25m", 1500), ("1h30m", 5400), ("90s", 90), ("90", 90), ("0.5h", 1800)])
def test_budgets(text, seconds):
    assert budget_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "25 m", "-5m", "0", "ten", "5d"])
def test_bad_budgets(text):
    with pytest.raises(UserError, match="a budget is a time such as 25m"):
        budget_seconds(text)


def test_only(tiny):
    cells = tiny.cells(1)
    assert {c.model for c in matching(cells, "deeponet,mean")} == {"deeponet", "mean"}
    assert {c.row for c in matching(cells, "solver")} == {
        "solver",
        "floor",
        "solver vs fine reference",
    }  # a model: all that its run gives
    assert {c.column for c in matching(cells, "moved")} == {"J=8", "fresh"}
    assert {(c.model, c.column) for c in matching(cells, "deeponet fresh, mean")} == {
        ("deeponet", "fresh"),
        *((c.model, c.column) for c in cells if c.model == "mean"),
    }  # words of one pattern must all fit
    assert matching(cells, "") == cells
    rest = "the models here are deeponet, mean, linear, trees, step, solver, the equations phi41"
    with pytest.raises(UserError, match=f"no row matches 'xyz'; {rest}"):
        matching(cells, "xyz")
    with pytest.raises(UserError, match=f"no row matches 'mean deeponit'; did you mean 'deeponet'\\? {rest}"):
        matching(cells, "mean deeponit")


def test_a_word_of_only_is_a_name_or_begins_a_word(tiny):
    first, *rest = tiny.cells(1)
    cells = [dataclasses.replace(first, row="a dense ensemble"), *rest]
    assert matching(cells, "ens") == matching(cells, "dense ens") == cells[:1]
    assert matching(cells, "phi41") == cells  # an equation
    assert {c.column for c in matching(cells, "j=4")} == {"J=4"}
    for inside in ("nse", "sembl"):
        with pytest.raises(UserError, match=f"no row matches '{inside}'"):
            matching(cells, inside)


def test_runs_that_shared_a_device_count_for_epochs_but_not_for_rates(tiny):
    one = plan.jobs(matching(tiny.cells(1), "deeponet"), {})[0].spec
    record = made_up(one, 0.1, epochs=2, training_seconds=1e6, shared_device=True)
    rates, none = Rates({one.digest: record}, "cpu"), Rates({}, "cpu")
    assert rates.epochs(one) == pytest.approx(2.0)
    found, wanted = ((r.seconds(one) - START_SECONDS) / r.epochs(one) for r in (rates, none))
    assert found == pytest.approx(wanted)


def on_gpu(run, start: str, seconds: float, **fields):
    """A made-up record of a run on a GPU that began at this time of a day."""
    provenance = {"device": "cuda: NVIDIA X", "started": f"2026-01-01T{start}+00:00"}
    return made_up(run, 0.1, epochs=3, training_seconds=seconds, provenance=provenance, **fields)


def test_runs_that_shared_a_gpu_count_with_their_time_alone(tiny, monkeypatch):
    """Two runs, each of which uses all of the GPU, overlap for half of the first and all of the second; a third is
    alone."""
    monkeypatch.setattr(sharing, "gpu_share", lambda run: 1.0)
    one, other, third, *_ = (j.spec for j in plan.jobs(matching(tiny.cells(3), "deeponet"), {}))
    made = [on_gpu(one, "10:00:00", 60.0), on_gpu(other, "10:00:30", 30.0), on_gpu(third, "11:00:00", 10.0)]
    records = {record.digest: record for record in made}
    assert [loads(records)[r.digest] for r in made] == pytest.approx([1.5, 2.0, 1.0])
    shared = {other.digest: on_gpu(other, "10:00:30", 30.0, shared_device=True), one.digest: made[0]}
    alone = {third.digest: on_gpu(third, "11:00:00", 30.0 / slowdown(2))}
    ratio = Rates(shared | alone, "cuda").measured_over_estimated(shared[other.digest])
    rates = sorted([60.0 / slowdown(1.5), 30.0 / slowdown(2)])  # of the two that it is compared with
    assert ratio == pytest.approx((START_SECONDS + 30.0) / (START_SECONDS + slowdown(2) * sum(rates) / 2))


def test_a_run_on_a_new_equation_is_estimated_from_runs_in_as_many_dimensions():
    """No record of gt on nse: the rate is that on phi42, also in two dimensions, and not that on kpz or phi41."""
    runs = {job.spec.datasets[0]["equation"]: job.spec for job in plan.jobs(matching(table("core").cells(1), "gt"), {})}
    made = [on_gpu(runs["kpz"], "10:00:00", 600.0), on_gpu(runs["phi41"], "12:00:00", 900.0)]
    made.append(on_gpu(runs["phi42"], "11:00:00", 9.0))
    rates = Rates({record.digest: record for record in made}, "cuda")
    epochs, cost = runs["nse"].options["epochs"], {}
    for name in ("nse", "phi42"):
        cost[name] = epoch_cost(*training_part(runs[name].datasets, runs[name].task), runs[name].options, "cuda")
    expected = START_SECONDS + epochs * 9.0 / 3 * cost["nse"] / cost["phi42"]
    assert rates.seconds(runs["nse"]) == pytest.approx(expected)


@pytest.mark.parametrize(("start", "seconds"), [("noon", 9.0), ("10:00:00", "inf"), ("10:00:00", "nan"), ("", -1.0)])
def test_records_whose_times_mean_nothing_are_not_learned_from(tiny, start, seconds):
    one, other, *_ = (j.spec for j in plan.jobs(matching(tiny.cells(3), "deeponet"), {}))
    known = {run.digest: on_gpu(run, *given) for run, given in ((one, (start, seconds)), (other, ("09:00:00", 60.0)))}
    assert list(loads(known)) == [other.digest]
    if seconds != 9.0:
        assert Rates(known, "cuda").seconds(one) == Rates({other.digest: known[other.digest]}, "cuda").seconds(one)


def test_the_share_of_a_gpu_follows_from_the_size_of_a_step(tiny):
    """v / (v + l) with the l of the model: as measured at the measured size, and near 0 for tiny steps."""
    run = plan.jobs(matching(tiny.cells(1), "deeponet"), {})[0].spec
    numbers = step_numbers(run.datasets, run.task, run.options)
    latency = sharing.MEASURED_STEP * (1 / sharing.MEASURED_SHARES["deeponet"] - 1)
    assert gpu_share(run) == pytest.approx(numbers / (numbers + latency)) and gpu_share(run) < 0.1
    assert sharing.MEASURED_STEP / (sharing.MEASURED_STEP + latency) == pytest.approx(
        sharing.MEASURED_SHARES["deeponet"]
    )
    assert sharing.kernel_kind(gpu_share(run)) == "small kernels"
    mean = plan.jobs(matching(tiny.cells(1), "mean"), {})[0].spec
    assert gpu_share(mean) == 0 and sharing.kernel_kind(0) == ""
    assert set(sharing.MEASURED_SHARES) == {name for name in MODELS if MODELS[name].trainable}


def test_ncde_fno_fills_a_gpu_in_two_dimensions_only():
    """In one dimension its solver is one kernel, which uses a small part of a GPU."""
    jobs = plan.jobs(matching(table("core").cells(1), "ncde-fno"), {})
    runs = {job.spec.datasets[0]["equation"]: job.spec for job in jobs}
    assert gpu_share(runs["nse"]) == gpu_share(runs["phi42"]) == 1.0
    assert sharing.kernel_kind(gpu_share(runs["kpz"])) == "small kernels"


def test_shares_of_a_gpu_are_those_that_were_measured():
    """together / alone of `bench train`, of the table in benchmarks/results."""
    with (ROOT / "benchmarks" / "results" / "train-h200.csv").open(newline="") as file:
        found = {row["model"]: float(row["together"]) / float(row["alone"]) for row in csv.DictReader(file)}
    found["flow-fno"] = found["fno"]
    assert {name: pytest.approx(share, abs=0.005) for name, share in found.items()} == dict(sharing.MEASURED_SHARES)


def test_twice_the_load_takes_twice_as_long():
    assert [slowdown(load) for load in (0.3, 1.0, 2.0, 7.5)] == [1.0, 1.0, 2.0, 7.5] and slowdown(7.5, "cpu") == 1.0


def test_on_a_gpu_steps_cost_time_and_not_only_numbers(tiny):
    """Small batches take longer; on a processor the numbers alone count."""
    run = plan.jobs(matching(tiny.cells(1), "deeponet"), {})[0].spec
    samples, numbers = training_part(run.datasets, run.task)
    assert (samples, numbers) == (28, pytest.approx(28 * 11 * 16 / 1e6))
    assert epoch_cost(samples, numbers, {"batch": 20}, "cpu") == numbers
    assert epoch_cost(samples, numbers, {"batch": 20}, "cuda:1") == pytest.approx(numbers + 2 * STEP_START)
    assert epoch_cost(samples, numbers, {"batch": 1, "loss": "energy", "draws": 3}, "cuda") == 3 * (
        numbers + 28 * STEP_START
    )


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_half_of_the_recorded_runs_took_the_estimated_time_within_a_factor_of_two(device):
    """Each estimate is made without the run's own record; `benchmarks/estimates.py` prints the figures by model."""
    found = ratios(store.read(ROOT / "results"), device)
    low, middle, high = statistics.quantiles(found["all"], n=4)
    assert len(found["all"]) > 100 and 0.5 < low < 1.25 and 0.8 < middle < 1.25 and 0.8 < high < 2


def test_a_long_plan_names_requests_that_take_less():
    cells = cells_of([table("phi41-periodic")], 3, "paper", "fno,mean")
    whole = sum(job.seconds for job in plan.jobs(cells, {}))
    found = plan.shorter_requests(cells, {}, "runs", "cpu")
    assert set(found) == {"--device cuda", "--seeds 1", "--only mean"}
    assert all(0 < seconds < whole for seconds in found.values())
    one = cells_of([table("phi41-periodic")], 1, "paper", "fno,mean")
    assert found["--seeds 1"] == pytest.approx(sum(job.seconds for job in plan.jobs(one, {})))
    assert plan.shorter_requests(cells, {}, "runs", "cuda") == {}
