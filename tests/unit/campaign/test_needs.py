"""What runs ask for: from records where there are any; order and share of a GPU."""

from __future__ import annotations

import dataclasses

import pytest

from spdebench.campaign import needs as module
from spdebench.campaign import plan
from spdebench.campaign.exclusive_timing import reserved_seconds
from spdebench.campaign.needs import Needs, RunSettings
from tiny_tables import made_up, tiny_table


@pytest.fixture
def jobs(tmp_path):
    return plan.jobs(tiny_table().cells(2), {}, tmp_path)


def test_memory_comes_from_runs_of_the_same_kind(jobs):
    job = next(j for j in jobs if j.spec.model == "deeponet")
    guess = Needs({}).need_of(job, "cpu")
    assert guess.memory > module.PROCESS_BYTES and guess.gpus == 0 and guess.seconds == job.seconds
    known = {str(k): made_up(job.spec, 0.1, peak_memory_mb=peak) for k, peak in enumerate((900.0, 1000.0, 5000.0))}
    assert Needs(known).need_of(job, "cpu").memory == pytest.approx(1.2e9)  # the median and a margin
    other = next(j for j in jobs if j.spec.model == "mean")
    assert Needs(known).need_of(other, "cpu") == Needs({}).need_of(other, "cpu")
    on_gpu = {"0": made_up(job.spec, 0.1, peak_memory_mb=4000.0, provenance={"device": "cuda: X"})}
    assert Needs(on_gpu).need_of(job, "cpu") == guess  # another kind of device's memory says nothing


def test_a_gpu_is_shared_as_told_and_as_its_memory_allows(jobs, monkeypatch):
    job = next(j for j in jobs if j.spec.model == "deeponet")
    assert Needs({}, per_gpu=4).need_of(job, "cuda:1").gpus == 0.25
    assert Needs({}, per_gpu=4).need_of(job, "cuda:1").place == "cuda:1"
    monkeypatch.setattr(module, "_gpu_bytes", lambda device: 12e9)
    peak = {"0": made_up(job.spec, 0.1, peak_memory_mb=5000.0, provenance={"device": "cuda: X"})}
    assert Needs(peak, per_gpu=4).need_of(job, "cuda:0").gpus == pytest.approx(0.5)  # 1.2 x 5 GB of 12
    assert RunSettings(workers=6).runs_per_gpu(2) == 3 and RunSettings(workers=6, engine="ray").runs_per_gpu(1) == 1
    assert RunSettings(workers=6, per_gpu=2).runs_per_gpu(2) == 2


def test_one_seed_of_everything_first_or_simply_the_longest(jobs):
    early, late = Needs({}), Needs({}, seeds_first=False)
    ranks = [(j.trained, j.seed, early.need_of(j, "cpu").rank) for j in jobs]
    assert sorted(ranks, key=lambda r: r[:2]) == sorted(ranks, key=lambda r: r[2]) and len({r[2] for r in ranks}) == 3
    assert {late.need_of(j, "cpu").rank for j in jobs} == {()}


def test_with_a_budget_those_first_that_give_most_for_their_time(jobs):
    """30, 17, 100 (no number counts as a hundredth) and 9 seconds a number."""
    job = next(j for j in jobs if j.trained and not j.seed)
    lines = {line for c in tiny_table().cells(2) if job.spec in c.runs for line in c.published_keys}
    assert job.counts_for == lines and job.numbers == len(lines)
    offers = [(30.0, 1), (100.0, 6), (1.0, 0), (9.0, 1)]
    made = [dataclasses.replace(job, seconds=s, counts_for=frozenset(range(n))) for s, n in offers]
    order = sorted(made, key=Needs({}, thrifty=True).rank)
    assert [(j.seconds, j.numbers) for j in order] == [(9.0, 1), (100.0, 6), (30.0, 1), (1.0, 0)]
    later = next(j for j in jobs if j.trained and j.seed)
    rank = Needs({}, thrifty=True).rank
    assert rank(dataclasses.replace(later, seconds=0.1)) > rank(order[-1])  # another seed comes after all


def test_a_gpu_is_filled_by_one_command():
    """At most twelve runs a GPU, or as many as told, and no more than there are cores; a processor has one."""
    plain = RunSettings()
    assert plain.for_devices(["cuda"]).by_load and not RunSettings(per_gpu=3).for_devices(["cuda"]).by_load
    assert plain.for_devices(["cpu"], 16).workers is None and plain.for_devices(["cuda"]).workers == 12
    assert plain.for_devices(["cuda:0", "cuda:1"], 16).workers == 16 and plain.for_devices(["cuda"], 2).workers == 2
    told = RunSettings(per_gpu=3).for_devices(["cuda:0", "cuda:1"], 2)
    assert told.workers == 6 and told.runs_per_gpu(2) == 3
    assert RunSettings(workers=5).for_devices(["cuda"], 2).workers == 5
    assert RunSettings(engine="ray").for_devices(["cuda"], 64).workers is None


def test_runs_fill_a_gpu_by_the_share_that_they_use(jobs, monkeypatch):
    """Of runs that use 0.8 of a GPU three share it (2.5 / 0.8), and each takes 2.4 times as long; of runs that use 0.2
    of it twelve at most."""
    job = next(j for j in jobs if j.spec.model == "deeponet")
    monkeypatch.setattr(module, "gpu_share", lambda run: 0.8)
    needs = Needs({}, 12, by_load=True)
    large = needs.need_of(job, "cuda")
    assert large.gpus == pytest.approx(1 / 3) and large.kind == "large kernels"
    assert needs.seconds(job, "cuda") == pytest.approx(2.4 * job.seconds)
    assert needs.total_seconds([job] * 3, ["cuda"], 12) == pytest.approx(2.4 * job.seconds)
    assert Needs({}, 12).need_of(job, "cuda").kind == ""  # a number of runs was asked for: nothing else counts
    monkeypatch.setattr(module, "gpu_share", lambda run: 0.2)
    needs = Needs({}, 12, by_load=True)
    assert (
        needs.need_of(job, "cuda").gpus == pytest.approx(1 / 12) and needs.need_of(job, "cuda").kind == "small kernels"
    )
    assert needs.seconds(job, "cuda") == pytest.approx(2.4 * job.seconds)  # twelve of them load it as much


def test_by_load_the_cost_is_that_of_the_gpu_and_kinds_come_together(jobs, monkeypatch):
    """A run that uses a fifth of the GPU comes before a shorter one that uses all of it; of runs whose costs are within
    a factor of two those with small kernels come first."""
    first, second = [j for j in jobs if j.trained and not j.seed][:2]

    def order(shares: dict[str, float], seconds: tuple[float, float]) -> list[float]:
        made = [
            dataclasses.replace(j, seconds=s, counts_for=frozenset([1]))
            for j, s in zip((first, second), seconds, strict=True)
        ]
        monkeypatch.setattr(module, "gpu_share", lambda run: shares[run.digest])
        return [j.seconds for j in Needs({}, 12, thrifty=True, by_load=True).ordered(made)]

    shares = {first.spec.digest: 0.2, second.spec.digest: 1.0}
    assert order(shares, (80.0, 40.0)) == [80.0, 40.0]  # 16 and 40 s of the GPU
    assert order(shares, (300.0, 40.0)) == [300.0, 40.0]  # 60 and 40 s: within a factor of two
    assert order(shares, (800.0, 40.0)) == [40.0, 800.0]


def test_a_part_of_the_budget_is_kept_for_times_that_are_not_known(jobs):
    """Two seconds for each model and equation without an exclusive time, at most a twentieth."""
    kinds = len({job.spec.model for job in jobs})  # on one equation
    job = next(j for j in jobs if j.spec.model == "deeponet")
    timed = made_up(job.spec, 0.1, exclusive_timing=True, inference_ms=1.0)
    assert reserved_seconds(jobs, {}, None) == 0 and reserved_seconds(jobs, {}, 1e4) == 2 * kinds
    assert reserved_seconds(jobs, {timed.digest: timed}, 1e4) == 2 * (kinds - 1)
    assert reserved_seconds(jobs, {}, 20.0) == 1.0
