"""The baselines without a network: what they can fit exactly, and the meaning of their coefficients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import spdebench as sb
from spdebench.models import build
from spdebench.models.baselines import Regression, least_squares
from spdebench.tasks import Batch, TaskSpec

PHI41 = {"points": 32, "truncation": 32, "frames": 20, "steps": 20, "horizon": 0.02}


def data(**fields: object) -> tuple[sb.Equation, Batch, torch.Tensor]:
    equation = sb.equation("phi41", **{**PHI41, **fields})
    out = sb.simulate(equation, 0, range(12))
    return equation, Batch(out.u0, out.dw, (equation,), torch.zeros(12, dtype=torch.long)), out.u


def fitted(name: str, equation: sb.Equation, batch: Batch, u: torch.Tensor, **config: object) -> Regression:
    """Fitted to the first eight samples."""
    model = build(name, TaskSpec(inputs="u0+xi" if equation.kappa else "xi").setting(equation), **config)
    model.calibrate(model.prepare(Batch(batch.u0[:8], batch.dw[:8])), u[:8])
    return model  # type: ignore[return-value]


def error(model: Regression, batch: Batch, u: torch.Tensor) -> float:
    """Relative L2 over t_1..t_T of the last four samples."""
    v = model.predict(Batch(batch.u0[8:], batch.dw[8:]))
    gap, size = ((x[:, 1:]).flatten(1).norm(dim=1) for x in (v - u[8:], u[8:]))
    return float((gap / size).mean())


def test_mean_is_the_mean_and_nothing_else():
    equation, batch, u = data()
    model = fitted("mean", equation, batch, u)
    v = model.predict(Batch(batch.u0[:3] + 1, batch.dw[:3] * 2))
    assert v.shape == (3, *u.shape[1:])
    np.testing.assert_allclose(v.numpy(), u[:8].double().mean(0).expand_as(v).numpy(), rtol=1e-6)
    assert 0.02 < error(model, batch, u) < 0.5


@pytest.mark.parametrize("sigma", [0.1, 1.0])
@pytest.mark.parametrize("kappa", [0.0, 0.1])
def test_trees_by_the_generators_kernel_are_the_solution(sigma, kappa):
    """Ten coefficients: error of the order 1e-5, and the coefficients of the expansion."""
    equation, batch, u = data(sigma=sigma, kappa=kappa)
    model = fitted("trees", equation, batch, u, kernel="generator")
    assert error(model, batch, u) < 5e-5
    c = model.coefficients()
    assert len(c) == 10
    assert c["I_c"] == pytest.approx(1, rel=1e-3) and c["I[xi]"] == pytest.approx(sigma, rel=1e-3)
    if sigma == 1:
        assert c["I[I[xi]^3]"] == pytest.approx(-1, rel=0.1) and c["I[I[xi]^2 I_c]"] == pytest.approx(-3, rel=0.1)


def test_another_kernel_than_the_generators_costs_something():
    equation, batch, u = data()
    linear, own = (fitted(name, equation, batch, u, kernel="generator") for name in ("linear", "trees"))
    exact = fitted("trees", equation, batch, u)
    assert error(own, batch, u) < 0.1 * error(linear, batch, u) < error(exact, batch, u)
    assert set(linear.coefficients()) == {"I_c", "I[xi]"}


def test_linear_is_the_linear_equation():
    """With next to no drift the two coefficients are 1 and sigma, and the error that of rounding."""
    equation, batch, u = data(sigma=1e-4)
    small = Batch(1e-3 * batch.u0, batch.dw)
    u = sb.solve(equation, small.u0, small.dw).float()
    model = fitted("linear", equation, small, u, kernel="generator")
    assert error(model, small, u) < 1e-5
    assert model.coefficients() == pytest.approx({"I_c": 1.0, "I[xi]": 1e-4}, rel=1e-4)


def test_least_squares_are_those_of_lapack():
    generator = torch.Generator().manual_seed(0)
    columns = torch.randn(70, 6, 4, generator=generator) * torch.tensor([1.0, 1e3, 1e-3, 0.0])
    columns[..., 1] += 1e2 * columns[..., 0]
    target = torch.randn(70, 6, generator=generator)
    found = least_squares(columns, target, 1e-12)
    a = columns.reshape(-1, 4).double().numpy()
    expected = np.linalg.lstsq(a[:, :3], target.reshape(-1).double().numpy(), rcond=None)[0]
    np.testing.assert_allclose(found[:3].numpy(), expected, rtol=1e-6)
    assert found[3] == 0


def test_linear_has_one_height():
    equation, *_ = data()
    with pytest.raises(sb.UserError, match="height must be 1"):
        build("linear", TaskSpec().setting(equation), height=2)


@pytest.mark.parametrize("name", ["linear", "trees"])
def test_needs_the_equation(name):
    equation, *_ = data()
    known = TaskSpec().setting(equation)
    with pytest.raises(sb.UserError, match="needs to know the equation"):
        build(name, type(known)(known.grid, known.times, "xi"))
