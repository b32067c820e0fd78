"""Laws of the noise in two and three dimensions: series, covariance, nesting in J and time, grids, batches, numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from spdebench.grids import Grid
from spdebench.noise import Wiener, make_basis, spectra
from spdebench.noise.stream import normal_pairs, sample_states


def direct_sum(basis, z: torch.Tensor, grid: Grid) -> np.ndarray:
    """The series at the points, one function at a time, straight from the formulas."""
    unit = 2 * np.pi if grid.periodic else np.pi
    x = [
        (c - low).numpy() * unit / length for c, low, length in zip(grid.mesh(), grid.lower, grid.lengths, strict=True)
    ]
    amplitude, total = torch.view_as_real(z).numpy(), 0.0
    for p in range(basis.pairs):
        for member in range(2):
            if int(basis.index[p, member]) == 0:
                continue
            k = basis.function_wavevectors[p, member].tolist()
            if not grid.periodic:
                wave = math.prod(2 / length for length in grid.lengths) ** 0.5
                for ki, xi in zip(k, x, strict=True):
                    wave = wave * np.sin(ki * xi)
            elif not any(k):
                wave = np.full(grid.points, grid.volume**-0.5)
            else:
                phase = sum(ki * xi for ki, xi in zip(k, x, strict=True))
                wave = (2 / grid.volume) ** 0.5 * (np.cos(phase) if member == 0 else -np.sin(phase))
            total = total + amplitude[..., p, member][(..., *[None] * grid.dim)] * wave
    return total


def white(basis) -> torch.Tensor:
    return torch.ones(basis.pairs, 2, dtype=torch.float64)


def boxed(points: tuple[int, ...], boundary: str) -> Grid:
    return Grid(points, (-1.0, 0.5, 0.0)[: len(points)], (1.5, 1.25, 2.0)[: len(points)], boundary)


CASES = [
    ("fourier", 6, (16, 16)),
    ("fourier", 8, (8, 8)),
    ("fourier", 8, (9, 12)),
    ("fourier", 8, (7, 5)),
    ("fourier", 14, (8, 6)),
    ("fourier", 20, (8, 8)),
    ("fourier", 4, (6, 7, 8)),
    ("fourier", 8, (8, 5, 6)),
    ("sine", 5, (8, 12)),
    ("sine", 8, (8, 8)),
    ("sine", 19, (8, 7)),
    ("sine", 6, (5, 8, 6)),
]


@pytest.mark.parametrize(("name", "truncation", "points"), CASES)
def test_grid_values_are_the_series_at_the_points_also_where_it_aliases(name, truncation, points):
    basis = make_basis(name, truncation, len(points))
    grid = boxed(points, "periodic" if name == "fourier" else "dirichlet")
    z = normal_pairs(sample_states(5, "noise", range(2), "cpu"), torch.arange(2), basis.modes)
    want = direct_sum(basis, z, grid)
    got = basis.physical(z, grid)
    assert np.abs(got.numpy() - want).max() < 1e-11
    assert torch.allclose(grid.transform(got), basis.spectral(z, grid), atol=1e-12)
    assert basis.functions == (truncation + 1 if name == "fourier" else truncation) ** len(points)


@pytest.mark.parametrize(("name", "dim"), [("fourier", 2), ("fourier", 3), ("sine", 2)])
def test_the_functions_are_orthonormal(name, dim):
    """Mean of phi_p phi_q over the points of a resolving grid times the volume is delta_pq (rectangle rule, exact)."""
    basis = make_basis(name, 4, dim)
    grid = boxed((12,) * dim, "periodic" if name == "fourier" else "dirichlet")
    unit = torch.eye(2 * basis.pairs, dtype=torch.float64)[basis.index.flatten() > 0].reshape(-1, basis.pairs, 2)
    phi = basis.physical(torch.view_as_complex(unit), grid).flatten(1)
    gram = phi @ phi.T * (grid.volume / phi.shape[1])
    assert torch.allclose(gram, torch.eye(basis.functions, dtype=torch.float64), atol=1e-12)


@pytest.mark.parametrize(("name", "boundary"), [("fourier", "periodic"), ("sine", "dirichlet")])
def test_covariance_is_the_sum_of_eigenfunctions(name, boundary):
    """E W(T,x)W(T,y) = T sum lambda_q phi_q(x) phi_q(y) with lambda = exp(-|k|^2/4): 4.8 standard errors, n = 4000."""
    n, horizon, grid = 4000, 0.3, Grid.unit(6, 2, boundary)
    basis = make_basis(name, 4, 2)
    roots = spectra.gaussian(basis.function_wavevectors.to(torch.float64), 0.25).sqrt()
    w = Wiener(basis, roots, grid).increments(11, range(n), 6, horizon).sum(1).flatten(1)
    unit = torch.eye(2 * basis.pairs, dtype=torch.float64).reshape(-1, basis.pairs, 2) * roots
    phi = basis.physical(torch.view_as_complex(unit), grid).flatten(1)
    want = horizon * phi.T @ phi
    error = ((want**2 + torch.outer(want.diagonal(), want.diagonal())) / n).sqrt()
    assert torch.all((w.T @ w / n - want).abs() <= 4.8 * error + 1e-12)
    assert torch.all(w.mean(0).abs() <= 4.8 * (want.diagonal() / n).sqrt() + 1e-12)


@pytest.mark.parametrize(
    ("name", "dim", "small", "large"),
    [("fourier", 2, 6, 20), ("fourier", 3, 4, 8), ("sine", 2, 5, 12), ("sine", 2, 6, 13)],
)
def test_a_smaller_truncation_is_a_projection_of_a_larger_one(name, dim, small, large):
    """The numbers in the stream belong to the wave vectors, so that the low modes are the same to the bit."""
    grid = Grid.unit(24, dim, "periodic" if name == "fourier" else "dirichlet")
    drawn = []
    for truncation in (small, large):
        basis = make_basis(name, truncation, dim)
        z = next(Wiener(basis, white(basis), grid).blocks(9, range(2), 4, 0.1))
        drawn.append((basis.spectral(z, grid), basis))
    top = small // 2 if name == "fourier" else small
    low = torch.ones(grid.spectral_shape, dtype=torch.bool)
    for axis in range(dim):
        inside = grid.mode_numbers(axis).abs() <= top
        low &= inside.reshape([-1 if a == axis else 1 for a in range(dim)])
    assert torch.equal(drawn[1][0] * low, drawn[0][0])


def test_numbers_in_the_stream():
    """In one dimension 0, 1, 2, ..; elsewhere distinct, and those of vectors along the last axis are as in 1-D."""
    for name, pairs in (("fourier", 33), ("sine", 32), ("haar", 32)):
        assert torch.equal(make_basis(name, 64).modes, torch.arange(pairs))
    for name, dim in (("fourier", 2), ("fourier", 3), ("sine", 2), ("sine", 3)):
        modes = make_basis(name, 10, dim).modes
        assert modes.dtype == torch.int64
        assert len(modes.unique()) == len(modes)
        assert int(modes.min()) >= 0
    basis = make_basis("fourier", 10, 3)
    along = (basis.wavevectors[:, :2] == 0).all(1)
    assert torch.equal(basis.modes[along], torch.arange(6))


def test_the_numbers_of_one_dimension_are_pinned():
    """The first increment of seed 7, sample 3, J = 4: other numbers here mean other data everywhere."""
    process = Wiener(make_basis("fourier", 4), torch.ones(3, 2, dtype=torch.float64), Grid.unit(8))
    pairs = next(process.blocks(7, [3], 2, 1.0))[0, 0]
    want = [
        (0.6923432470153134 - 1.021791876673982j),
        (0.5299295442187554 + 0.8457728243126038j),
        (0.4772862460776123 + 0.5262821128803004j),
    ]
    assert pairs.tolist() == pytest.approx(want, rel=1e-15)


def test_the_realisation_does_not_depend_on_the_grid():
    basis = make_basis("fourier", 6, 2)
    drawn = [next(Wiener(basis, white(basis), Grid.unit(n, 2)).blocks(2, range(3), 4, 1.0)) for n in (8, 32)]
    assert torch.equal(*drawn)
    coarse, fine = (basis.physical(z, Grid.unit(n, 2)) for z, n in zip(drawn, (8, 32), strict=True))
    assert torch.allclose(fine[..., ::4, ::4], coarse, atol=1e-13)


def test_noise_is_the_same_to_the_bit_for_any_batch():
    basis = make_basis("fourier", 12, 2)
    process = Wiener(basis, white(basis), Grid.unit(8, 2))
    together = process.increments(7, range(9), 10, 0.05)
    for batch in ([0], [8], range(2, 6), [3, 7, 4]):
        assert torch.equal(process.increments(7, batch, 10, 0.05), together[list(batch)])


@pytest.mark.parametrize("steps", [6, 10])
def test_coarse_increments_are_sums_of_fine_ones(steps):
    basis = make_basis("fourier", 8, 2)
    process = Wiener(basis, white(basis), Grid.unit(8, 2))
    coarse = process.increments(4, range(2), steps, 0.7)
    for level in (1, 3):
        fine = process.increments(4, range(2), steps << level, 0.7)
        assert torch.allclose(fine.unflatten(1, (steps, -1)).sum(2), coarse, atol=1e-13)


@pytest.mark.parametrize(("name", "dim", "n"), [("fourier", 1, 8), ("fourier", 2, 6), ("sine", 1, 8), ("sine", 2, 6)])
def test_leaving_pairs_out_leaves_the_others_alone(name, dim, n):
    """A basis that keeps some pairs is the whole one with the other amplitudes set to 0, also with aliasing."""
    basis, grid = make_basis(name, 10, dim), Grid.unit(n, dim, "periodic" if name == "fourier" else "dirichlet")
    keep = torch.arange(basis.pairs) % 3 != 1
    part = basis.keeping(keep)
    assert torch.equal(part.modes, basis.modes[keep])
    z = normal_pairs(sample_states(1, "noise", range(2), "cpu"), torch.arange(3), basis.modes)
    want = basis.spectral(z * keep, grid)
    assert torch.allclose(part.spectral(z[..., keep], grid), want, atol=1e-14)


def test_a_grid_says_whether_the_noise_aliases():
    grid = Grid.unit(16, 2)
    for truncation, resolved, aliased in ((14, True, False), (16, False, False), (18, False, True)):
        basis = make_basis("fourier", truncation, 2)
        assert (basis.resolved_by(grid), basis.aliases_on(grid)) == (resolved, aliased)
    for truncation, resolved, aliased in ((15, True, False), (16, False, False), (17, False, True)):
        basis = make_basis("sine", truncation, 2)
        assert (basis.resolved_by(grid), basis.aliases_on(grid)) == (resolved, aliased)
