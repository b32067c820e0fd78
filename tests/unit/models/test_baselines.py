"""The baselines without a network: what they can fit exactly, and the meaning of their coefficients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import spdebench as sb
from spdebench.errors import UserError
from spdebench.models import build
from spdebench.models.baselines import Regression, least_squares
from spdebench.tasks import Batch, TaskSpec
from spdebench.training.identity import identify, plan

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


# --- mixtures -----------------------------------------------------------------------------------------------------
SMALL = {"points": 16, "truncation": 8, "frames": 5, "steps": 5, "kappa": 0.1}
KERNELS = ("linear", "trees", "dlr-net", "nors")


@pytest.mark.parametrize("name", KERNELS)
def test_a_mixture_has_one_linear_part(name, tmp_path):
    """Files of two viscosities are refused; those that differ in noise, initial data or nonlinearity are not."""
    first = sb.equation("burgers", **SMALL)
    slow, other_noise = first.replace(viscosity=0.03, sigma=0.2), first.replace(truncation=4, sigma=0.2, kappa=0.2)
    files = [sb.generate(e, n=20, out=tmp_path) for e in (first, slow, other_noise)]
    refused = f"model '{name}' has one kernel .*: viscosity 0.02 and 0.03; train it on each file alone, or .* fno"
    for mixed in (sb.Task(files[:2]), sb.Task([files[0], files[2], files[1]])):
        with pytest.raises(UserError, match=refused):
            identify(name, mixed, {}, {})
        identify("fno", mixed, {}, {})
    with pytest.raises(UserError, match=refused):
        plan(name, [first, slow])
    assert plan(name, [first, other_noise]).digest != plan(name, first).digest
    identify(name, sb.Task(files[::2]), {}, {})


@pytest.mark.parametrize("name", ["phi41", "allen_cahn"])
def test_linear_parts_are_compared_and_not_equations(name):
    """phi41 with another mass, and allen_cahn with diffusivity 1, have the Laplacian as linear part."""
    first = sb.equation("phi41", **SMALL)
    same = first.replace(mass=3.0) if name == "phi41" else sb.equation(name, **SMALL, diffusivity=1.0)
    plan("linear", [first, same])
    with pytest.raises(UserError, match="equation phi41 and heat"):
        plan("linear", [first, sb.equation("heat", **SMALL, diffusivity=2.0)])


def test_the_kernel_of_the_scheme_depends_on_the_edition():
    """The exact kernel does not."""
    first = sb.equation("phi41", **SMALL)
    both = [first, first.replace(edition="converged")]
    plan("linear", both)
    with pytest.raises(UserError, match=r"kernel=generator.*: edition paper and converged"):
        plan("linear", both, config={"kernel": "generator"})


@pytest.mark.parametrize("name", KERNELS)
def test_a_trained_model_keeps_its_kernel_on_other_data(name):
    """Features of samples that say they have another viscosity are those of the training data's kernel."""
    known = sb.equation("burgers", **SMALL)
    other = known.replace(viscosity=0.04)
    model, paths = build(name, TaskSpec(inputs="u0+xi").setting(known)), sb.simulate(known, 0, range(2))
    mine, its = (
        model.prepare(Batch(paths.u0, paths.dw, (e,), torch.zeros(2, dtype=torch.long))) for e in (known, other)
    )
    assert mine.keys() == its.keys() and all(torch.equal(mine[key], its[key]) for key in mine)
    unlike = build(name, TaskSpec(inputs="u0+xi").setting(other))
    assert not torch.allclose(mine["trees"], unlike.prepare(Batch(paths.u0, paths.dw))["trees"])
