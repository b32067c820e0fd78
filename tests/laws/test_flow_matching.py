"""`flow-fno`: the reference law, the flow of Gaussian laws, draws, resuming, and the exact law of the heat equation."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import Tensor

import spdebench as sb
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.metrics import law_scores, skill
from spdebench.models.features import flow_part
from spdebench.models.flow_fno import FlowFNO, GaussianReference, midpoint
from spdebench.noise.unseen import fill_states
from spdebench.tasks import Task
from spdebench.tasks.law_floor import exact_gaussian
from spdebench.training import Fit, TrainOptions, options_for
from spdebench.training.fitting import calibrate

SMALL = {"width": 4, "layers": 1, "modes": (2, 2), "padding": 0, "steps": 2}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    eq = sb.equation("heat", points=8, frames=3, steps=3, truncation=4, kappa=0.3)
    return sb.generate(eq, n=60, seen=2, members=4, out=tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def task(file) -> Task:
    return Task(file, seen=2)


def built(task: Task, **config) -> FlowFNO:
    torch.manual_seed(3)
    model = sb.model("flow-fno", task, **{**SMALL, **config})
    assert isinstance(model, FlowFNO)
    return model


@pytest.fixture(scope="module")
def fitted(task) -> FlowFNO:
    """Calibrated, not trained."""
    model = built(task)
    calibrate(model, flow_part(model, task.train, 1, 0, model.device))
    return model


# --- the reference ------------------------------------------------------------------------------------------------
GRIDS = [Grid.unit(6), Grid.unit(5), Grid.unit(6, boundary="dirichlet"), Grid.unit((4, 6))]


@pytest.mark.parametrize("grid", GRIDS, ids=["even", "odd", "dirichlet", "plane"])
def test_the_reference_has_the_covariance_of_the_data(grid):
    """Data with given covariances in time of the modes, and no others: these covariances are found again."""
    frames, points = 3, math.prod(grid.points)
    known, found = GaussianReference(grid, frames), GaussianReference(grid, frames)
    time = torch.tensor([[1.0, 0.2, 0.1], [0.2, 0.8, 0.3], [0.1, 0.3, 1.2]])
    k = 1 / (1 - grid.laplacian().flatten().float())
    known.roots.copy_(k[:, None, None] * time + k[:, None, None] ** 2 * torch.eye(3))
    if not grid.periodic:
        known.roots[0] = 0  # the slot of no sine
    unit = torch.eye(frames * points).view(-1, frames, *grid.points)  # white noise has the covariance of these
    found.fit(known(unit) * math.sqrt(len(unit) - 1))
    torch.testing.assert_close(found.roots, known.roots, rtol=1e-4, atol=1e-5)


def test_times_are_uniform_and_the_reference_is_normal(fitted):
    """4000 draws: mean and variance of s, and of z at each point, within 4.5 standard errors."""
    s, z = fitted.draw(fill_states(1, range(4000), 0, "cpu"))
    assert float(s.mean()) == pytest.approx(0.5, abs=4.5 * math.sqrt(1 / 12 / 4000))
    assert float(s.square().mean()) == pytest.approx(1 / 3, abs=4.5 * math.sqrt(4 / 45 / 4000))
    assert not z[:, 0].any() and float(z.mean(0).abs().max() / z.std()) < 4.5 * 1.5 / math.sqrt(4000)
    variance = z[:, 1:].var(0).mean(1)  # of each frame; the law does not depend on the point
    data = torch.linalg.diagonal(fitted.reference.roots @ fitted.reference.roots.mT)
    weights = fitted.setting.grid.multiplicity().float() / 8
    assert float((variance / (weights @ data) - 1).abs().max()) < 4.5 * math.sqrt(2 / 4000)


# --- the flow -----------------------------------------------------------------------------------------------------
def test_the_sampler_converges_to_the_exact_gaussian_law():
    """From N(0, C) to N(mu, A), which do not commute: v is linear. In the limit mu + L z has the covariance L C L' = A.
    The method has order 2; here order 3, since the next term vanishes where x(s)^2 is a polynomial of degree 2."""
    generator = torch.Generator().manual_seed(0)
    a, c = (m @ m.T + torch.eye(3) for m in torch.randn(2, 3, 3, generator=generator, dtype=torch.float64))
    mu, eye = torch.tensor([1.0, -2.0, 0.5]).double(), torch.eye(3, dtype=torch.float64)

    def velocity(s: float, x: Tensor) -> Tensor:
        gain = (s * a - (1 - s) * c) @ torch.linalg.inv(s**2 * a + (1 - s) ** 2 * c)
        return mu + (x - s * mu) @ gain.T

    def ends(steps: int) -> Tensor:
        return midpoint(velocity, torch.cat((torch.zeros_like(eye[:1]), eye)), steps)

    limit = ends(640)
    errors = [float((ends(steps) - limit).norm()) for steps in (10, 20, 40)]
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx(3, abs=0.1)
    linear = limit[1:] - limit[0]  # rows: the images of the unit vectors
    torch.testing.assert_close(linear.T @ c @ linear, a, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(limit[0], mu, rtol=1e-4, atol=1e-4)


def test_the_sampler_has_order_two():
    """dx/ds = (2s - 1 + s^2) x^2, x(0) = 1, whose solution is 1/x = 1 + s - s^2 - s^3/3."""
    ends = [midpoint(lambda s, x: (2 * s - 1 + s * s) * x * x, torch.ones(1).double(), n) for n in (80, 160, 320)]
    errors = [abs(float(end) - 1.5) for end in ends]
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx(2, abs=0.1)


def test_a_network_that_returns_nothing_draws_the_reference(fitted, task):
    """F = 0: members are m + z, up to the error of 40 steps; t_0 is u0."""
    model = copy.deepcopy(fitted)
    for parameter in model.trunk.decode.parameters():
        torch.nn.init.zeros_(parameter)
    object.__setattr__(model, "config", sb.model("flow-fno", task, **{**SMALL, "steps": 40}).config)
    batch = task.test.batch()
    members = model.sample(batch, 2)
    z = model.draw(fill_states(0, range(len(batch)), 1, "cpu"))[1]
    expected = model.centre.inverse(z)
    torch.testing.assert_close(members[:, 1, 1:], expected[:, 1:], rtol=0, atol=2e-3 * float(z.abs().max()))
    assert torch.equal(members[:, 1, 0], batch.u0)


def test_members_are_reproducible_and_independent(fitted, task):
    batch = task.test.batch()
    whole = fitted.sample(batch, 5, seed=4)
    some = fitted.sample(task.test.batch(slice(3, 6)), 2, seed=4, first=2, samples=torch.arange(3, 6))
    torch.testing.assert_close(whole[3:6, 2:4], some)
    assert not torch.allclose(whole, fitted.sample(batch, 5, seed=5))
    first, second = (fitted.draw(fill_states(0, range(1000), member, "cpu"))[1][:, 1:] for member in (0, 1))
    alike = (first * second).sum(0) / (first.norm(dim=0) * second.norm(dim=0))
    assert float(alike.abs().max()) < 4.5 / math.sqrt(1000)


# --- training -----------------------------------------------------------------------------------------------------
def make_fit(
    task: Task, *, fresh: bool = True, device: str = "cpu", graph: bool | None = None, on_host: bool = False
) -> Fit:
    options = TrainOptions(epochs=3, batch_size=20, learning_rate=1e-2, loss="flow")
    model = built(task).to(device)
    place = torch.device("cpu") if on_host else model.device
    train, val = (flow_part(model, part, d, options.seed, place) for part, d in ((task.train, 1), (task.val, 4)))
    if fresh:
        calibrate(model, train)
    return Fit(model, train, val, options, graph=graph)


def test_a_resumed_training_is_the_uninterrupted_one(task):
    """To the bit; the second process takes scales and reference from the checkpoint, as `train` does."""
    whole, first, second = make_fit(task), make_fit(task), make_fit(task, fresh=False)
    first.run_epoch()
    second.load(copy.deepcopy(first.state()))
    for fit in (whole, second):
        while not fit.finished:
            fit.run_epoch()
    weights = whole.model.state_dict()
    assert all(torch.equal(value, weights[key]) for key, value in second.model.state_dict().items())
    assert [e["val"] for e in whole.log] == [e["val"] for e in second.log]
    assert whole.log[0]["val_metric"] == "flow_loss" and len({e["train"] for e in whole.log}) == 3


def test_a_training_part_without_variance_is_named(file):
    """One sample has no variance, in whose unit the loss is: the error is not that of an empty validation part."""
    with pytest.raises(UserError, match=r"training samples that differ, u is the same in all 1 of them"):
        make_fit(Task(file, seen=2, split="1:3:3", n=7))


@pytest.mark.gpu
@pytest.mark.parametrize("on_host", [False, True])
def test_a_graph_gives_the_weights_of_eager_steps(task, on_host):
    eager, graph = (make_fit(task, device="cuda", graph=g, on_host=on_host) for g in (False, True))
    for fit in (eager, graph):
        while not fit.finished:
            fit.run_epoch()
    weights = eager.model.state_dict()
    assert graph.graph
    for key, value in graph.model.state_dict().items():
        torch.testing.assert_close(value, weights[key], rtol=1e-4, atol=1e-5)


def test_pairs_are_redrawn_in_place_and_lie_on_the_line(fitted, task):
    """The target is u - z: from the state x_s = (1 - s) z + s x its line ends in x."""
    data = flow_part(fitted, task.train, 2, 7, fitted.device)
    n = len(task.train)
    data.draw(0)
    first, address = data.target.clone(), data.target.data_ptr()
    data.draw(1)
    assert data.target.data_ptr() == address and not torch.equal(first, data.target)
    assert not torch.equal(data.features["time"][:n], data.features["time"][n:])
    s = data.features["time"][:, None, None]
    end = data.features["state"] + (1 - s) * (data.target - fitted.centre.mean) / fitted.centre.size
    u = fitted.centre.inverse(end)[:, 1:]
    torch.testing.assert_close(u, task.train.u.repeat(2, 1, 1)[:, 1:], rtol=1e-4, atol=1e-5)
    data.draw(0)
    assert torch.equal(first, data.target)


def test_gradients_reach_all_parameters_and_the_state(fitted, task):
    model = copy.deepcopy(fitted)
    data = flow_part(model, task.val, 1, 0, model.device)
    data.draw(0)
    (model(data.features) - data.target)[:, 1:].square().mean().backward()
    dead = [k for k, p in model.named_parameters() if p.grad is None or not bool((p.grad != 0).any())]
    assert not dead, dead
    lift = model.lift.weight.grad
    assert lift is not None and bool((lift[:, 1:] != 0).any(0).all())  # every input but dw at t_0, which is 0


def test_a_run_draws_members_and_is_scored_as_a_law(file, task, tmp_path):
    run = sb.train("flow-fno", task, config=SMALL, epochs=2, batch_size=21, loss="flow", out=tmp_path)
    assert {"energy_score", "crps", "coverage_90", "rel_l2"} <= set(run.record.scores)
    part = task.test
    x = run.sample(part.u0, part.dw, members=3)
    assert x.shape == (9, 3, 4, 8) and np.isfinite(x).all() and float(x[:, :, 1:].std(1).min()) > 0
    assert np.array_equal(x[:, 1, 0], part.u0.numpy())
    point = run.model(run.model.prepare(part.batch()))  # the network at s = 0 and x = 0
    centre = run.model.centre
    zero = torch.zeros(9), torch.zeros(9, 4, 8)
    torch.testing.assert_close(point, centre.inverse(run.model.velocity(*zero, run.model.prepare(part.batch()))))


def test_where_there_is_no_law_it_predicts_a_path(file, task):
    whole = Task(file)
    assert options_for("flow-fno", whole.setting, epochs=1).loss == "rel_l2"
    with pytest.raises(UserError, match="loss=flow learns the law of u given a part of the noise; add seen=K"):
        options_for("flow-fno", whole.setting, loss="flow")
    with pytest.raises(UserError, match="seen=4 is all of it"):
        options_for("flow-fno", Task(file, seen=4).setting, loss="flow")
    with pytest.raises(UserError, match=r"'flow-fno' is not trained with loss=energy; models that are: .*deeponet"):
        options_for("flow-fno", task.setting, loss="energy")
    with pytest.raises(UserError, match="'fno' is not trained with loss=flow; models that are: flow-fno"):
        options_for("fno", task.setting, loss="flow")


@pytest.mark.slow
def test_a_linear_equation_is_learned_with_its_mean_and_spread(tmp_path):
    """The law of heat is known. On 90 inputs with 64 members the standard deviation of a trained flow is within 10 %
    (its own standard error is 1 %) and the mean within a quarter of the spread of the mean over inputs (1/8 of a
    standard deviation from 64 members); the climatology is three times too wide and knows no mean."""
    eq = sb.equation("heat", points=16, truncation=8, frames=6, steps=6, kappa=0.5)
    task = Task(sb.generate(eq, n=600, seen=2, members=16, out=tmp_path), seen=2)
    small = {"width": 16, "layers": 2, "modes": (8, 4), "padding": 2}
    often = {"epochs": 40, "learning_rate": 5e-3, "scheduler": "cosine", "clip_norm": 1.0, "weight_decay": 0.0}
    often["loss"] = "flow"
    flow = sb.train("flow-fno", task, config=small, out=tmp_path, **often)
    part, truth = task.test, task.members()
    exact = exact_gaussian(task, 64).numpy()
    laws = {
        "flow": flow.sample(part.u0, part.dw),
        "climatology": sb.train("climatology", task, out=tmp_path).sample(part.u0, part.dw),
        "exact": exact,
    }
    spread = {name: float((x.std(1).mean(0)[1:] / exact.std(1).mean(0)[1:]).mean()) for name, x in laws.items()}
    size = np.linalg.norm((exact.mean(1) - exact.mean((0, 1)))[:, 1:])
    away = {name: float(np.linalg.norm((x.mean(1) - exact.mean(1))[:, 1:]) / size) for name, x in laws.items()}
    score = {name: law_scores(x, truth, part.grid, resamples=0)["energy_score"].value for name, x in laws.items()}
    assert spread["flow"] == pytest.approx(1, abs=0.1) and spread["climatology"] > 2
    assert away["flow"] < 0.25 and away["climatology"] > 0.9
    assert skill(score["climatology"], score["flow"], score["exact"]) > 0.9
