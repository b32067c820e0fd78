"""Networks as generators: loss=energy, its draws, resuming, members of a run, and the scores of laws in its record."""

from __future__ import annotations

import copy
import functools
import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import spdebench as sb
from spdebench.engines import memory
from spdebench.errors import UserError
from spdebench.metrics import law_scores
from spdebench.models import MODELS, Config, Features, OperatorModel
from spdebench.models.features import Redrawn, redrawn_part
from spdebench.noise.unseen import UnseenNoise, fill_states
from spdebench.tasks import Batch, Setting, Task, TaskSpec
from spdebench.training import Fit, TrainOptions, options_for, part_for
from spdebench.training.fitting import calibrate
from spdebench.training.losses import EnergyLoss
from spdebench.training.members import DrawnMembers, completion
from spdebench.training.options import learns_laws
from spdebench.training.steps import Streamed


@dataclass(frozen=True, kw_only=True)
class AffineConfig(Config):
    pass


class Affine(OperatorModel):
    """u = u0 + b + A dw, A and b learned: the solutions of linear equations with additive noise are of this form."""

    name = title = "affine"
    config_class = AffineConfig

    def __init__(self, setting: Setting, config: AffineConfig) -> None:
        super().__init__(setting, config)
        size = setting.frames * setting.grid.points[0]
        self.map = nn.Linear(size, size)

    def prepare(self, batch: Batch) -> Features:
        return {"dw": batch.dw / self.setting.dt**0.5, "u0": batch.u0}

    def forward(self, features: Features) -> Tensor:
        dw, u0 = features["dw"], features["u0"]
        return u0.unsqueeze(1) + 0.3 * self.map(dw.flatten(1)).view(dw.shape)


@pytest.fixture(autouse=True)
def _affine(monkeypatch):
    monkeypatch.setitem(MODELS._items, "affine", Affine)


HEAT = {"points": 8, "frames": 2, "steps": 2, "truncation": 4, "kappa": 0.1, "diffusivity": 0.1}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return sb.generate(sb.equation("heat", **HEAT), n=160, seen=2, members=16, out=tmp_path_factory.mktemp("data"))


@pytest.fixture
def law_task(file) -> Task:
    return Task(file, seen=2)


def make_fit(task: Task, *, streamed: bool = False, device: str = "cpu", graph: bool | None = None, **options) -> Fit:
    chosen = TrainOptions(**{"epochs": 3, "batch_size": 50, "learning_rate": 1e-2, "loss": "energy", **options})
    torch.manual_seed(3)
    model = sb.build("affine", task).to(device)
    place = torch.device("cpu") if streamed else model.device
    train = redrawn_part(model, task.train, chosen.draws, chosen.seed, 0, place)
    val = redrawn_part(model, task.val, 4, chosen.seed, None, place)
    calibrate(model, train)
    fit = Fit(model, train, val, chosen, graph=graph)
    if streamed and device == "cpu":
        fit._make_steps()
        for size, step in fit._steps.items():
            step.feed = Streamed(train, fit._train_scale, size, fit.device)
    return fit


def trained(fit: Fit) -> dict[str, Tensor]:
    while not fit.finished:
        fit.run_epoch()
    return fit.model.state_dict()


# --- the loss -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("draws", [2, 3])
def test_the_loss_is_the_energy_score(draws):
    """The metric of the same members, up to the volume of a grid cell."""
    generator = torch.Generator().manual_seed(0)
    grid = sb.Grid.unit(6, dim=2)
    x = torch.randn(draws, 5, 4, 6, 6, generator=generator)
    u = torch.randn(5, 4, 6, 6, generator=generator)
    score = law_scores(x.transpose(0, 1), u[:, None], grid, resamples=0)["energy_score"]
    found = EnergyLoss(draws).errors(x.flatten(0, 1), u) / 6
    np.testing.assert_allclose(found.numpy(), score.samples, rtol=1e-5)


def test_the_gradient_is_that_of_differences_and_finite_at_zero():
    generator = torch.Generator().manual_seed(1)
    u = torch.randn(2, 3, 4, generator=generator)
    x = torch.randn(4, 3, 4, generator=generator, requires_grad=True)
    loss, scale = EnergyLoss(2), torch.ones(2)
    (gradient,) = torch.autograd.grad(loss(x, u, scale), x)
    way = torch.randn(x.shape, generator=generator)
    step = 1e-2
    ahead, behind = (float(loss((x + s * way).detach(), u, scale)) for s in (step, -step))
    assert (ahead - behind) / (2 * step) == pytest.approx(float((gradient * way).sum()), rel=1e-2)
    equal = torch.cat((u, u)).requires_grad_()  # all differences are 0
    (gradient,) = torch.autograd.grad(loss(equal, u, scale), equal)
    assert not gradient.any() and not loss(equal, u, scale)


# --- draws --------------------------------------------------------------------------------------------------------
def test_draws_are_a_function_of_seed_epoch_sample_and_draw(law_task):
    model = sb.build("affine", law_task)
    data = redrawn_part(model, law_task.train, 2, 5, 0, model.device)
    n, part, addresses = len(data), law_task.train, {k: v.data_ptr() for k, v in data.features.items()}
    first = data.features["dw"].clone()
    for epoch in (3, 0):
        data.draw(epoch)
        assert {k: v.data_ptr() for k, v in data.features.items()} == addresses  # in place, for captured graphs
        for number, row in ((0, 0), (1, n - 1)):
            states = fill_states(5, [row], number, "cpu", epoch)
            fill = law_task.setting.unseen().draw(states, 2, law_task.setting.dt)[0]
            expected = (part.dw[row] + fill) / law_task.setting.dt**0.5
            assert torch.allclose(data.features["dw"][number * n + row], expected, atol=1e-6)
            assert torch.equal(data.features["u0"][number * n + row], part.u0[row])
    assert torch.equal(data.features["dw"], first) and not torch.equal(first[:n], first[n:])


def test_all_draws_are_compared_with_the_memory_that_is_free(law_task, monkeypatch):
    model, rows = sb.build("affine", law_task), 2 * len(law_task.train)
    made = redrawn_part(model, law_task.train, 2, 5, 0, model.device)
    need = sum(values.nbytes for values in made.features.values())
    monkeypatch.setattr(memory, "free_memory", lambda: need - 1)
    with pytest.raises(UserError, match=f"features in {rows} rows .* GB are free"):
        redrawn_part(model, law_task.train, 2, 5, 0, model.device)
    assert len(redrawn_part(model, law_task.train, 1, 5, 0, model.device).features["dw"]) == rows // 2


def test_normalisers_see_filled_noise(law_task):
    seen = []
    model = sb.build("affine", law_task)
    model.calibrate = lambda features, target: seen.append((features["dw"], target))  # type: ignore[method-assign]
    calibrate(model, redrawn_part(model, law_task.train, 2, 0, 0, model.device))
    ((dw, target),) = seen
    assert len(dw) == len(target) == len(law_task.train)
    assert float(dw[:, 1:].var() / law_task.train.dw[:, 1:].div(law_task.setting.dt**0.5).var()) > 1.2


def test_streamed_data_give_the_same_weights(law_task):
    here, there = trained(make_fit(law_task)), trained(make_fit(law_task, streamed=True))
    assert all(torch.equal(here[key], there[key]) for key in here)


def test_a_resumed_training_is_the_uninterrupted_one(law_task):
    whole = make_fit(law_task, draws=3)
    weights = trained(whole)
    first = make_fit(law_task, draws=3)
    first.run_epoch()
    state = copy.deepcopy(first.state())
    second = make_fit(law_task, draws=3)
    second.load(state)
    assert all(torch.equal(value, weights[key]) for key, value in trained(second).items())
    plain = [{k: v for k, v in entry.items() if k != "seconds"} for entry in whole.log]
    assert plain == [{k: v for k, v in entry.items() if k != "seconds"} for entry in second.log]
    assert plain[0]["val_metric"] == "energy_score"


@pytest.mark.parametrize(
    ("options", "closeness"),
    [({"precision": "bfloat16"}, 0.02), pytest.param({"compile": True}, 1e-4, marks=pytest.mark.slow)],
)
def test_half_precision_and_compiling_change_the_rounding_only(law_task, monkeypatch, options, closeness):
    """The model is traced but not turned into machine code, which takes a minute."""
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))
    usual, other = make_fit(law_task), make_fit(law_task, **options)
    weights = trained(other)
    assert weights.keys() == trained(usual).keys() and all(w.dtype == torch.float32 for w in weights.values())
    assert usual.best < 0.9 * usual.log[0]["val"]
    assert other.best == pytest.approx(usual.best, rel=closeness)


@pytest.mark.gpu
@pytest.mark.parametrize("streamed", [False, True])
def test_a_graph_gives_the_weights_of_eager_steps(law_task, streamed):
    eager, graph = (make_fit(law_task, streamed=streamed, device="cuda", graph=g) for g in (False, True))
    a, b = trained(eager), trained(graph)
    assert graph.graph and all(torch.allclose(a[key], b[key], rtol=1e-4, atol=1e-6) for key in a)
    assert eager.log[-1]["val"] == pytest.approx(graph.log[-1]["val"], rel=1e-4)
    host = make_fit(law_task)  # the same draws, to rounding
    trained(host)
    assert host.log[-1]["val"] == pytest.approx(graph.log[-1]["val"], rel=1e-2)


# --- the law that is learned --------------------------------------------------------------------------------------
def test_a_linear_equation_is_learned_with_its_spread(law_task):
    """The conditional law is Gaussian; its standard deviation, from 2000 solutions, is learned within 10 per cent."""
    fit = make_fit(law_task, epochs=30, batch_size=20, learning_rate=2e-2, scheduler="cosine", weight_decay=0.0)
    trained(fit)
    fit.model.load_state_dict(fit.best_weights)
    part = law_task.test
    x = fit.model.sample(part.batch(), 64)
    eq = sb.equation("heat", **HEAT)
    one = sb.simulate(eq, 1, range(2000))
    rest = one.u - sb.solve(eq, one.u0, sb.solvers.seen_noise(eq, 1, range(2000), 2)).float()  # of the unseen noise
    wanted, got = rest.std(0)[1:], x.std(1).mean(0)[1:]
    assert float((got / wanted).mean()) == pytest.approx(1, abs=0.1)
    truth = law_task.members()
    point = law_scores(truth.mean(1, keepdims=True), truth, part.grid, resamples=0)["energy_score"].value
    best = law_scores(truth[:, :8], truth[:, 8:], part.grid, resamples=0)["energy_score"].value
    score = law_scores(x, truth, part.grid, resamples=0)["energy_score"].value
    assert (point - score) / (point - best) > 0.8


# --- runs ---------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def runs(file, tmp_path_factory):
    """A network that draws members, one that predicts a point, and one of the path, on the same samples."""
    out = tmp_path_factory.mktemp("runs")
    few = {"epochs": 2, "batch_size": 60, "out": out}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(MODELS._items, "affine", Affine)
        law, point = (sb.train("affine", Task(file, seen=2), loss=loss, **few) for loss in ("energy", "rel_l2"))
        return {"law": law, "point": point, "path": sb.train("affine", Task(file), **few)}


LAW_SCORES = {
    "energy_score",
    "energy_score_path",
    "energy_distance",
    "energy_distance_path",
    "crps",
    "mean_error",
    "std_error",
    "sliced_w2",
}
OF_MEMBERS = {"coverage_50", "coverage_90", "rank_chi2"}


def test_the_record_has_the_scores_of_the_law(runs, law_task):
    law, point, path = runs["law"], runs["point"], runs["path"]
    assert set(law.record.scores) >= LAW_SCORES | OF_MEMBERS | {"rel_l2"}
    assert set(point.record.scores) & (LAW_SCORES | OF_MEMBERS) == LAW_SCORES  # one member
    assert not set(path.record.scores) & (LAW_SCORES | OF_MEMBERS)
    assert len(law.record.samples["energy_score"]) == len(law_task.test)
    assert law.spec.options["loss"] == "energy" and "draws" not in law.spec.options
    x = law.sample(law_task.test.u0, law_task.test.dw)
    again = law_scores(x, law_task.members(), law_task.test.grid, times=law_task.test.times, resamples=0)
    assert law.scores["crps"].value == pytest.approx(again["crps"].value, rel=1e-5)
    assert sum(law.scores["rank_chi2"].details["histogram"]) == len(law_task.test)
    np.testing.assert_allclose(law.members, x[:4], atol=1e-5)
    np.testing.assert_allclose(law.predictions, x.mean(1), atol=1e-5)
    np.testing.assert_array_equal(law.predict(law_task.test.u0[:3], law_task.test.dw[:3]), x[:3].mean(1))
    assert json.loads(law.file("scores.json").read_text())["settings"]["law"]["members"] == 64


def test_members_that_memory_cannot_hold_are_refused_before_they_are_drawn(runs, law_task, monkeypatch):
    law, part = runs["law"], law_task.test
    one = 4 * 3 * 8  # bytes of a path: float32, 3 frames, 8 points
    monkeypatch.setattr(memory, "free_memory", lambda: one * len(part))
    mean = law.predict(part.u0, part.dw)  # 64 members of a few inputs at a time: only their means are kept
    assert mean.shape == (len(part), 3, 8)
    with pytest.raises(UserError, match=rf"64 members for each of {len(part)} inputs: .* GB are free; draw fewer mem"):
        law.sample(part.u0, part.dw)
    monkeypatch.setattr(memory, "free_memory", lambda: one * len(part) - 1)
    with pytest.raises(UserError, match=rf"predictions for {len(part)} inputs: .* predict for fewer inputs at a time"):
        law.predict(part.u0, part.dw)
    assert law.sample(part.u0[:1], part.dw[:1], members=2).shape == (1, 2, 3, 8)


def test_members_do_not_depend_on_how_they_are_drawn(runs, law_task):
    part, model = law_task.test, runs["law"].model
    whole = model.sample(part.batch(), 6, seed=4)
    some = model.sample(part.batch(slice(5, 9)), 2, seed=4, first=3, samples=torch.arange(5, 9))
    torch.testing.assert_close(whole[5:9, 3:5], some)
    assert not torch.allclose(whole, model.sample(part.batch(), 6, seed=5))
    assert not torch.allclose(whole[:, 0], whole[:, 1])


def test_a_model_of_the_path_is_fed_with_noise_of_the_true_law(runs, law_task):
    """What is added to the seen noise has the variances of dw - dw_seen, here one of each unseen function."""
    path, part, setting = runs["path"], law_task.test, law_task.setting
    x = path.sample(part.u0, part.dw, seen=2, members=3)
    fill = setting.unseen(law=True).draw(fill_states(0, range(len(part)), 1, "cpu"), 2, setting.dt)
    expected = path.predict(part.u0, part.dw + fill)
    np.testing.assert_allclose(x[:, 1, 1:], expected[:, 1:], atol=1e-5)
    assert np.array_equal(x[:, 1, 0], part.u0)
    entry = sb.training.score_on(path, part, "seen=2")
    assert set(entry.scores) >= LAW_SCORES | OF_MEMBERS


def test_the_noise_that_is_drawn_for_other_data_is_theirs(runs, tmp_path):
    """A model of the path with J = 4 on data with J = 6: all unseen functions of these data are drawn."""
    path, more = runs["path"], sb.equation("heat", **{**HEAT, "truncation": 6})
    data = sb.open_dataset(sb.generate(more, n=20, seed=1, seen=2, out=tmp_path))
    drawn = completion(path.model, part_for(path, data, "all").showing("dw_seen"))
    assert drawn is not None and drawn.functions == more.series().functions - 3
    variance = drawn.draw(fill_states(0, range(4000), 0, "cpu"), 2, 0.5)[:, 1:].var(0).mean()
    torch.testing.assert_close(variance, torch.tensor(0.5 * drawn.functions), rtol=0.05, atol=0)


def test_noise_of_one_law_is_not_drawn_for_a_mixture_of_equations(runs, file, tmp_path):
    path, law = runs["path"], sb.open_dataset(file)
    seeds = [law, sb.open_dataset(sb.generate(law.equation, n=len(law), seed=1, seen=2, out=tmp_path))]
    assert completion(path.model, Task(seeds, seen=2).test) is not None
    more = sb.equation("heat", **{**HEAT, "truncation": 6})
    mixed = Task([law, sb.generate(more, n=len(law), seed=1, seen=2, out=tmp_path)], seen=2).test
    with pytest.raises(UserError, match=r"is not that of the other files of the mixture; score them one by one"):
        completion(path.model, mixed)
    known = sb.train("deeponet", Task(file, seen=4), out=tmp_path, config={"width": 8}, epochs=1)
    wider = [sb.equation("heat", **{**HEAT, "points": 16, "truncation": j}) for j in (6, 8)]
    same_number = [sb.generate(each, n=20, seen=4, out=tmp_path) for each in wider]
    with pytest.raises(UserError, match=r"is not that of the other files of the mixture; score them one by one"):
        completion(known.model, Task(same_number, seen=4).test)


def test_the_noise_that_is_drawn_for_other_data_has_their_time_step(runs, tmp_path, monkeypatch):
    """Increments over twice the time have twice the variance."""
    path, own = runs["path"], sb.equation("heat", **HEAT)
    data = sb.open_dataset(sb.generate(own.replace(horizon=2 * own.horizon), n=20, seed=1, seen=2, out=tmp_path))
    drawn = DrawnMembers(path.model, part_for(path, data, "all").showing("dw_seen"), members=2)
    steps, before = [], UnseenNoise.draw
    monkeypatch.setattr(UnseenNoise, "draw", lambda *given: steps.append(given[3]) or before(*given))
    drawn.read(slice(0, 2))
    assert steps == [pytest.approx(2 * path.model.setting.dt)]


def test_what_cannot_draw_members_says_so(runs, law_task):
    inputs = law_task.test.u0, law_task.test.dw
    for run, options, message in (
        ("point", {}, "predicts one solution"),
        ("path", {}, r"in Python run.sample\(u0, dw_seen, seen=K\)"),
        ("path", {"seen": "2"}, "seen must be a whole number, got '2'"),
        ("law", {"seen": 0}, "trained with seen=2"),
        ("law", {"members": 0}, "at least 1"),
        ("law", {"members": 1.5}, "at least 1, got 1.5"),
        ("path", {"seen": 6}, "between 0 and J=4, got 6"),
    ):
        with pytest.raises(sb.UserError, match=message):
            runs[run].sample(*inputs, **options)
    u0, dw = inputs
    for shapes, message in (
        ((u0, dw[:, :2]), r"dw must be \(N T X\) with 3 frames, t_0 among them"),
        ((u0[:, :4], dw[:, :, :4]), "points"),
        ((u0[:3], dw), r"u0 must be \(N X\) = \(24, 8\)"),
        ((u0[0], dw[0]), r"dw must be \(N T X\)"),
        ((u0, None), "u0 and dw must be arrays of numbers"),
        (([[0.0], [0.0, 1.0]], dw), "u0 and dw must be arrays of numbers"),
    ):
        with pytest.raises(sb.UserError, match=message):
            runs["law"].sample(*shapes, members=2)


def test_too_many_draws_for_the_memory_are_told(law_task, tmp_path, monkeypatch):
    def no_memory(*_):
        raise MemoryError

    monkeypatch.setattr(Fit, "run_epoch", no_memory)
    with pytest.raises(sb.UserError, match=r"memory of cpu; try a smaller batch_size or fewer draws$"):
        sb.train("affine", law_task, out=tmp_path, loss="energy", draws=3, epochs=1)


# --- what is refused ----------------------------------------------------------------------------------------------
def test_a_model_without_training_takes_the_options_of_a_plan(law_task, tmp_path):
    """A campaign passes all options, those at their defaults among them."""
    assert sb.train("average", law_task, out=tmp_path, **vars(TrainOptions(epochs=0))).finished


def test_options_that_do_not_fit_are_refused(law_task, file, tmp_path):
    setting = law_task.setting
    for given, message in (
        ({"draws": 1}, "at least 2"),
        ({"loss": "rel_l2", "draws": 3}, "is for loss=energy"),
    ):
        with pytest.raises(sb.UserError, match=message):
            TrainOptions(**{"loss": "energy", **given})
    with pytest.raises(sb.UserError, match="add seen=K"):
        options_for("affine", Task(file).setting, loss="energy")
    with pytest.raises(sb.UserError, match="seen=4 is all of it"):
        options_for("affine", replace(setting, seen=4), loss="energy")
    with pytest.raises(sb.UserError, match="mixture of 2"):
        other = sb.generate(sb.equation("heat", **HEAT), n=160, seed=1, seen=2, out=tmp_path)
        sb.train("affine", Task([file, other], seen=2), loss="energy")
    with pytest.raises(sb.UserError, match="sweep one"):
        sb.training.sweep("affine", law_task, {"loss": ["rel_l2", "energy"]})
    with pytest.raises(sb.UserError, match=r"'tiny' are too costly; models that do: .*fno.*nspde"):
        options_for("tiny", setting, loss="energy")


TINY = {
    "fno": {"width": 4, "layers": 1, "modes": (2, 2), "padding": 0},
    "wno": {"width": 4},
    "deeponet": {"width": 8},
    "gt": {"width": 8, "heads": 2},
}


@pytest.mark.parametrize("name", [n for n in MODELS if MODELS[n].trainable and 1 in MODELS[n].dims])
def test_every_network_learns_a_law_or_is_refused_by_name(name):
    eq = sb.equation("phi41", points=16, frames=11, steps=11, truncation=8, kappa=0.1)
    setting = TaskSpec(inputs="u0+xi", seen=2).setting(eq)
    if MODELS[name].law_loss == "flow":  # tests/laws/test_flow_matching.py
        with pytest.raises(sb.UserError, match=f"'{name}' is not trained with loss=energy"):
            options_for(name, setting, loss="energy")
        return
    if not learns_laws(MODELS[name]):
        assert name in ("nors", "dlr-net")
        with pytest.raises(sb.UserError, match=f"'{name}' are too costly"):
            options_for(name, setting, loss="energy")
        return
    known = set(MODELS[name].config_class.__dataclass_fields__)
    model = sb.model(name, setting, **{k: v for k, v in TINY.get(name, {}).items() if k in known})
    out = sb.simulate(eq, 0, range(4))
    given = Batch(out.u0, sb.solvers.seen_noise(eq, 0, range(4), 2), (eq,), torch.zeros(4, dtype=torch.long))
    train, val = (Redrawn({}, out.u, draws, model=model, given=given, seed=0) for draws in (2, 4))
    train.draw(0)
    val.draw(None)
    calibrate(model, train)
    options = options_for(name, setting, loss="energy", epochs=1, batch_size=4)
    before = copy.deepcopy(model.state_dict())
    entry = Fit(model, train, val, options).run_epoch()
    assert np.isfinite([entry["train"], entry["val"]]).all()
    assert any(not torch.equal(before[k], v) for k, v in model.state_dict().items())
    members = model.sample(given, 3)
    assert members.shape == (4, 3, 12, 16) and torch.isfinite(members).all()
    assert float(members[:, :, 1:].std(1).max()) > 0
