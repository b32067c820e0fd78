"""The constants against independent sums, quadratures and the scheme's own linear algebra."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from spdebench.equations import KPZ, Equation, Phi42, Phi43, equation, renormalise
from spdebench.errors import UserError
from spdebench.report.figures.renormalisation import paired_paths, plot_renormalisation, renormalisation_table
from spdebench.solvers import make_scheme

T42, T43 = 0.025, 256 * 1.384e-4


def at(t: float) -> torch.Tensor:
    return torch.tensor([t], dtype=torch.float64)


# --- phi42 --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("truncation", "value"), [(2, 9.3465e-4), (8, 1.78919e-3), (32, 2.82067e-3), (64, 3.35996e-3), (128, 3.90537e-3)]
)
def test_continuum_variance_of_the_noises_modes(truncation: int, value: float) -> None:
    assert float(renormalise.box_variance(Phi42(truncation=truncation), at(T42))) == pytest.approx(value, rel=3e-6)


@pytest.mark.parametrize(("truncation", "value"), [(2, 1.061e-3), (8, 2.149e-3), (32, 3.259e-3), (128, 4.363e-3)])
def test_the_papers_constant_sums_the_ball(truncation: int, value: float) -> None:
    assert float(renormalise.ball_variance(Phi42(truncation=truncation), at(T42))) == pytest.approx(value, rel=3e-4)


def test_ball_by_plain_summation() -> None:
    total = T42
    for k in itertools.product(range(-8, 9), repeat=2):
        rate = 4 * math.pi**2 * (k[0] ** 2 + k[1] ** 2)
        if 0 < rate <= 4 * math.pi**2 * 64:
            total += (1 - math.exp(-2 * rate * T42)) / (2 * rate)
    got = float(renormalise.ball_variance(Phi42(truncation=8, sigma=2.0), at(T42)))
    assert got == pytest.approx(4 * total, rel=1e-13)


def test_logarithmic_growth() -> None:
    """da/d ln J -> sigma^2/(4 pi), within 3 % from J = 64 on, for the box of the noise and for the paper's ball."""
    for variance in (renormalise.box_variance, renormalise.ball_variance):
        a = [float(variance(Phi42(truncation=j), at(T42))) for j in (64, 128, 256)]
        for low, high in itertools.pairwise(a):
            assert (high - low) / math.log(2) == pytest.approx(0.01 / (4 * math.pi), rel=0.03)


# --- E X^2 of the very scheme -------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class LinearSquare(Phi42):
    """X itself: no cube and no counter-term."""

    def drift(self, grid, device="cpu"):
        return torch.zeros_like

    def counterterm_rates(self):
        return ()


@dataclass(frozen=True, kw_only=True)
class LinearLattice(Phi43):
    """X itself on the lattice."""

    def drift(self, grid, device="cpu"):
        return torch.zeros_like

    def counterterm_rates(self):
        return ()


def stroke_variance(eq: Equation) -> torch.Tensor:
    """E X_n(x)^2 at every point and step: each normal strikes once alone, and the squares of its decay add up."""
    h, wiener = eq.horizon / eq.noise_steps, eq.wiener()
    scheme = make_scheme(eq, h)
    unit = torch.eye(wiener.basis.pairs, dtype=torch.complex128)
    show = wiener.physical if scheme.noise_form == "physical" else wiener.spectral
    strokes = show(torch.cat((unit, 1j * unit)) * math.sqrt(h))
    zero = torch.zeros(len(strokes), *eq.solving_grid.points, dtype=torch.float64)
    state, total, out = scheme.start(zero), zero[0].clone(), [zero[0].clone()]
    for n in range(eq.noise_steps):
        state = scheme.step(state, strokes if n == 0 else torch.zeros_like(strokes))
        total = total + scheme.field(state).square().sum(0)
        out.append(total)
    return torch.stack(out)


@pytest.mark.filterwarnings("ignore::spdebench.errors.AliasingWarning")
@pytest.mark.parametrize(
    "eq",
    [
        LinearSquare(points=8, truncation=6, steps=20, frames=20, sigma=0.7),
        LinearSquare(points=8, truncation=8, steps=20, frames=20),  # Nyquist
        LinearSquare(points=8, truncation=20, steps=20, frames=20),  # aliased more than once
        LinearSquare(points=7, truncation=18, steps=20, frames=20, substeps=3),
        LinearSquare(points=8, truncation=8, edition="converged", steps=20, frames=20),
        LinearLattice(points=5, truncation=4, steps=20, frames=20),
        LinearLattice(points=5, truncation=2, steps=20, frames=20, substeps=2),
        LinearLattice(points=5, truncation=4, steps=20, frames=20, edition="converged"),
    ],
    ids=[
        "resolved",
        "nyquist",
        "aliased",
        "aliased odd substeps",
        "galerkin",
        "lattice",
        "part of the modes",
        "in time",
    ],
)
def test_scheme_variance_is_that_of_the_scheme_at_every_point(eq: Equation) -> None:
    got, want = renormalise.scheme_variance(eq), stroke_variance(eq)
    shape = (-1,) + (1,) * eq.dim
    assert want.numpy() == pytest.approx(got.reshape(shape).expand_as(want).numpy(), rel=1e-11, abs=1e-15)


def test_interval_average_is_that_of_constant_noise() -> None:
    """E X^2 averaged over an interval, by Simpson's rule with 40 nodes, the noise held."""
    eq = LinearSquare(points=8, truncation=8, edition="converged", steps=5, frames=5)
    rates, weights = renormalise.mode_rates(eq)
    h, m = eq.horizon / 5, 40
    total = np.zeros(5)
    for rate, weight in zip(rates.tolist(), weights.tolist(), strict=True):
        for n in range(5):

            def square(s: float, rate: float = rate, n: int = n) -> float:
                def push(length: float) -> float:
                    return -math.expm1(-rate * length) / rate if rate else length

                past = sum((math.exp(-rate * (j * h + s)) * push(h)) ** 2 for j in range(n))
                return (past + push(s) ** 2) / h

            s = np.linspace(0, h, m + 1)
            values = np.array([square(v) for v in s])
            total[n] += weight * (values[0] + values[-1] + 4 * values[1::2].sum() + 2 * values[2:-1:2].sum()) / (3 * m)
    assert renormalise.interval_variance(eq).numpy() == pytest.approx(eq.sigma**2 * total, rel=1e-4)


# --- phi43 --------------------------------------------------------------------------------------------------------
def test_lattice_constants_at_the_end() -> None:
    """C_0 and C_1 at T = 256 dt and when stationary; E X_n^2 of the scheme with the zero mode and without."""
    eq = Phi43()
    assert float(renormalise.lattice_c0(eq, at(T43))) == pytest.approx(0.98427, abs=5e-6)
    assert float(renormalise.lattice_c0(eq, at(50.0))) == pytest.approx(1.01770, abs=5e-6)
    assert float(renormalise.lattice_c1(eq, at(T43))) == pytest.approx(0.00245045, abs=5e-9)
    assert renormalise.c1_at(17, 8, 2.0, 3.0, nodes=96) == pytest.approx(0.00303934, abs=5e-9)
    variance = float(renormalise.scheme_variance(eq)[-1])
    assert variance == pytest.approx(0.96805, abs=5e-6)
    assert variance - T43 / 8 == pytest.approx(0.96362, abs=5e-6)


def test_c1_by_direct_sums_over_pairs_of_modes() -> None:
    """The double sum over k_1, k_2 with its wrapped third mode, integrated adaptively, on a lattice of 5^3."""
    t, points = 0.03, 5
    k = [v for v in itertools.product(range(-2, 3), repeat=3) if any(v)]
    line = {j: (2 * points / 2 * math.sin(math.pi * j / points)) ** 2 for j in range(points)}

    def rate(*vectors: tuple[int, ...]) -> float:
        return sum(line[sum(c) % points] for c in zip(*vectors, strict=True))

    rates = np.array([rate(v) for v in k])
    third = np.array([[rate(a, b) for b in k] for a in k])

    def integrand(s: float) -> float:
        v = (np.exp(-s * rates) - np.exp(-(2 * t - s) * rates)) / (2 * rates)
        return float(v @ np.exp(-s * third) @ v)

    want = quad(integrand, 0, t, epsabs=0, epsrel=1e-11)[0] / 32
    assert renormalise.c1_at(points, 2, 2.0, t) == pytest.approx(want, rel=1e-10)


def test_quadrature_and_interpolation_of_c1_are_converged() -> None:
    """Half as many nodes again change nothing, and the interpolant in t meets the integral: below 1e-6 of C_1(T)."""
    eq, end = Phi43(), renormalise.c1_at(17, 8, 2.0, T43)
    for part in (1 / 256, 0.1, 0.43, 0.8, 1.0):
        direct = renormalise.c1_at(17, 8, 2.0, part * T43, nodes=72)
        assert abs(renormalise.c1_at(17, 8, 2.0, part * T43) - direct) < 1e-9 * end
        assert abs(float(renormalise.lattice_c1(eq, at(part * T43))) - direct) < 1e-8 * end


def test_growth_on_finer_lattices() -> None:
    """Stationary C_0 ~ c/eps: eps C_0 settles at the lattice Green function 0.2527/2; C_1 grows like -c log eps."""
    lattices = [Phi43(points=2 * n + 1, truncation=2 * n) for n in (16, 32, 64)]
    scaled = [2 / e.points * float(renormalise.lattice_c0(e, at(50.0))) for e in lattices]
    for eq, value in zip(lattices, scaled, strict=True):
        assert value == pytest.approx(0.252731 / 2, abs=0.12 * 2 / eq.points)
    steps = np.diff([renormalise.c1_at(2 * n + 1, n, 2.0, 2.0, nodes=64) for n in (2, 4, 8, 16)])
    assert np.all(steps > 0) and np.ptp(steps) < 0.2 * steps.mean()


# --- counter-terms of the equations -------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["phi42", "phi43"])
@pytest.mark.parametrize("edition", ["paper", "converged"])
def test_counterterm_rates_cover_the_noise_intervals(name: str, edition: str) -> None:
    eq = equation(name, edition=edition)
    assert eq.replace(renormalisation="none").counterterm_rates() == []
    for kind in ("paper", "exact"):
        rates = np.array(eq.replace(renormalisation=kind).counterterm_rates())
        assert len(rates) == eq.noise_steps and np.all(np.diff(rates) > 0)
        assert abs(rates[0]) < 1e-12 if edition == "paper" else rates[0] > 0


def test_counterterm_rates_are_the_formulas() -> None:
    a = Phi42(renormalisation="paper").counterterm_rates()
    assert a[100] == pytest.approx(3 * float(renormalise.ball_variance(Phi42(), at(0.01))))
    eq = Phi43(sigma=0.5)
    c0, c1 = (float(f(eq, at(100 * 1.384e-4))) for f in (renormalise.lattice_c0, renormalise.lattice_c1))
    assert eq.counterterm_rates()[100] == pytest.approx(3 * 0.25 * c0 - 9 * 0.0625 * c1)


def test_constants_for_the_reader() -> None:
    square = renormalise.constants(Phi42(truncation=32))
    assert square["a paper / a exact"] == pytest.approx(square["a paper"] / square["a exact"])
    assert square["a exact"] == pytest.approx(3.2314e-3, rel=1e-4)  # five-point eigenvalues, modes up to Nyquist
    lattice = renormalise.constants(Phi43())
    assert lattice["C paper"] == pytest.approx(3 * 0.984274 - 9 * 0.00245045, rel=1e-5)
    assert lattice["sigma^2 C0 / E X^2"] == pytest.approx(1.0168, abs=1e-4)
    line = renormalise.constants(KPZ(sigma=1.0))
    assert line["C paper"] == pytest.approx(64, rel=0.01) and line["C exact"] < line["C Cole-Hopf"] < line["C paper"]
    assert renormalise.constants(equation("phi41")) == {}


# --- the study ----------------------------------------------------------------------------------------------------
def test_study_of_kpz() -> None:
    """With the counter-term the low modes settle as J doubles; without it their distance grows like J."""
    table = renormalisation_table(KPZ(), truncations=(8, 16, 32), n=8)
    kept, bare = (table[table["renormalisation"] == kind]["distance"].to_numpy() for kind in ("exact", "none"))
    assert kept[1] < 0.7 * kept[0] and bare[1] > 1.5 * bare[0] and bare[1] > 10 * kept[1]


@pytest.mark.parametrize("name", ["kpz", "phi42", "phi43"])
def test_figure_shows_the_tables_distances_and_the_pair(name: str) -> None:
    eq = equation(name, truncation=8, points=9, steps=20, frames=20, horizon=0.01)
    options = {"truncations": (8, 10), "n": 2}
    figure = plot_renormalisation(eq, **options)
    table = renormalisation_table(eq, **options)
    axes = next(a for a in figure.axes if "change from" in a.get_title(loc="left"))
    drawn = [float(container[0].get_ydata()[0]) for container in axes.containers]
    assert drawn == table["distance"].tolist()
    pair = paired_paths(eq, 0)
    images = [np.asarray(image.get_array()) for a in figure.axes for image in a.images]
    shown = [p if eq.dim == 1 else (p[-1] if eq.dim == 2 else p[-1, :, :, 4]).T for p in pair]
    assert np.array_equal(images[0], shown[0]) and np.array_equal(images[1], shown[1])


def test_study_refuses_what_it_cannot_compare() -> None:
    with pytest.raises(UserError, match="phi41 needs no renormalisation"):
        renormalisation_table(equation("phi41"))
    with pytest.raises(UserError, match="at least two truncations of 4 or more"):
        renormalisation_table(Phi42(), truncations=(2, 4))
