"""Laws of allen_cahn: constant fields in closed form, moving interfaces, |u| <= 1, both senses of the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from scipy.integrate import solve_ivp
from strong import distances_of_senses

from spdebench.data.generate import generate
from spdebench.equations import Phi41
from spdebench.equations.allen_cahn import AllenCahn
from spdebench.errors import NoiseWarning, UserError
from spdebench.report.card import describe_noise
from spdebench.solvers import simulate, solve

START = 0.5
"""artanh u_0 of a constant field."""


@dataclass(frozen=True, kw_only=True)
class OneMotion(AllenCahn):
    """Driven by one Brownian motion, constant in space, of intensity q = 1."""

    def eigenvalue_roots(self):
        return (self.series().index == 1).double()


@dataclass(frozen=True, kw_only=True)
class Constant(OneMotion):
    """Starts from a constant."""

    def initial(self, grid, seed, samples, device="cpu"):
        value = math.tanh(START)
        return torch.full((len(samples), *grid.points), value, dtype=torch.float64, device=device)


def constant(edition: str, steps: int, **fields: object) -> Constant:
    return Constant(**{"points": 4, "truncation": 2, "frames": steps, "steps": steps, "edition": edition, **fields})


def test_constant_field_path_by_path():
    """Y = artanh u: Y' = rate tanh Y + sigma dB/dt, the noise constant on each interval."""
    eq = constant("converged", 10, sigma=2.0, rate=3.0, substeps=64)
    paths = simulate(eq, 4, range(3), out_dtype=torch.float64)

    def later(y: float, noise: float) -> float:
        found = solve_ivp(lambda t, y: 3.0 * math.tanh(y[0]) + noise, (0, 0.1), [y], rtol=1e-9, atol=1e-9)
        return float(found.y[0, -1])

    for u, dw in zip(paths.u[..., 0], paths.dw[..., 0], strict=True):
        y = START
        for n in range(1, 11):
            y = later(y, 2.0 * float(dw[n]) / 0.1)
            assert float(u[n]) == pytest.approx(math.tanh(y), abs=1e-6)


@pytest.mark.parametrize(("edition", "steps"), [("paper", 256), ("converged", 32)])
def test_law_of_a_constant_field_at_rate_sigma_squared(edition, steps):
    """rate = sigma^2: Y(t) = Y_0 + sigma B(t) +- sigma^2 t, the sign + with probability e^{Y_0}/(2 cosh Y_0).

    Means of u, Y and Y^2 within 4 standard errors; u is a martingale. (cosh Y is a function that the generator
    multiplies by sigma^2/2, and dY is Brownian motion conditioned by it.)
    """
    sigma, t, n = 0.8, 1.0, 2048
    eq = constant(edition, steps, sigma=sigma, rate=sigma**2, substeps=1 if edition == "paper" else 2)
    u = simulate(eq, 1, range(n), out_dtype=torch.float64, every=steps).u[:, -1, 0]
    y, drift = torch.atanh(u), sigma**2 * t
    mean = START + drift * math.tanh(START)
    square = START**2 + 2 * START * drift * math.tanh(START) + drift**2 + sigma**2 * t
    for values, wanted in ((u, math.tanh(START)), (y, mean), (y.square(), square)):
        error = float(values.std()) / math.sqrt(n)
        assert error < 0.05 * abs(wanted)
        assert abs(float(values.mean()) - wanted) < 4 * error


def test_interfaces_move_with_the_noise():
    """tanh((x - a)/w) is a solution with a(t) = a_0 - w sigma W(t), and its mirror image moves the other way."""
    eq = OneMotion(edition="converged", diffusivity=0.002, truncation=2, points=256, frames=20, steps=20, sigma=1.5)
    grid, width = eq.grid, math.sqrt(2 * eq.diffusivity / eq.rate)
    w = simulate(eq, 3, range(2), out_dtype=torch.float64).dw.cumsum(1)

    def fronts(path: torch.Tensor) -> torch.Tensor:
        x, move = grid.coordinates(0), width * eq.sigma * path
        return torch.tanh((x - 0.25 + move) / width) * torch.tanh((0.75 + move - x) / width)

    u = solve(eq, fronts(w[:, 0]), torch.diff(w, dim=1, prepend=w[:, :1]))
    assert float((width * eq.sigma * w).abs().max()) > width
    assert float((u - fronts(w)).abs().max()) < 1e-5


@pytest.mark.parametrize("calculus", ["ito", "stratonovich"])
def test_u_stays_between_the_phases(calculus):
    """Edition converged: |u| <= 1 up to 1e-6 at strong noise. Edition paper: where |sigma dW| <= 1/2 - tau rate; beyond
    that it may leave the interval."""
    common = {"sigma": 2.0, "calculus": calculus, "points": 128, "truncation": 16, "kappa": 1.0}
    assert float(simulate(AllenCahn(**common, edition="converged"), 0, range(2)).u.abs().max()) < 1 + 1e-6
    eq = AllenCahn(**common, frames=200)
    paths = simulate(eq, 0, range(128), out_dtype=torch.float64)
    limit = 0.5 - eq.horizon / eq.steps * eq.rate
    small = (eq.sigma * paths.dw).flatten(1).abs().amax(1) <= limit
    largest = paths.u.flatten(1).abs().amax(1)
    assert small.sum() > 3 and not small.all()
    assert float(largest[small].max()) < 1 + 1e-10  # rounding in double precision
    assert 1 < float(largest.max()) < 1.2


@pytest.mark.parametrize("calculus", ["ito", "stratonovich"])
def test_ito_and_stratonovich_in_both_editions_at_fixed_truncation(calculus):
    """Euler's method has the strong order 1/2, averaged noise 1 (the fields (1 - u^2) phi_k commute). Both approach the
    same solution; without the drift correction they do not."""
    common = {"noise": "cylindrical", "sigma": 0.8, "rate": 2.0, "truncation": 4, "points": 32, "solve_points": 32}
    eq = AllenCahn(**common, calculus=calculus, substeps=1, horizon=0.25)
    for edition in ("paper", "converged"):
        assert eq.replace(edition=edition).intensity(eq.grid).tolist() == pytest.approx([5.0] * 32)
    right, wrong = distances_of_senses(eq, range(32))
    assert right < 0.02 and wrong > 0.1


def test_additive_noise_is_that_of_phi41():
    """rate = diffusivity = 1 and additive noise: phi41 with mass 1."""
    common = {"points": 32, "truncation": 16, "horizon": 0.05, "frames": 50, "steps": 50, "sigma": 1.0}
    one = AllenCahn(**common, noise="cylindrical", noise_type="additive", rate=1.0, diffusivity=1.0)
    two = Phi41(**common, mass=1.0)
    paths = simulate(two, 0, range(4), out_dtype=torch.float64)
    assert torch.allclose(solve(one, paths.u0, paths.dw), paths.u, atol=1e-12)
    assert float(simulate(AllenCahn(noise_type="additive"), 0, range(8)).u.abs().max()) > 1


def test_a_warning_for_white_noise_if_its_correction_diverges(tmp_path):
    white = {"noise": "cylindrical"}
    small = AllenCahn(**white, points=8, truncation=4, frames=4, steps=4, horizon=0.02)
    with pytest.warns(NoiseWarning, match=r"allen_cahn: .* grows with J"):
        generate(small, n=1, out=tmp_path)
    assert "grows with J" in describe_noise(small)
    for edition in ("paper", "converged"):
        assert "fixed J only; use calculus=ito or noise=q_wiener" in AllenCahn(**white, edition=edition).caution()
    for fields in ({**white, "calculus": "ito"}, {**white, "noise_type": "additive"}, {"edition": "converged"}):
        assert AllenCahn(**fields).caution() == ""


@pytest.mark.parametrize("key", ["diffusivity", "rate"])
def test_parameters_must_be_positive(key):
    with pytest.raises(UserError, match=f"allen_cahn: {key} must be positive, got -1"):
        AllenCahn(**{key: -1})
