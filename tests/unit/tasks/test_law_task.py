"""Tasks in which a model sees a part of the noise: what it is given, what it is scored on, climatology and floors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import spdebench as sb
from spdebench.data import generate, open_dataset
from spdebench.equations import equation
from spdebench.errors import UserError
from spdebench.metrics.law import law_scores, skill
from spdebench.models import model
from spdebench.models.climatology import Climatology
from spdebench.tasks import Task, TaskSpec
from spdebench.training.scoring import part_for

SMALL = {"points": 16, "frames": 6, "steps": 6, "truncation": 8, "kappa": 0.1, "sigma": 1.0}
LAW = equation("phi41", **SMALL)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The ordinary dataset, and those of two laws of the same seed."""
    folder = tmp_path_factory.mktemp("tasks")
    some = [generate(LAW, n=60, out=folder / "plain"), generate(LAW, n=60, seen=2, members=24, out=folder / "law")]
    return [open_dataset(path) for path in (*some, generate(LAW, n=60, seen=8, out=folder / "all"))]


def test_a_model_is_given_the_seen_noise_only(files):
    plain, law, _ = files
    task, usual = Task(law, seen=2), Task(plain)
    for part in ("train", "val", "test"):
        own, other = getattr(task, part), getattr(usual, part)
        assert torch.equal(own.u, other.u) and torch.equal(own.u0, other.u0)
        assert torch.equal(own.dw, torch.from_numpy(law.dw_seen[own.rows[0]])) and not torch.equal(own.dw, other.dw)
    batch, u = next(iter(task.test.chunks()))
    assert torch.equal(batch.dw, task.test.dw[: len(u)])
    half = Task(law, seen=2, every=2).train
    assert torch.allclose(half.dw[:, 1], task.train.dw[:, 1:3].sum(1))


def test_all_noise_seen_is_the_ordinary_task(files):
    """seen=J gives the bits of today's task, from an ordinary file or from one that stores dw_seen."""
    plain, _, whole = files
    usual = Task(plain)
    for data in (plain, whole):
        task = Task(data, seen=8)
        assert torch.equal(task.train.dw, usual.train.dw) and torch.equal(task.test.u, usual.test.u)
    assert "seen" not in usual.identity["task"] and task.identity["task"]["seen"] == 8


def test_all_noise_seen_is_scored_as_one_path(files, tmp_path):
    """With seen=J a network makes one prediction, also for a file that stores dw_seen; no equal members are drawn."""
    plain, _, whole = files
    few = {"config": {"width": 8}, "epochs": 1}
    usual, own = (sb.train("deeponet", Task(data, seen=8), out=tmp_path, **few) for data in (plain, whole))
    assert own.members is None and np.array_equal(own.predictions, usual.predictions)
    assert own.scores.summary() == usual.scores.summary() and "coverage_50" not in own.scores
    path = sb.train("deeponet", Task(plain), out=tmp_path, **few)
    entry = sb.training.score_on(path, Task(whole, seen=8).test, "seen=8")
    assert "energy_score" in entry.scores and "coverage_50" not in entry.scores


def test_a_mixture_shows_the_same_part_of_the_noise_of_all_its_files(files, tmp_path):
    """Files with J=8 and J=2 can be mixed with seen=2 if both store it as dw_seen; dw and dw_seen are not mixed."""
    _, law, _ = files
    low = LAW.replace(truncation=2)
    less, all_of_it = (open_dataset(generate(low, n=60, seed=1, seen=k, out=tmp_path)) for k in (0, 2))
    for mixed in ([law, less], [less, law]):
        with pytest.raises(UserError, match=r"is the column dw.* and the column dw.*; generate both with --seen 2"):
            Task(mixed, seen=2)
    task = Task([law, all_of_it], seen=2)
    for i, data in enumerate(task.datasets):
        rows = task.train.rows[i]
        assert torch.equal(task.train.dw[task.train.source == i], torch.from_numpy(data.dw_seen[rows]))
    with pytest.raises(UserError, match="generate both with --seen 2"):
        Task(law, seen=2).part("test", law, less)


def test_a_run_remembers_what_it_sees(files, tmp_path):
    """A network trained on the seen noise is tested on it, also when its run is opened later or on another file."""
    _, law, _ = files
    task = Task(law, seen=2)
    run = sb.train("deeponet", task, out=tmp_path, config={"width": 8}, epochs=1)
    predicted = run.predict(task.test.u0, task.test.dw)
    assert np.allclose(predicted, run.predictions, atol=1e-5)
    assert torch.equal(part_for(run, law).dw, task.test.dw)
    again = sb.train("deeponet", Task(law), out=tmp_path, config={"width": 8}, epochs=1)
    assert again.spec.digest != run.spec.digest


def test_members_are_those_of_the_task(files):
    _, law, _ = files
    task = Task(law, seen=2, every=3, stride=2)
    members = task.members()
    assert members.shape == (9, 24, 3, 8) and np.array_equal(members[:, 0], task.test.u.numpy())


def test_scores_lie_between_climatology_and_the_true_law(files):
    """Skill: 0 for the climatology, near 1 for another ensemble of the true law, in between for the mean as a point."""
    _, law, _ = files
    task = Task(law, seen=2)
    members, grid = task.members(), task.test.grid
    truth, other = members[:, :12], members[:, 12:]
    scores = {
        "climatology": law_scores(climatology(task).sample(task.test.batch(), 12), truth, grid, resamples=0),
        "independent": law_scores(other, truth, grid, resamples=0),
        "mean": law_scores(other.mean(1, keepdims=True), truth, grid, resamples=0),
    }
    energy = {name: each["energy_score"].value for name, each in scores.items()}
    assert energy["independent"] < energy["mean"] < energy["climatology"]
    assert skill(energy["climatology"], energy["mean"], energy["independent"]) < 1


def climatology(task: Task, **config: int) -> Climatology:
    """The model, fitted on the training part."""
    found = model("climatology", task, **config)
    assert isinstance(found, Climatology)
    found.calibrate(found.prepare(task.train.batch()), task.train.u)
    return found


def test_the_climatology_has_the_moments_of_the_training_part(files):
    """Mean and covariance of 4000 draws, four and a half standard errors; the point prediction is the mean."""
    task = Task(files[0])
    found, train = climatology(task), task.train
    draws = torch.cat([found.sample(train.batch(slice(0, 20)), 200).flatten(0, 1)]).flatten(1).double()
    u = train.u.flatten(1).double()
    std = u.std(0)
    assert found.rank == len(train) - 1 and float(found.lost) < 1e-12
    assert torch.equal(found.predict(train.batch())[3], u.mean(0).float().reshape(train.shape))
    assert float(((draws.mean(0) - u.mean(0)).abs() / (std + 1e-6)).max()) < 4.5 / math.sqrt(4000)
    kept = std > 1e-6
    own, drawn = torch.corrcoef(u[:, kept][:, ::7].T), torch.corrcoef(draws[:, kept][:, ::7].T)
    assert float((own - drawn).abs().max()) < 4.5 / math.sqrt(4000)
    assert float((draws.std(0) / std.clamp_min(1e-12))[kept].sub(1).abs().max()) < 4.5 / math.sqrt(8000)


def test_a_draw_of_the_climatology_is_a_function_of_seed_sample_and_member(files):
    """Other batches and numbers of members give the same draws; another seed, sample or member another one."""
    task = Task(files[0])
    found, batch = climatology(task), task.test.batch()
    every = found.sample(batch, 6, seed=1)
    part = found.sample(task.test.batch(slice(2, 4)), 3, seed=1, first=2, samples=torch.tensor([2, 3]))
    torch.testing.assert_close(part, every[2:4, 2:5])
    other = found.sample(batch, 6, seed=2)
    for apart in (every[0, 0] - every[0, 1], every[0, 0] - every[1, 0], every[0, 0] - other[0, 0]):
        assert float(apart.abs().max()) > 0.1


def test_a_climatology_of_low_rank_keeps_the_largest_part_of_the_variance(files):
    """The variance of 5 components and the share that is lost make all of it; a saved model is the same."""
    task = Task(files[0])
    full, low = climatology(task), climatology(task, rank=5)
    sizes = [float(each.factors.double().square().sum()) for each in (full, low)]
    assert low.rank == 5 and sizes[1] / sizes[0] == pytest.approx(1 - float(low.lost), rel=1e-5)
    torch.testing.assert_close(low.factors.abs(), full.factors[:5].abs(), rtol=1e-3, atol=1e-4)
    again = model("climatology", task, rank=5)
    again.load_state_dict(low.state_dict())
    batch = task.test.batch()
    assert torch.equal(again.sample(batch, 2), low.sample(batch, 2))
    with pytest.raises(RuntimeError, match="size mismatch"):
        model("climatology", task, rank=4).load_state_dict(low.state_dict())


@pytest.mark.parametrize(
    ("which", "fields", "message"),
    [
        (0, {"seen": 2}, "does not store the noise that is seen with seen=2; generate it with --seen 2"),
        (1, {"seen": 4}, "generate it with --seen 4"),
        (1, {"seen": -1}, "at least 0"),
    ],
)
def test_missing_data_are_a_one_line_error(files, which, fields, message):
    with pytest.raises(UserError, match=message):
        Task(files[which], **fields)


def test_members_need_their_file_and_split(files):
    plain, law, _ = files
    with pytest.raises(UserError, match="holds members of a law"):
        Task(law.members_file)
    with pytest.raises(UserError, match="--seen K --members 64"):
        Task(plain).members()
    with pytest.raises(UserError, match="split=blocks"):
        Task(law, seen=2, split="70:15:15").members()
    assert TaskSpec(seen=2) != TaskSpec()
