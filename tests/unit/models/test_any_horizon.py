"""Models that predict more frames than they were trained on give the same first frames."""

from __future__ import annotations

import pytest
import torch

from spdebench.equations import equation
from spdebench.models import MODELS, model
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


def test_others_refuse_another_horizon_and_another_grid_where_they_must():
    one = TaskSpec(inputs="u0+xi").setting(equation("phi41", points=16, truncation=4, frames=6, steps=6, kappa=0.1))
    more = TaskSpec(inputs="u0+xi").setting(equation("phi41", points=16, truncation=4, frames=12, steps=12, kappa=0.1))
    finer = TaskSpec(inputs="u0+xi").setting(equation("phi41", points=32, truncation=4, frames=6, steps=6, kappa=0.1))
    assert not MODELS["fno"].predicts_on(more, one) and MODELS["fno"].predicts_on(finer, one)
    assert not MODELS["deeponet"].predicts_on(finer, one) and MODELS["deeponet"].predicts_on(one, one)
