"""Solves that have kernels of their own on a GPU: the numbers and gradients of torch's own operations there."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from on_cuda import evaluated
from torch import Tensor

from spdebench import build, equation
from spdebench.accel import without_kernels
from spdebench.models import Features, OperatorModel, ncde_fno
from spdebench.tasks import TaskSpec

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("kernels_are_there")]


def example(points: int = 128, frames: int = 50, batch: int = 4, **config: Any) -> tuple[OperatorModel, Features]:
    """A model on noise that moves by 1/sqrt(n) a step, as it is trained on."""
    one = equation("phi41", points=points, frames=frames, steps=frames, truncation=8, kappa=0.1)
    torch.manual_seed(0)
    model = build("ncde-fno", TaskSpec(inputs="u0+xi").setting(one), **config)
    features = {"u0": torch.randn(batch, points), "dw": torch.randn(batch, frames + 1, points)}
    model.calibrate(features, torch.randn(batch, frames + 1, points))
    return model.cuda(), {k: v.cuda() for k, v in features.items()}


def gradients(model: OperatorModel, features: Features) -> list[Tensor]:
    """The prediction and all gradients of a sum of it."""
    return evaluated(lambda: model(features), list(model.parameters()))


def distances(got: list[Tensor], expected: list[Tensor]) -> list[float]:
    return [float((a.to(b) - b).abs().max() / b.abs().max()) for a, b in zip(got, expected, strict=True)]


def solves(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Grows by one with each solve by the kernel: whether gradients were to come."""
    from spdebench.accel import ncde_fno as solve_fno_cuda

    calls, before = [], solve_fno_cuda.forward

    def forward(*args: Any, keep: bool) -> Any:
        calls.append(keep)
        return before(*args, keep=keep)

    monkeypatch.setattr(solve_fno_cuda, "forward", forward)
    return calls


@pytest.mark.parametrize(
    "case",
    [
        {},
        {"points": 60, "frames": 20},
        {"solver": "heun"},
        {"solver": "euler", "batch": 7},
        {"points": 20, "frames": 10, "hidden": 10, "width": 24, "space_modes": 5},
    ],
)
def test_value_and_gradients(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Near torch's, and near those in float64: tensor cores add with less care than float32 (1e-5 of the largest entry
    of a gradient after 200 evaluations, where torch has 1e-6)."""
    calls = solves(monkeypatch)
    model, features = example(**case)
    got = gradients(model, features)
    assert calls == [True]
    with without_kernels():
        plain = gradients(model, features)
    assert len(calls) == 1
    assert max(distances(got, plain)) < 1e-4
    exact = gradients(copy.deepcopy(model).cpu().double(), {k: v.cpu().double() for k, v in features.items()})
    ours, theirs = (distances([t.cpu() for t in all_], exact) for all_ in (got, plain))
    assert all(a < 4 * b + 3e-5 for a, b in zip(ours, theirs, strict=True)), (ours, theirs)


def test_the_same_numbers_every_time_and_without_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = solves(monkeypatch)
    model, features = example(batch=20)
    first, second = gradients(model, features), gradients(model, features)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    with torch.no_grad():
        assert torch.equal(model(features), first[0])
    assert calls == [True, True, False]


def test_a_pass_over_the_first_frames_and_another_over_all() -> None:
    """Nothing that is kept is changed by a pass."""
    model, features = example(points=32, frames=6)
    parameters = list(model.parameters())
    with without_kernels():
        out = model(features)
        expected = [torch.autograd.grad(out[:, :n].sum(), parameters, retain_graph=True) for n in (3, 7)]
    out = model(features)
    for n, right in zip((3, 7), expected, strict=True):
        got = torch.autograd.grad(out[:, :n].sum(), parameters, retain_graph=True)
        assert max(distances(list(got), list(right))) < 1e-4


@pytest.mark.parametrize("case", [{"form": "published"}, {"hidden": 40}, {"points": 256}, {"width": 200}])
def test_cases_that_plain_torch_computes(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    calls = solves(monkeypatch)
    model, features = example(frames=2, **case)
    gradients(model, features)
    model, features = example(frames=2)
    features["dw"].requires_grad_()
    model(features).sum().backward()
    assert features["dw"].grad is not None and not calls


def test_two_dimensions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain torch computes them too; the numbers are those of float64."""
    calls = solves(monkeypatch)
    torch.manual_seed(0)
    one = equation("phi42", points=8, frames=6, steps=6, truncation=4, horizon=0.001, kappa=0.1)
    model = build("ncde-fno", TaskSpec(inputs="u0+xi").setting(one), space_modes=6).cuda()
    features = {"u0": torch.randn(3, 8, 8, device="cuda"), "dw": torch.randn(3, 7, 8, 8, device="cuda")}
    got = gradients(model, features)
    exact = gradients(copy.deepcopy(model).cpu().double(), {k: v.cpu().double() for k, v in features.items()})
    assert max(distances([t.cpu() for t in got], exact)) < 1e-4 and not calls


def test_a_replayed_training_step() -> None:
    model, features = example(points=32, frames=6)
    inputs = {k: torch.zeros_like(v) for k, v in features.items()}
    parameters = list(model.parameters())

    def step() -> tuple[Tensor, ...]:
        return torch.autograd.grad(model(inputs).square().sum(), parameters)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        got = step()
    for key, value in features.items():
        inputs[key].copy_(value)
    graph.replay()
    assert all(torch.equal(a, b) for a, b in zip(got, step(), strict=True))


def test_the_field_uses_the_kernel_only_if_it_fits() -> None:
    model, features = example(points=32, frames=6)
    field = model.field
    assert isinstance(field, ncde_fno.Field)
    start, dw = model.lift(features["u0"][..., None]), features["dw"][:, 1:]  # type: ignore[operator]
    assert field._fits_a_kernel(start, dw, (32,), "rk4")
    with without_kernels():
        assert not field._fits_a_kernel(start, dw, (32,), "rk4")
    with torch.autocast("cuda", torch.bfloat16):
        assert not field._fits_a_kernel(start, dw, (32,), "rk4")
    assert not field._fits_a_kernel(start.double(), dw, (32,), "rk4")
