"""Splits, sub-sampling, mixtures, and what a task refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import spdebench as sb
from spdebench.data.published import export_published, import_published
from spdebench.engines import memory
from spdebench.equations import EQUATIONS
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.models import MODELS, model
from spdebench.tasks import Setting, Task, TaskSpec, recommended, subsampling
from spdebench.tasks.defaults import _table

TINY = {"points": 16, "frames": 12, "steps": 12, "truncation": 8}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    out = tmp_path_factory.mktemp("data")

    def make(n: int = 40, **fields):
        return sb.generate(sb.equation("phi41", **TINY | fields), n=n, seed=0, out=out)

    return make


def test_parts_are_disjoint_and_whole(files):
    rows = TaskSpec().rows(1200)
    assert [len(rows[p]) for p in ("train", "val", "test")] == [840, 180, 180]
    assert np.array_equal(np.sort(np.concatenate(list(rows.values()))), np.arange(1200))
    assert not np.array_equal(rows["train"], np.arange(840))
    task = Task(files())
    data = sb.open_dataset(files())
    expected = task.spec.rows(40)["val"]
    assert np.array_equal(task.val.u.numpy(), data.u[expected])
    assert np.array_equal(task.val.dw.numpy(), data.dw[expected])
    assert np.array_equal(task.val.u0.numpy(), data.u0[expected])


def test_scaling_subsets_are_nested():
    """n = train + validation at 4:1, the test n/5; small training sets lie in large ones, no test row is trained on."""
    seen: set[int] = set()
    full = TaskSpec(split="4:1:1", n=12000).rows(12000)
    for n in (1000, 2000, 5000, 10000):
        rows = TaskSpec(split="4:1:1", n=n + n // 5).rows(12000)
        assert [len(rows[p]) for p in ("train", "val", "test")] == [n * 4 // 5, n // 5, n // 5]
        assert seen <= set(rows["train"])
        seen = set(rows["train"])
        assert set(rows["test"]) <= set(full["test"])
        assert not set(rows["test"]) & (set(rows["train"]) | set(rows["val"]))


def test_subsampling_sums_increments(files):
    whole, thin = Task(files()), Task(files(), every=3, stride=2)
    assert thin.setting.shape == (5, 8)
    assert thin.setting.dt == pytest.approx(3 * whole.setting.dt)
    assert torch.equal(thin.train.u, whole.train.u[:, ::3, ::2])
    w = whole.train.dw.double().cumsum(1)[:, ::3, ::2]
    torch.testing.assert_close(thin.train.dw.double().cumsum(1), w, rtol=0, atol=1e-6)
    assert (thin.train.dw[:, 0] == 0).all()


def test_the_setting_is_known_before_the_data(files):
    task = Task(files(kappa=0.1), every=2)
    assert task.spec.inputs == "u0+xi"
    assert task.spec.setting(task.equations[0]) == task.setting
    assert Setting.from_dict(task.setting.to_dict()) == task.setting


def test_reading_waits_until_asked(files):
    task = Task(files())
    _ = len(task.test), task.setting, task.test.shape
    assert task.test.reads == 0
    _ = task.test[0]
    assert task.test.reads == 3


def test_columns_that_memory_cannot_hold_are_refused_before_they_are_read(files, monkeypatch):
    task, data = Task(files()), sb.open_dataset(files())
    monkeypatch.setattr(memory, "free_memory", lambda: 4 * len(task.train) * 13 * 16 - 1)
    with pytest.raises(UserError, match=r"the column u of 28 samples: .* GB are free; use n= for fewer samples"):
        _ = task.train.u
    assert len(task.val.u) == 6
    with pytest.raises(UserError, match=r"40 rows of u: .* GB are free; read fewer rows"):
        data.read("u")
    assert len(data.read("u", 0, 28 - 1)) == 27


def test_a_mixture_joins_parts_and_knows_its_sources(files):
    task = Task([files(truncation=4), files(truncation=8)])
    assert len(task.train) == 2 * 28 and len(task.equations) == 2
    batch = task.train.batch(torch.tensor([0, 55]))
    assert [batch.equations[i].truncation for i in batch.source] == [4, 8]
    alone = Task(files(truncation=8))
    assert torch.equal(task.train.u[28:], alone.train.u)


def test_other_datasets_by_the_same_split_hold_the_same_paths(files):
    task = Task(files(truncation=4))
    other = task.part("test", files(truncation=8))
    low, high = (torch.fft.rfft(p.dw.double())[..., :3] for p in (task.test, other))
    torch.testing.assert_close(low, high, rtol=0, atol=1e-5)
    assert len(task.part("all", files(truncation=8))) == 40


@pytest.mark.parametrize(
    ("fields", "kappa", "message"),
    [
        ({"inputs": "u0+xi"}, 0.0, "kappa=0"),
        ({"inputs": "xi"}, 0.1, "varies"),
        ({"every": 5}, 0.0, "does not divide"),
        ({"stride": 3}, 0.0, "does not divide"),
        ({"stride": 4}, 0.0, r"noise at 4 points, where its modes alias; .* points=4 edition=converged"),
        ({"n": 41}, 0.0, "has 40"),
        ({"split": "0:1:1"}, 0.0, "three weights"),
        ({"split": "70/15/15"}, 0.0, "three weights"),
        ({"evry": 2}, 0.0, "did you mean 'every'"),
    ],
)
def test_refusals(files, fields, kappa, message):
    with pytest.raises(UserError, match=message):
        _ = len(Task(files(kappa=kappa), **fields).train)


def test_a_dataset_cannot_be_mixed_with_itself(files):
    with pytest.raises(UserError, match="a dataset was given twice"):
        Task([files(), sb.open_dataset(files())])


def test_shapes_that_differ_cannot_be_mixed(files):
    with pytest.raises(UserError, match="differ in shape"):
        Task([files(), files(points=8)])


@pytest.mark.parametrize(
    ("fields", "message"),
    [({"horizon": 0.1}, "the times of their frames"), ({"boundary": "dirichlet"}, "box or boundary condition")],
)
def test_clocks_and_grids_that_differ_cannot_be_mixed(files, fields, message):
    """A part has the step dt, the frames and the grid of its first file."""
    with pytest.raises(UserError, match=f"differ in {message}; they cannot be mixed"):
        Task([files(), files(**fields)])


def test_the_papers_settings():
    phi42 = sb.equation("phi42")
    assert subsampling(phi42) == {"every": 5}
    assert subsampling(sb.equation("phi42", frames=125)) == {}
    one = TaskSpec().setting(sb.equation("phi41", sigma=1.0))
    assert recommended("fno", one).config["layers"] == 1
    assert recommended("fno", one).training["learning_rate"] == 2.5e-3
    nse = TaskSpec(inputs="u0+xi").setting(sb.equation("nse", kappa=1.0))
    assert recommended("dlr-net", nse).training["epochs"] == 1000
    imported = Setting(one.grid, one.times, "xi")
    assert recommended("fno", imported).config["layers"] == 3  # the general entry


def test_every_entry_says_where_it_comes_from():
    for entry in (*_table()["setting"], *_table()["subsampling"]):
        assert entry["source"].startswith(("paper", "ours", "authors", "size from"))


def test_the_task_of_imported_data_follows_from_their_initial_data(tmp_path):
    """A model of the task xi -> u would not be given the u0 of these data, on which u depends."""
    for kappa, inputs in ((0.0, "xi"), (0.1, "u0+xi")):
        eq = sb.equation("phi41", points=16, truncation=8, frames=4, steps=4, kappa=kappa)
        flat = export_published(sb.open_dataset(sb.generate(eq, n=6, out=tmp_path)), tmp_path / inputs)
        data = import_published(flat, tmp_path / inputs)
        assert Task(data).spec.inputs == inputs
        assert Task(data, inputs="xi").spec.inputs == "xi"
        assert Task(data, equation=eq).spec.inputs == inputs


def test_imported_files_with_one_initial_datum_each_are_a_task_with_several(tmp_path):
    files = []
    for name in ("phi41", "kpz", "phi41"):
        eq = sb.equation(name, points=16, truncation=8, frames=4, steps=4, kappa=0.0, horizon=0.05)
        folder = tmp_path / f"{len(files)}"
        flat = export_published(sb.open_dataset(sb.generate(eq, n=6, seed=len(files), out=folder)), folder / "flat")
        files.append(import_published(flat, folder / "imported"))
    assert [Task(file).spec.inputs for file in files] == ["xi", "xi", "xi"]
    assert Task(files[:2]).spec.inputs == "u0+xi"
    assert Task(files[::2]).spec.inputs == "xi"


@pytest.mark.parametrize("shape", [(51, 64, 64), (33, 32, 32, 32)])
def test_recommended_networks_for_other_data_fit_an_ordinary_gpu(shape):
    """In two and three dimensions, on imported data or an equation of one's own."""
    frames, *points = shape
    dim = len(points)

    class Other(EQUATIONS["phi43" if dim == 3 else "phi42"]):
        name = "other"

    grid, times = Grid((*points,), (0.0,) * dim, (1.0,) * dim), tuple(np.linspace(0, 1, frames))
    counts = {}
    for name in (n for n in MODELS if MODELS[n].trainable and dim in MODELS[n].dims):
        known = Other(points=points[0], truncation=8) if MODELS[name].needs_equation else None
        counts[name] = model(name, Setting(grid, times, MODELS[name].inputs[-1], known)).counts()["real"]
    assert {"fno", "nspde"} < counts.keys() and max(counts.values()) < 42e6, counts


def test_sources_are_those_of_the_values_that_are_used():
    nse = TaskSpec(inputs="u0+xi").setting(sb.equation("nse", kappa=1.0))
    assert recommended("fno", nse).sources == ("paper, Table phi41_config", "paper, Table nse_config")
    other = Setting(nse.grid, nse.times, "u0+xi")
    assert recommended("fno", other).sources[1].startswith("ours") and recommended("gt", nse).sources
    kpz = TaskSpec().setting(sb.equation("kpz"))
    assert recommended("gt", kpz).sources[-1].startswith("ours: phi41's settings")  # a source of no value of its own
