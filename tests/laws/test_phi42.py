"""Laws of phi42: E X^2, the two forms of the equation, symmetry, strong order, and what renormalisation is for."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import pytest
import torch
from strong import assert_order, final, paths_at, slope

from spdebench.equations import Phi42, equation, renormalise
from spdebench.equations.initial import plane_waves
from spdebench.grids import Grid
from spdebench.report import TABLES
from spdebench.solvers import SCHEMES, simulate, solve


@dataclass(frozen=True, kw_only=True)
class Linear(Phi42):
    """X: no cube, no counter-term, from 0."""

    def drift(self, grid, device="cpu"):
        return torch.zeros_like

    def counterterm_rates(self):
        return ()

    def initial(self, grid, seed, samples, device="cpu"):
        return torch.zeros(len(samples), *grid.points, dtype=torch.float64, device=device)


def distance(a: torch.Tensor, b: torch.Tensor) -> float:
    """Relative L^2 distance of a from b."""
    return float(((a - b).square().mean() / b.square().mean()).sqrt())


# --- the linear solution ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("truncation", "edition", "n"), [(2, "paper", 192), (32, "paper", 48), (64, "paper", 48), (8, "converged", 64)]
)
@pytest.mark.filterwarnings("ignore::spdebench.errors.AliasingWarning")
def test_monte_carlo_variance_agrees_with_the_constant_of_the_scheme(truncation: int, edition: str, n: int) -> None:
    """mean_x X^2 over the samples at T/2 and T is a(t) of the scheme, within 4 standard errors (below 6 %).

    X is Gaussian, mean_x X^2 = sum_k a_k Z_k^2: the standard error is sqrt(2 sum_k a_k^2 / n), at most sqrt(2/n) of a.
    """
    eq = Linear(truncation=truncation, edition=edition, solve_points=32, steps=50, frames=50)
    x = simulate(eq, 5, range(n), out_dtype=torch.float64, every=25).u
    exact = renormalise.scheme_variance(eq)
    for frame in (1, 2):
        each = x[:, frame].square().mean((-1, -2))
        error = float(each.std()) / math.sqrt(n)
        assert abs(float(each.mean()) - float(exact[25 * frame])) < 4 * error
        assert error < 0.06 * float(exact[25 * frame])


def test_stationary_variance_of_crank_nicolson_is_exact() -> None:
    """For every step: E X^2 -> sigma^2 (t + sum_{k != 0} 1/(2 l_k)) with the five-point eigenvalues l_k."""
    eq = Phi42(horizon=1.0, steps=400, frames=400, truncation=30)
    rates, weights = renormalise.mode_rates(eq)
    want = eq.sigma**2 * (1 + float((weights[rates > 0] / (2 * rates[rates > 0])).sum()))
    assert float(renormalise.scheme_variance(eq)[-1]) == pytest.approx(want, rel=1e-6)


# --- the equation -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("edition", "tolerance"), [("paper", 2e-3), ("converged", 1e-11)])
def test_homogeneous_solution(edition: str, tolerance: float) -> None:
    """sigma = 0, constant u_0: u_0/sqrt(1 + 2 u_0^2 t)."""
    eq = equation("phi42", sigma=0, edition=edition, points=8, truncation=4, horizon=0.5)
    u0, dw = torch.full((1, 8, 8), 1.5, dtype=torch.float64), torch.zeros(1, 251, 8, 8, dtype=torch.float64)
    exact = 1.5 / torch.sqrt(1 + 2 * 1.5**2 * eq.times)
    assert (solve(eq, u0, dw)[0, :, 3, 4] - exact).abs().max() < tolerance


def test_both_forms_of_the_scheme_agree_to_first_order_in_the_step() -> None:
    """X + v by `wick` and -u^3 + 3 a u by linearly implicit Euler on the same paths: the distance halves with dt."""
    gaps = []
    for steps in (512, 1024, 2048):
        eq = Phi42(sigma=1.0, truncation=4, points=12, steps=steps, frames=steps, renormalisation="exact")
        wiener, h = eq.wiener(), eq.horizon / steps
        schemes = [SCHEMES[name](eq, eq.solving_grid, h) for name in ("wick", "semi_implicit")]
        states = [scheme.start(eq.initial(eq.solving_grid, 0, range(4))) for scheme in schemes]
        for z in wiener.blocks(0, range(4), steps, eq.horizon):
            for strokes in zip(wiener.spectral(z).unbind(1), wiener.physical(z).unbind(1), strict=True):
                states = [s.step(state, dw) for s, state, dw in zip(schemes, states, strokes, strict=True)]
        gaps.append(distance(*(s.field(state) for s, state in zip(schemes, states, strict=True))))
    assert gaps[0] < 0.01
    for coarse, fine in itertools.pairwise(gaps):
        assert coarse / fine == pytest.approx(2, abs=0.15)


def test_wick_powers_as_the_paper_writes_them() -> None:
    """One trajectory by Algorithm 2 word for word (Wick square and cube, five-point stencil, DFT eigenvalues)."""
    eq = Phi42(truncation=30, sigma=1.0, kappa=0.1, steps=40, frames=40, horizon=0.004)
    paths = simulate(eq, 3, range(2), out_dtype=torch.float64)
    dt, n = 1e-4, 32
    k = torch.fft.fftfreq(n, 1 / n, dtype=torch.float64)
    line = 2 * n**2 * (1 - torch.cos(2 * math.pi * k / n))
    lam = line[:, None] + line
    x, v = torch.zeros_like(paths.u0), paths.u0.clone()
    for step in range(40):
        a = float(renormalise.ball_variance(eq, torch.tensor([step * dt], dtype=torch.float64)))
        cube = v**3 + 3 * v**2 * x + 3 * v * (x**2 - a) + x**3 - 3 * a * x
        around = v.roll(1, -1) + v.roll(-1, -1) + v.roll(1, -2) + v.roll(-1, -2)
        v = v + dt * (n**2 * (around - 4 * v) - cube)
        spectrum = (1 - dt / 2 * lam) * torch.fft.fft2(x) + torch.fft.fft2(eq.sigma * paths.dw[:, step + 1])
        x = torch.fft.ifft2(spectrum / (1 + dt / 2 * lam)).real
        assert (paths.u[:, step + 1] - x - v).abs().max() < 1e-12


@pytest.mark.parametrize("edition", ["paper", "converged"])
def test_odd_symmetry(edition: str) -> None:
    """u -> -u, dW -> -dW leaves the renormalised equation alone."""
    eq = Phi42(edition=edition, points=16, solve_points=0, truncation=8, sigma=1.0, steps=100, frames=100, kappa=0.1)
    paths = simulate(eq, 0, range(2), out_dtype=torch.float64)
    there, back = solve(eq, paths.u0, paths.dw), solve(eq, -paths.u0, -paths.dw)
    assert torch.allclose(there, -back, atol=1e-14)


def test_stored_noise_gives_the_stored_solution_back() -> None:
    eq = Phi42(points=16, truncation=16, steps=100, frames=100, sigma=1.0)
    paths = simulate(eq, 1, range(2), out_dtype=torch.float64)
    assert (solve(eq, paths.u0, paths.dw) - paths.u).abs().max() < 1e-12


def test_initial_perturbation() -> None:
    """Var eta(x) = 1 + sum_{|k_i| <= 5} (|k|^2 + 1)^-2 at every point; the same draw on every grid."""
    k = torch.arange(-5, 6, dtype=torch.float64) ** 2
    want = 1 + float(((k[:, None] + k + 1) ** -2).sum())
    eta = plane_waves(Grid.unit(12, 2), 0, range(4000))
    variance = eta.square().mean(0)
    assert (variance - want).abs().max() < 5 * want * math.sqrt(2 / 4000)
    assert float(variance.mean()) == pytest.approx(want, rel=4 * math.sqrt(2 / 4000))
    assert torch.allclose(plane_waves(Grid.unit(24, 2), 0, range(3))[:, ::2, ::2], eta[:3], atol=1e-12)


# --- time ---------------------------------------------------------------------------------------------------------
def strong_errors(eq: Phi42, steps: tuple[int, ...], reference: int, roughness: float) -> torch.Tensor:
    """|u_h(T) - u(T)|^2 in H^-roughness for each number of steps and sample."""
    grid = eq.grid
    weight = grid.multiplicity() * (1 - grid.laplacian()) ** -roughness
    exact = final(paths_at(eq, reference), range(8))
    gaps = [grid.transform(final(paths_at(eq, s), range(8)) - exact) for s in steps]
    return torch.stack([(weight * gap.abs() ** 2).flatten(1).sum(1) for gap in gaps])


@pytest.mark.parametrize("edition", ["paper", pytest.param("converged", marks=pytest.mark.slow)])
def test_strong_order_one_for_fixed_truncation(edition: str) -> None:
    """Smooth noise: order 1, the exact counter-term changing with the step."""
    eq = Phi42(edition=edition, sigma=1.0, truncation=4, points=8, solve_points=8, substeps=1, renormalisation="exact")
    assert_order(slope(strong_errors(eq, (64, 128, 256, 512), 4096, 0.0)), 1.0)


def test_strong_order_one_half_in_the_rough_regime() -> None:
    """Space-time white noise in two dimensions lives in no L^2; in H^-1 averages of the noise converge with order 1/2.

    dt l_J is 63 to 8 here (J = 32) and 0.25 for the reference.
    """
    eq = Phi42(edition="converged", sigma=1.0, truncation=32, points=34, solve_points=34, renormalisation="exact")
    assert_order(slope(strong_errors(eq, (8, 16, 32, 64), 1024, 1.0)), 0.5)


def test_converged_edition_does_not_change_under_refinement() -> None:
    """Twice the points or the sub-steps do not move the stored field (sigma = 1; J = 16 on 16 points for speed)."""
    eq = Phi42(edition="converged", sigma=1.0, truncation=16, points=16, steps=100, frames=100, renormalisation="exact")
    base = final(eq, range(2))
    assert distance(final(eq.replace(solve_points=64), range(2)), base) < 1e-8
    assert distance(final(eq.replace(substeps=2), range(2)), base) < 1e-4


# --- what renormalisation is for ----------------------------------------------------------------------------------
def test_renormalised_solutions_approach_each_other_and_bare_ones_do_not() -> None:
    """sigma = 1, T = 0.25, u_0 of the paper, J = 4..32 on one grid of 34 x 34, modes |k_i| <= 2, the same noise."""
    table = TABLES["renormalisation"](equation("phi42"), n=4)
    kept, bare = (table[table["renormalisation"] == kind]["distance"].to_numpy() for kind in ("exact", "none"))
    assert kept[-1] < 0.4 * kept[0] and kept[1] < kept[0]
    assert bare[-1] > 0.9 * bare[0] and bare[-1] > 30 * kept[-1]


def test_effect_of_the_counter_term_at_the_parameters_of_the_paper() -> None:
    """sigma = 0.1, J = 32: the counter-term moves u(T) by about 2e-4."""
    ends = {kind: final(Phi42(renormalisation=kind), range(4)) for kind in ("none", "paper", "exact")}
    assert 1.5e-4 < distance(ends["paper"], ends["none"]) < 2.5e-4
    assert distance(ends["paper"], ends["exact"]) < 5e-6  # a paper / a exact is 1.009 at J = 32


# --- datasets -----------------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore::spdebench.errors.AliasingWarning")
@pytest.mark.parametrize("truncation", [2, 128])
@pytest.mark.parametrize("renormalisation", ["none", "paper", "exact"])
def test_paper_edition_is_finite(truncation: int, renormalisation: str) -> None:
    u = simulate(Phi42(truncation=truncation, kappa=0.1, renormalisation=renormalisation), 0, range(4)).u
    assert u.isfinite().all() and u.abs().max() < 5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::spdebench.errors.AliasingWarning")
@pytest.mark.parametrize("edition", ["paper", "converged"])
@pytest.mark.parametrize("renormalisation", ["none", "paper", "exact"])
def test_default_datasets_are_finite(edition: str, renormalisation: str) -> None:
    for truncation in (2, 8, 32, 64, 128) if edition == "paper" else (32,):
        eq = Phi42(edition=edition, truncation=truncation, renormalisation=renormalisation)
        u = simulate(eq, 0, range(32), every=10).u
        assert u.isfinite().all() and u.abs().max() < 5
