"""Tiny data and the test that a model can learn: it must fit one batch of four samples."""

from __future__ import annotations

import torch
from torch import Tensor

from spdebench import build, equation, simulate
from spdebench.models import Features, OperatorModel
from spdebench.tasks import Batch, Setting, TaskSpec

_SIZES = {
    1: {"name": "phi41", "points": 16, "frames": 10, "steps": 10, "truncation": 8},
    2: {"name": "phi42", "points": 8, "frames": 10, "steps": 10, "truncation": 4, "horizon": 0.001},
    3: {"name": "phi43", "points": 7, "frames": 8, "steps": 8, "truncation": 6, "horizon": 8 * 1.384e-4},
}


def tiny(dim: int = 1, inputs: str = "xi") -> tuple[Setting, Batch, Tensor]:
    """Setting, inputs and solutions of four samples."""
    fields = dict(_SIZES[dim], kappa=0.0 if inputs == "xi" else 0.1)
    one = equation(fields.pop("name"), **fields)
    data = simulate(one, 0, range(4))
    return TaskSpec(inputs=inputs).setting(one), Batch(data.u0, data.dw, (one,), torch.zeros(4).long()), data.u  # type: ignore[arg-type]


def calibrated(name: str, dim: int = 1, inputs: str = "xi", **config: object) -> tuple[OperatorModel, Features, Tensor]:
    """A model fitted to tiny data as far as `calibrate` goes, its features and its targets."""
    setting, batch, u = tiny(dim, inputs)
    torch.manual_seed(0)
    model = build(name, setting, **config)
    features = model.prepare(batch)
    model.calibrate(features, u)
    return model, features, u


def overfit(model: OperatorModel, features: Features, u: Tensor, steps: int, lr: float) -> float:
    """The largest relative L2 error of a sample over t_1..t_T after ``steps`` of Adam."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    optimiser = torch.optim.Adam(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, lr, total_steps=steps)
    for _ in range(steps):
        optimiser.zero_grad()
        errors(model(features), u).mean().backward()
        optimiser.step()
        schedule.step()
    torch.set_num_threads(threads)
    with torch.no_grad():
        return errors(model(features), u).max().item()


def errors(prediction: Tensor, u: Tensor) -> Tensor:
    return (prediction - u)[:, 1:].flatten(1).norm(dim=1) / u[:, 1:].flatten(1).norm(dim=1)


def used(model: OperatorModel, features: Features) -> dict[str, bool]:
    """For every parameter tensor, whether a random functional of the output has a gradient there."""
    torch.manual_seed(1)
    model.zero_grad()
    out = model(features)
    (out * torch.randn_like(out)).sum().backward()
    return {name: p.grad is not None and bool((p.grad != 0).any()) for name, p in model.named_parameters()}
