"""Models that predict more frames than they were trained on give the same first frames."""

from __future__ import annotations

import pytest
import torch

from spdebench.equations import equation
from spdebench.grids import Grid
from spdebench.models import MODELS, model
from spdebench.models.step.fit import Plan, fit
from spdebench.models.step.rollout import Paths
from spdebench.solvers import simulate
from spdebench.tasks import Batch, TaskSpec

LONG = [name for name in MODELS if MODELS[name].any_horizon]


def test_step_and_a_controlled_equation_are_among_them():
    assert {"step", "ncde-fno"} <= set(LONG) and "fno" not in LONG


@pytest.mark.parametrize("name", LONG)
def test_the_first_frames_do_not_depend_on_the_horizon(name):
    short = equation("phi41", points=16, truncation=4, frames=6, steps=6, horizon=0.06, kappa=0.1)
    task = TaskSpec(inputs="u0+xi")
    torch.manual_seed(0)
    fitted = model(name, task.setting(short))
    paths = simulate(short.replace(frames=12, steps=12, horizon=0.12), 0, range(3))
    first = Batch(paths.u0, paths.dw[:, :7])
    fitted.calibrate(fitted.prepare(first), paths.u[:, :7])
    assert MODELS[name].predicts_on(task.setting(short.replace(frames=12, steps=12, horizon=0.12)), task.setting(short))
    whole, part = fitted.predict(Batch(paths.u0, paths.dw)), fitted.predict(first)
    assert whole.shape == paths.u.shape
    assert torch.allclose(whole[:, :7], part, atol=1e-5)


def test_terms_of_step_with_time_continue_on_a_longer_path():
    """u_{n+1} = (0.9 + 0.1 t_n/T) u_n + dw_{n+1}, fitted up to T, is the same recursion up to 2 T."""
    steps, generator = 8, torch.Generator().manual_seed(0)
    dw = torch.randn(12, 2 * steps + 1, 8, generator=generator, dtype=torch.float64)
    u = torch.zeros_like(dw)
    u[:, 0] = dw[:, 0]
    for n in range(2 * steps):
        u[:, n + 1] = (0.9 + 0.1 * n / steps) * u[:, n] + dw[:, n + 1]
    grid, paths = Grid((8,), (0.0,), (1.0,)), Paths(u[:, : steps + 1], dw[:, : steps + 1])
    limits = torch.full(grid.spectral_shape, torch.inf, dtype=torch.float64), torch.inf

    def error(stepper):
        return float((stepper.rollout(paths.u[:, 0], paths.dw) - paths.u).norm())

    found = fit(Plan(groups=("time",)), grid, paths, 1000, limits, error, [1e-13])
    assert found.error < 1e-8
    torch.testing.assert_close(found.stepper.rollout(u[:, 0], dw), u, atol=1e-8, rtol=0)


def test_others_refuse_another_horizon_and_another_grid_where_they_must():
    one = TaskSpec(inputs="u0+xi").setting(equation("phi41", points=16, truncation=4, frames=6, steps=6, kappa=0.1))
    more = TaskSpec(inputs="u0+xi").setting(equation("phi41", points=16, truncation=4, frames=12, steps=12, kappa=0.1))
    finer = TaskSpec(inputs="u0+xi").setting(equation("phi41", points=32, truncation=4, frames=6, steps=6, kappa=0.1))
    assert not MODELS["fno"].predicts_on(more, one) and MODELS["fno"].predicts_on(finer, one)
    assert not MODELS["deeponet"].predicts_on(finer, one) and MODELS["deeponet"].predicts_on(one, one)
