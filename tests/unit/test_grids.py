"""Grids: transforms are inverse to each other, symbols are exact on modes, resizing keeps the function."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spdebench.errors import UserError
from spdebench.grids import Grid

GRIDS = [
    Grid.unit(16),
    Grid.unit(17),
    Grid((12, 10), (0.0, -1.0), (2.0, 1.0)),
    Grid.unit((6, 8, 5)),
    Grid.unit(16, boundary="dirichlet"),
    Grid((9, 8), (0.0, 0.0), (2.0, 1.0), "dirichlet"),
]


def field(grid: Grid, seed: int = 0) -> torch.Tensor:
    u = torch.randn(3, *grid.points, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    if not grid.periodic:
        for axis in grid.axes:
            u.select(axis, 0).zero_()
    return u


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_inverse_undoes_transform(grid):
    u = field(grid)
    assert torch.allclose(grid.inverse(grid.transform(u)), u, atol=1e-13)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_parseval(grid):
    u = field(grid)
    power = (grid.multiplicity() * grid.transform(u).abs() ** 2).sum(grid.axes)
    assert torch.allclose(power, u.square().mean(grid.axes), rtol=1e-12)


@settings(max_examples=30, deadline=None)
@given(n=st.integers(6, 24), m=st.integers(6, 24), k=st.integers(1, 2), periodic=st.booleans())
def test_a_resolved_mode_is_the_same_function_on_any_grid(n, m, k, periodic):
    a = Grid((n,), (0.5,), (2.5,), "periodic" if periodic else "dirichlet")
    b = a.with_points(m)
    kappa = (2 if periodic else 1) * math.pi * k / 2.0

    def mode(grid: Grid) -> torch.Tensor:
        return torch.sin(kappa * (grid.coordinates(0) - 0.5))

    assert torch.allclose(b.inverse(a.resize(a.transform(mode(a)), b)), mode(b), atol=1e-12)


@pytest.mark.parametrize("grid", [g for g in GRIDS if g.dim < 3], ids=str)
def test_laplacian_symbol_on_modes(grid):
    """The spectral symbol is exact, the difference symbol is that of (u_+ - 2u + u_-)/h^2."""
    u = field(grid)
    direct = torch.zeros_like(u)
    for axis, h in zip(grid.axes, grid.spacing, strict=True):
        right, left = u.roll(-1, axis), u.roll(1, axis)
        if not grid.periodic:
            right = right.clone()
            right.select(axis, -1).zero_()  # the implied right end
        direct += (right - 2 * u + left) / h**2
    if not grid.periodic:
        for axis in grid.axes:
            direct.select(axis, 0).zero_()
    by_symbol = grid.inverse(grid.transform(u) * grid.laplacian(difference=True))
    assert torch.allclose(by_symbol, direct, atol=1e-9)


def test_derivative_of_sine_is_cosine():
    grid = Grid((32,), (0.0,), (2.0,))
    x = grid.coordinates(0)
    got = grid.inverse(grid.transform(torch.sin(3 * math.pi * x)) * grid.derivative())
    assert torch.allclose(got, 3 * math.pi * torch.cos(3 * math.pi * x), atol=1e-11)
    with pytest.raises(UserError, match="no symbol on a Dirichlet grid"):
        Grid.unit(8, boundary="dirichlet").derivative()


@pytest.mark.parametrize(
    "arguments",
    [((3,), (0.0,), (1.0,)), ((8,), (1.0,), (1.0,)), ((8, 8), (0.0,), (1.0,)), ((8,), (0.0,), (1.0,), "neumann")],
)
def test_bad_grids(arguments):
    with pytest.raises(UserError):
        Grid(*arguments)
