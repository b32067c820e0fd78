"""Laws of the driving noise: covariance, nesting in J and dt, independence of batch, Nyquist, aliasing, projection."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from spdebench.grids import Grid
from spdebench.noise import Wiener, make_basis, paths, spectra
from spdebench.noise.stream import normal_pairs, sample_states


def function_values(basis, x: np.ndarray, length: float = 1.0) -> np.ndarray:
    """phi_j(x), j = 1.., straight from the formulas: (functions, points)."""
    rows = []
    for j in range(1, basis.functions + 1):
        if basis.name == "fourier":
            k = j // 2
            wave = np.cos if j % 2 == 0 else np.sin
            rows.append(
                np.full_like(x, 1 / math.sqrt(length))
                if j == 1
                else math.sqrt(2 / length) * wave(2 * math.pi * k * x / length)
            )
        elif basis.name == "sine":
            rows.append(math.sqrt(2 / length) * np.sin(j * math.pi * x / length))
        elif j == 1:
            rows.append(np.full_like(x, 1 / math.sqrt(length)))
        else:
            d = int(math.log2(j - 1))
            y = 2**d * x / length - (j - 1 - 2**d)
            psi = np.where((y >= 0) & (y < 0.5), 1.0, np.where((y >= 0.5) & (y < 1), -1.0, 0.0))
            rows.append(2 ** (d / 2) / math.sqrt(length) * psi)
    return np.array(rows)


def betas(basis, z: torch.Tensor) -> np.ndarray:
    """The amplitudes that drive functions 1, 2, ..: (..., functions). A Fourier sine is driven by -b."""
    real = torch.view_as_real(z)
    index = basis.index
    out = np.zeros((*z.shape[:-1], basis.functions))
    for p in range(basis.pairs):
        for member in range(2):
            if (j := int(index[p, member])) > 0:
                sign = -1 if basis.name == "fourier" and member == 1 else 1
                out[..., j - 1] = sign * real[..., p, member].numpy()
    return out


CASES = [
    ("fourier", 32, 128, "periodic"),
    ("fourier", 128, 128, "periodic"),
    ("fourier", 256, 128, "periodic"),
    ("fourier", 300, 64, "periodic"),
    ("fourier", 62, 31, "periodic"),
    ("fourier", 64, 17, "periodic"),
    ("fourier", 130, 129, "periodic"),
    ("fourier", 10, 9, "periodic"),
    ("sine", 32, 128, "dirichlet"),
    ("sine", 127, 128, "dirichlet"),
    ("sine", 256, 128, "dirichlet"),
    ("sine", 301, 64, "dirichlet"),
    ("haar", 32, 128, "periodic"),
    ("haar", 256, 128, "periodic"),
    ("haar", 33, 64, "periodic"),
    ("haar", 64, 64, "dirichlet"),
]


@pytest.mark.parametrize(("name", "truncation", "points", "boundary"), CASES)
def test_grid_values_are_the_series_at_the_points_also_where_it_aliases(name, truncation, points, boundary):
    basis, grid = make_basis(name, truncation), Grid((points,), (-1.0,), (1.5,), boundary)
    z = normal_pairs(sample_states(5, "noise", range(3), "cpu"), torch.arange(2), torch.arange(basis.pairs))
    x = np.arange(points) * 2.5 / points
    expected = betas(basis, z) @ function_values(basis, x, 2.5)
    if boundary == "dirichlet":
        expected[..., 0] = 0
    got = basis.physical(z, grid).numpy()
    assert np.abs(got - expected).max() < 1e-11
    via_coefficients = grid.inverse(basis.spectral(z, grid)).numpy()
    assert np.abs(via_coefficients - expected).max() < 1e-11
    assert torch.allclose(grid.transform(basis.physical(z, grid)), basis.spectral(z, grid), atol=1e-12)


@pytest.mark.parametrize(
    ("truncation", "boundary"), [(16, "periodic"), (256, "periodic"), (16, "dirichlet"), (128, "dirichlet")]
)
def test_haar_projection_is_the_exact_integral_against_the_modes(truncation, boundary):
    basis, grid = make_basis("haar", truncation), Grid.unit(64, boundary=boundary)
    z = normal_pairs(sample_states(1, "noise", [0], "cpu"), torch.arange(1), torch.arange(basis.pairs))
    got = basis.projected(z, grid)[0, 0]
    fine = 1 << 14
    x = (np.arange(fine) + 0.5) / fine  # the midpoint rule is exact to O(1/fine^2) on the cells
    w = betas(basis, z)[0, 0] @ function_values(basis, x)
    for k in (0, 1, 2, 7, 30, 31):
        if boundary == "periodic":
            want = np.mean(w * np.exp(-2j * np.pi * k * x))
        else:
            want = 2 * np.mean(w * np.sin(np.pi * k * x))
        assert abs(complex(got[k]) - want) < 2e-4 * max(1, abs(want))
    if boundary == "periodic":
        assert got[32] == 0  # Nyquist is not a mode


@pytest.mark.parametrize(("name", "boundary"), [("fourier", "periodic"), ("sine", "dirichlet"), ("haar", "periodic")])
@pytest.mark.parametrize("kind", ["cylindrical", "q_wiener"])
def test_covariance_over_time_is_the_sum_of_eigenfunctions(name, boundary, kind):
    """E W(T,x)W(T,y) = T sum lambda_j phi_j(x) phi_j(y), every entry within 4.5 standard errors, n = 4000."""
    n, steps, horizon = 4000, 6, 0.3
    basis, grid = make_basis(name, 8), Grid.unit(16, boundary=boundary)
    root = torch.ones(basis.pairs, 2) if kind == "cylindrical" else spectra.power_law(basis.index).sqrt()
    process = Wiener(basis, root.to(torch.float64), grid)
    w = process.increments(11, range(n), steps, horizon).sum(1).numpy()
    got = w.T @ w / n
    phi = function_values(basis, np.arange(16) / 16)
    lam = (
        np.ones(basis.functions) if kind == "cylindrical" else (np.arange(1, basis.functions + 1) // 2 + 1.0) ** -5.001
    )
    want = horizon * (phi.T * lam) @ phi
    if boundary == "dirichlet":
        want[0], want[:, 0] = 0, 0
    error = np.sqrt((want**2 + np.outer(np.diag(want), np.diag(want))) / n)
    assert np.all(np.abs(got - want) <= 4.5 * error + 1e-12)
    assert np.all(np.abs(w.mean(0)) <= 4.5 * np.sqrt(np.diag(want) / n) + 1e-12)


def test_nyquist_has_the_full_cosine_weight():
    """J = N: Var dW/dt = J+1 at every point, of which Nyquist carries 2; n = 20000, 4.5 standard errors."""
    process = Wiener(make_basis("fourier", 16), torch.ones(9, 2, dtype=torch.float64), Grid.unit(16))
    dw = process.increments(3, range(20000), 1, 1.0)[:, 0]
    error = 17 * math.sqrt(2 / 20000)
    assert torch.all((dw.var(0) - 17).abs() < 4.5 * error)
    nyquist = Grid.unit(16).transform(dw)[:, -1]
    assert abs(float(nyquist.real.var()) - 2) < 4.5 * 2 * math.sqrt(2 / 20000)
    assert float(nyquist.imag.abs().max()) < 1e-14


@pytest.mark.parametrize(
    ("name", "boundary", "small", "large"),
    [("fourier", "periodic", 16, 64), ("sine", "dirichlet", 15, 60), ("haar", "periodic", 16, 64)],
)
def test_a_smaller_truncation_is_a_projection_of_a_larger_one(name, boundary, small, large):
    grid = Grid.unit(128, boundary=boundary)
    fields = []
    for truncation in (small, large):
        basis = make_basis(name, truncation)
        process = Wiener(basis, torch.ones(basis.pairs, 2, dtype=torch.float64), grid)
        fields.append(process.increments(9, range(4), 10, 0.1))
    if name == "haar":  # averages over the coarse cells remove the finer wavelets
        means = fields[1].reshape(4, 10, small, 128 // small).mean(-1).repeat_interleave(128 // small, -1)
        assert torch.allclose(means, fields[0], atol=1e-13)
        return
    c = grid.transform(fields[1])
    c[..., (small // 2 if name == "fourier" else small) + 1 :] = 0
    assert torch.allclose(grid.inverse(c), fields[0], atol=1e-13)


def test_the_realisation_does_not_depend_on_the_grid():
    basis = make_basis("fourier", 30)
    root = torch.ones(basis.pairs, 2, dtype=torch.float64)
    coarse = Wiener(basis, root, Grid.unit(32)).increments(2, range(3), 4, 1.0)
    fine = Wiener(basis, root, Grid.unit(256)).increments(2, range(3), 4, 1.0)
    assert torch.allclose(fine[..., ::8], coarse, atol=1e-13)


@pytest.mark.parametrize("steps", [50, 64, 125])
def test_coarse_increments_are_sums_of_fine_ones(steps):
    states, modes = sample_states(4, "noise", range(5), "cpu"), torch.arange(7)

    def path(count: int) -> torch.Tensor:
        return torch.cat(list(paths.blocks(states, modes, count, 0.7, 1000)), dim=1)

    coarse = path(steps)
    for level in (1, 2, 5):
        fine = path(steps << level)
        assert torch.allclose(fine.unflatten(1, (steps, 1 << level)).sum(2), coarse, atol=1e-14)
        n = fine.numel()
        variance = float(torch.view_as_real(fine).pow(2).mean()) / (0.7 / (steps << level))
        assert abs(variance - 1) < 4.5 * math.sqrt(2 / (2 * n))


def test_increments_of_disjoint_intervals_and_modes_are_independent():
    """All correlations of 12 increments x 3 modes x 2 parts vanish within 4.8 standard errors, n = 20000."""
    states = sample_states(8, "noise", range(20000), "cpu")
    z = torch.view_as_real(torch.cat(list(paths.blocks(states, torch.arange(3), 12, 1.0, 1 << 20)), dim=1))
    flat = z.reshape(20000, -1)
    r = torch.corrcoef(flat.T)
    r.fill_diagonal_(0)
    assert float(r.abs().max()) < 4.8 / math.sqrt(20000)


def test_moments_and_tails_of_the_stream():
    """10^6 pairs: moments 1 to 6, the share beyond 4, and the modulus against exp(-r^2/2)."""
    z = normal_pairs(sample_states(0, "noise", range(100), "cpu"), torch.arange(100), torch.arange(100)).flatten()
    x = torch.view_as_real(z).flatten()
    n = x.numel()
    for p, moment in ((1, 0), (2, 1), (3, 0), (4, 3), (5, 0), (6, 15)):
        spread = math.sqrt((math.prod(range(1, 2 * p, 2)) - moment**2) / n)
        assert abs(float((x**p).mean()) - moment) < 4.5 * spread
    tail = math.erfc(4 / math.sqrt(2))
    assert abs(float((x.abs() > 4).double().mean()) - tail) < 4.5 * math.sqrt(tail / n)
    assert abs(float((z.abs() < 1).double().mean()) - (1 - math.exp(-0.5))) < 4.5 * math.sqrt(0.25 / z.numel())


def test_noise_is_the_same_to_the_bit_for_any_batch():
    basis = make_basis("fourier", 64)
    process = Wiener(basis, torch.ones(basis.pairs, 2, dtype=torch.float64), Grid.unit(128))
    together = process.increments(7, range(37), 50, 0.05)
    for batch in ([0], [36], range(5, 12), [3, 30, 4]):
        assert torch.equal(process.increments(7, batch, 50, 0.05), together[list(batch)])


def test_seeds_samples_and_purposes_give_different_numbers():
    keys = [(0, "noise", 0), (1, "noise", 0), (0, "noise", 1), (0, "initial", 0), (-1, "noise", 0), (2**63, "noise", 0)]
    draws = [normal_pairs(sample_states(s, p, [i], "cpu"), torch.arange(1), torch.arange(1)).item() for s, p, i in keys]
    assert len(set(draws)) == len(draws)


def test_mollifier_is_normalised_and_q_wiener_has_its_trace():
    assert abs(spectra.bump_radius() - 1.0169) < 1e-4
    x = torch.linspace(-1.1, 1.1, 200001, dtype=torch.float64)
    assert abs(float(torch.trapezoid(spectra.bump(x, spectra.bump_radius()) ** 2, x)) - 1) < 1e-8
    basis = make_basis("fourier", 256)
    assert abs(Wiener(basis, spectra.power_law(basis.index).sqrt(), Grid.unit(512)).trace - 1.0738) < 1e-4


def test_covariance_of_the_mollified_noise():
    """Var dW^eps/dt = 1 + 2 sum_{k<=J/2} phi^2(k/J) at every point, and the spectrum is phi^2; n = 8000."""
    from spdebench.equations import KPZ

    n, eq = 8000, KPZ(truncation=16, points=32)
    dw = eq.wiener().increments(2, range(n), 1, 1.0)[:, 0]
    phi2 = eq.eigenvalue_roots()[:, 0] ** 2
    variance = 1 + 2 * float(phi2[1:].sum())
    assert torch.all((dw.var(0) - variance).abs() < 4.5 * variance * math.sqrt(2 / n))
    power = Grid.unit(32).transform(dw).abs().square().mean(0)[1:9]
    assert torch.all((power - phi2[1:]).abs() < 4.5 * phi2[1:] / math.sqrt(n))


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["phi41", "kdv", "wave", "kpz"])
def test_cuda_draws_and_solves_the_same_realisation(name):
    from spdebench.equations import equation
    from spdebench.solvers import simulate

    eq = equation(name, kappa=0.1)
    here = simulate(eq, 0, range(4), out_dtype=torch.float64)
    there = simulate(eq, 0, range(4), out_dtype=torch.float64, device="cuda")
    assert (here.dw - there.dw.cpu()).abs().max() < 1e-13
    assert (here.u - there.u.cpu()).abs().max() < 1e-9
