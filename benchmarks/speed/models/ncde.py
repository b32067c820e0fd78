"""NCDE: ours steps over increments and differentiates the steps. The plain form does as the reference: Euler on slopes
looked up in time, and the continuous adjoint  a' = -a df/dz,  p' = -a df/dp  solved backwards with z in one vector.

The plain form uses torchdiffeq where it is installed, as the reference does, and else the same formulas written out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from spdebench.models.base import build
from spdebench.models.ncde import NCDE
from spdebench.tasks import Batch
from speed.models.base import Case, phi41_setting, training_step

Slope = Callable[[Tensor, Tensor], Tensor]


def case(batch: int = 20) -> Case:
    """One forward and backward of NCDE (hidden 32, Euler) at phi41's size."""
    setting = phi41_setting()
    model = build("ncde", setting, hidden=32, solver="euler")
    assert isinstance(model, NCDE)
    generator = torch.Generator().manual_seed(0)
    dw = torch.randn((batch, *setting.shape), generator=generator) * setting.dt**0.5
    dw[:, 0] = 0
    inputs = Batch(torch.rand((batch, *setting.grid.points), generator=generator), dw)
    features = model.prepare(inputs)
    path = torch.cat([torch.zeros(batch, 1, dw.shape[2] + 1), model.control(dw).cumsum(1)], dim=1)

    def plain() -> None:
        model.zero_grad()
        start = model.lift(model.initial(inputs.u0))
        states = _solve(model.field, start, path).transpose(0, 1)
        model.solution.inverse(model.readout(states)).square().mean().backward()

    return Case(
        "ncde", 2.0, training_step(model, features), plain, "torchcde's formulation with the continuous adjoint, Euler"
    )


def _solve(field: torch.nn.Module, start: Tensor, path: Tensor) -> Tensor:
    """z at times 0, 1, .., ``(T, B, h)``."""
    times = torch.arange(path.shape[1], dtype=path.dtype)
    slopes = path.diff(dim=1)

    def slope(t: Tensor, z: Tensor) -> Tensor:
        piece = torch.bucketize(t.detach(), times).sub(1).clamp(0, slopes.shape[1] - 1)
        return (field(z) @ slopes[:, piece, :, None]).squeeze(2)

    parameters = tuple(field.parameters())
    try:
        from torchdiffeq import odeint_adjoint
    except ImportError:
        return _Adjoint.apply(slope, start, times, *parameters)  # type: ignore[no-untyped-call]
    return odeint_adjoint(slope, start, times, method="euler", adjoint_params=parameters)


class _Adjoint(Function):
    @staticmethod
    def forward(ctx: Any, slope: Slope, start: Tensor, times: Tensor, *parameters: Tensor) -> Tensor:
        states = [start]
        for t0, t1 in itertools.pairwise(times):
            states.append(states[-1] + (t1 - t0) * slope(t0, states[-1]))
        out = torch.stack(states)
        ctx.slope = slope
        ctx.save_for_backward(times, out, *parameters)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        times, out, *parameters = ctx.saved_tensors
        (grad,) = grads
        parts = [out[-1], grad[-1], *(torch.zeros_like(p) for p in parameters)]
        for i in range(len(times) - 1, 0, -1):
            flat = torch.cat([p.reshape(-1) for p in parts])
            rates = torch.cat([r.reshape(-1) for r in _rates(ctx.slope, times[i], parts, parameters)])
            flat = flat + (times[i - 1] - times[i]) * rates
            parts = [f.view_as(p) for f, p in zip(flat.split([p.numel() for p in parts]), parts, strict=True)]
            parts[0] = out[i - 1]
            parts[1] = parts[1] + grad[i - 1]
        return None, parts[1], None, *parts[2:]


def _rates(slope: Slope, t: Tensor, parts: list[Tensor], parameters: list[Tensor]) -> list[Tensor]:
    """(f, -a df/dz, -a df/dp ..) at time t."""
    with torch.enable_grad():
        z = parts[0].detach().requires_grad_()
        f = slope(t, z)
        products = torch.autograd.grad(f, [z, *parameters], -parts[1])
    return [f.detach(), *products]
