"""Laws of nse: Taylor-Green, invariants, enstrophy balance, incompressibility, boundary, covariances, strong order."""

from __future__ import annotations

import math

import pytest
import torch
from strong import assert_order, final, paths_at, slope

from spdebench.equations import NSE, equation
from spdebench.equations.initial import gaussian_field
from spdebench.equations.nse import streams
from spdebench.errors import AliasingWarning, UserError
from spdebench.grids import Grid
from spdebench.noise import Wiener
from spdebench.solvers import simulate, solve

SMALL = {"points": 8, "truncation": 16, "steps": 100, "frames": 10}  # 32 x 32 points
FREE = {"viscosity": 0.0, "sigma": 0.0, "forcing": 0.0}


def full(**values) -> NSE:
    """A small spec that stores the grid it solves on."""
    eq = equation("nse", **{"points": 16, "solve_points": 16, "truncation": 8, "steps": 20, "frames": 20, **values})
    assert isinstance(eq, NSE)
    return eq


def still(eq: NSE) -> torch.Tensor:
    return torch.zeros(1, eq.frames + 1, *eq.grid.points, dtype=torch.float64)


@pytest.mark.parametrize("edition", ["paper", "converged"])
@pytest.mark.parametrize("boundary", ["periodic", "dirichlet"])
def test_taylor_green_decays(edition, boundary):
    """omega = sin(2 pi x) sin(2 pi y) only decays: e^{-8 pi^2 nu t} (Crank-Nicolson: to O(dt^2))."""
    eq = full(edition=edition, boundary=boundary, viscosity=1e-2, sigma=0.0, forcing=0.0, storage="spectral")
    x, y = eq.grid.mesh()
    start = torch.sin(2 * math.pi * x) * torch.sin(2 * math.pi * y)
    u = solve(eq, start[None], still(eq))[0]
    want = torch.exp(-8 * math.pi**2 * eq.viscosity * eq.times)[:, None, None] * start
    assert float((u - want).abs().max()) < (1e-12 if edition == "converged" else 1e-4)


def test_shear_flow_is_steady():
    """omega = g(x) moves along itself: without viscosity it stays."""
    eq = full(**FREE)
    x, y = eq.grid.mesh()
    shear = torch.sin(2 * math.pi * (x + 2 * y)) + 0.3 * torch.cos(4 * math.pi * (x + 2 * y))
    assert torch.allclose(solve(eq, shear[None], still(eq))[0, -1], shear, atol=1e-12)


@pytest.mark.parametrize("boundary", ["periodic", "dirichlet"])
def test_the_product_is_the_advection_by_the_velocity(boundary):
    """F = -(psi_y omega_x - psi_x omega_y) for omega of two modes, worked out by hand."""
    grid = Grid.unit(24, 2, boundary)
    x, y = (math.pi * c for c in grid.mesh())
    if boundary == "periodic":
        x, y = 2 * x, 2 * y
    rate = 1.0 if boundary == "dirichlet" else 4.0  # -Laplacian of sin(kx)sin(ly) is rate pi^2 (k^2 + l^2)
    first, second = torch.sin(x) * torch.sin(y), torch.sin(2 * x) * torch.sin(y)
    omega = first + 0.5 * second
    # Poisson bracket of the two, times the difference of 1/(k^2 + l^2): only the cross terms are left
    bracket = torch.sin(x) * torch.cos(y) * 2 * torch.cos(2 * x) * torch.sin(y) - torch.cos(x) * torch.sin(
        y
    ) * torch.sin(2 * x) * torch.cos(y)
    scale = rate * math.pi**2  # d/dx d/dy give the same factor as the Laplacian takes
    want = -0.5 * bracket * scale * (1 / (2 * scale) - 1 / (5 * scale))
    got = grid.inverse(equation("nse", boundary=boundary, forcing=0.0).nonlinear(grid)(grid.transform(omega)[None]))[0]
    assert torch.allclose(got, want, atol=1e-13)


@pytest.mark.parametrize("boundary", ["periodic", "dirichlet"])
def test_energy_and_enstrophy_are_conserved_by_the_semi_discrete_flow(boundary):
    """d/dt int omega^2 = 2 <omega, F> and d/dt int psi omega = 2 <psi, F> vanish on the modes of the product."""
    grid = Grid.unit(32, 2, boundary)
    eq = equation("nse", boundary=boundary, **FREE)
    cut = (32 - 1) // 3 if boundary == "periodic" else (64 - 1) // 3
    kept = torch.ones(grid.spectral_shape, dtype=torch.bool)
    for axis in range(2):
        kept &= grid._along(grid.mode_numbers(axis).abs() <= cut, axis)
    rough = torch.randn(4, 32, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    c = grid.transform(rough) * kept
    c[..., 0, 0] = 0
    rate = eq.nonlinear(grid)(c)
    assert torch.allclose(rate * kept, rate)
    square = -grid.laplacian()
    psi = c * torch.where(square > 0, 1 / square, torch.zeros_like(square))
    weight = grid.multiplicity()
    for test in (c, psi):
        production = (weight * (test.conj() * rate).real).sum((-2, -1))
        size = (weight * test.abs() * rate.abs()).sum((-2, -1))
        assert float((production / size).abs().max()) < 1e-14


@pytest.mark.parametrize(("edition", "order"), [("paper", 1), ("converged", 4)])
def test_the_stepper_conserves_energy_and_enstrophy_to_its_order(edition, order):
    """Drift of the two invariants over [0,1] at nu = sigma = f = 0, as the step is halved."""
    drifts = []
    for steps in (4, 8, 16) if order == 4 else (16, 32, 64):
        eq = full(
            edition=edition,
            storage="spectral",
            steps=steps,
            frames=steps,
            substeps=1,
            points=32,
            solve_points=32,
            **FREE,
        )
        start = 40 * gaussian_field(eq.grid, lambda s: (s + 9) ** -3, 3, [0])
        c = eq.grid.transform(start)
        c = torch.where(streams(eq.grid).abs().sum(0) > 0, c, 0)  # the modes of the product
        u = solve(eq, eq.grid.inverse(c), torch.zeros(1, steps + 1, 32, 32, dtype=torch.float64))
        spectrum = eq.grid.transform(u[0, [0, -1]]).abs() ** 2 * eq.grid.multiplicity()
        square = (-eq.grid.laplacian()).clamp(min=1.0)
        enstrophy, energy = spectrum.sum((-2, -1)), (spectrum / square).sum((-2, -1))
        drifts.append([float(abs(q[1] - q[0]) / q[0]) for q in (enstrophy, energy)])
    for before, after in zip(*drifts[1:], strict=True):
        assert math.log2(before / after) > order - 0.25, drifts
    assert max(drifts[-1]) < (2e-2 if order == 1 else 1e-5)


def test_velocity_is_divergence_free_and_its_curl_is_the_vorticity():
    grid = Grid.unit(32, 2)
    c = grid.transform(gaussian_field(grid, lambda s: (s + 9) ** -3, 0, range(2)))
    stream = streams(grid)
    flow = grid.transform(grid.inverse(c.unsqueeze(1) * stream))
    along = [grid.derivative(axis) for axis in range(2)]
    assert float((along[0] * flow[:, 0] + along[1] * flow[:, 1]).abs().max()) < 1e-16
    curl = along[0] * flow[:, 1] - along[1] * flow[:, 0]
    kept = stream.abs().sum(0) > 0
    assert torch.allclose(curl, c * kept, atol=1e-15)


@pytest.mark.parametrize("edition", ["paper", "converged"])
@pytest.mark.parametrize("boundary", ["periodic", "dirichlet"])
def test_mean_enstrophy_grows_by_the_trace_of_the_noise(boundary, edition):
    """E int omega(T)^2 = int omega_0^2 + sigma^2 Tr(Q) T at nu = f = 0, n = 256, 4 standard errors.

    Euler's explicit step adds dt^2 |F|^2 per step, far below the error here. With Dirichlet data the points lose the
    functions sin(N pi x) only, and J is below N.
    """
    eq = full(
        boundary=boundary,
        edition=edition,
        viscosity=0.0,
        forcing=0.0,
        steps=10,
        frames=10,
        sigma=0.02,
        substeps=1,
        points=24,
        solve_points=24,
    )
    u = simulate(eq, 3, range(256), out_dtype=torch.float64).u
    enstrophy = u.square().mean((-2, -1))
    gain = enstrophy[:, -1] - enstrophy[:, 0]
    want = eq.sigma**2 * eq.wiener().trace * eq.horizon
    error = float(gain.std()) / math.sqrt(len(gain))
    assert abs(float(gain.mean()) - want) < 4 * error
    assert error < 0.03 * want


@pytest.mark.parametrize(
    ("spectrum", "truncation", "trace"),
    [
        ("paper", 32, 497.8),
        ("paper", 64, 626.6),
        ("paper", 128, 628.3),
        ("paper", 256, 628.3),
        ("reference", 32, 15.9155),
        ("reference", 256, 15.9155),
    ],
)
def test_trace_is_the_sum_of_the_paper_without_the_zero_mode(spectrum, truncation, trace):
    """Tr Q of ten fields = 10 (sum over k_i = -J/2+1..J/2 of lambda_k - 1); dropped modes do not show."""
    eq = equation("nse", edition="converged", truncation=truncation, spectrum=spectrum)
    assert abs(eq.wiener().trace / 10 + 1 - trace) < 6e-5 * trace
    k = torch.arange(1 - truncation // 2, truncation // 2 + 1, dtype=torch.float64)
    line = torch.exp(-0.005 * (4 * math.pi**2 if spectrum == "reference" else 1) * k**2).sum()
    assert abs(eq.wiener().trace / 10 + 1 - float(line) ** 2) < 1e-9 * trace


def test_noise_on_the_grid_has_the_covariance_of_the_paper():
    """Var dW/dt = 10 (sum lambda_k - 1) at every point and E dW(x)dW(y) its Fourier sum; n = 2000, 4.5 errors."""
    eq = equation("nse", spectrum="paper", **SMALL)
    process: Wiener = eq.wiener()
    dw = process.increments(5, range(2000), 1, 1.0)[:, 0]
    k = torch.arange(-7, 9, dtype=torch.float64)
    lam = 10 * torch.exp(-0.005 * (k[:, None] ** 2 + k**2))
    lam[7, 7] = 0
    for dx, dy in ((0, 0), (1, 0), (3, 2), (0, 5)):
        phase = 2 * math.pi * (k[:, None] * dx + k * dy) / 32
        want, variance = float((lam * torch.cos(phase)).sum()), float(lam.sum())
        product = (dw * dw.roll((-dx, -dy), (1, 2)))[:, ::8, ::8]
        error = math.sqrt((variance**2 + want**2) / 2000)
        assert float((product.mean(0) - want).abs().max()) < 4.5 * error


def test_all_truncations_and_numbers_of_fields_use_one_realisation():
    """Ten fields are sqrt(10) times one; inner modes at J = 8 are those at J = 16."""
    many, one = (equation("nse", fields=f, **SMALL).wiener().increments(1, [0], 4, 1.0) for f in (10, 1))
    assert torch.allclose(many, math.sqrt(10) * one, atol=1e-13)
    grid = Grid.unit(32, 2)
    processes = [equation("nse", **{**SMALL, "truncation": j}).wiener(grid) for j in (8, 16)]
    small, large = (grid.transform(process.increments(1, [0], 4, 1.0)) for process in processes)
    inner = grid._along(grid.mode_numbers(0).abs() < 4, 0) & grid._along(grid.mode_numbers(1) < 4, 1)
    assert torch.allclose(small * inner, large * inner, atol=1e-14)


@pytest.mark.parametrize(("boundary", "want"), [("periodic", 0.0150), ("dirichlet", None)])
def test_initial_field_has_its_covariance(boundary, want):
    """E omega_0(x) omega_0(y) = sum scale (|kappa|^2 + 9)^-3 phi(x) phi(y); n = 4000, 4.5 standard errors."""
    eq, n = equation("nse", boundary=boundary, kappa=1.0), 4000
    grid = Grid.unit(8, 2, boundary)
    fixed = equation("nse", boundary=boundary).initial(grid, 0, [0])
    field = (eq.initial(grid, 2, range(n)) - fixed).flatten(1)
    x = torch.stack(torch.meshgrid(*(c.flatten() for c in grid.mesh()), indexing="ij")).flatten(1)
    if boundary == "periodic":
        k = torch.cartesian_prod(torch.arange(-31, 32), torch.arange(-31, 32)).to(torch.float64) * 2 * math.pi
        k = k[k.abs().sum(1) > 0]
        phi = torch.cat((torch.cos(k @ x), torch.sin(k @ x)))
    else:
        k = torch.cartesian_prod(torch.arange(1, 63), torch.arange(1, 63)).to(torch.float64) * math.pi
        phi = 2 * torch.sin(k[:, :1] * x[0]) * torch.sin(k[:, 1:] * x[1])
    lam = (eq.scale * (k.square().sum(1) + 9) ** -3).repeat(len(phi) // len(k))
    covariance = (phi.T * lam) @ phi
    error = ((covariance**2 + torch.outer(covariance.diagonal(), covariance.diagonal())) / n).sqrt()
    assert torch.all((field.T @ field / n - covariance).abs() <= 4.5 * error + 1e-15)
    if want:
        assert abs(math.sqrt(float(covariance[0, 0])) - want) < 5e-5


def test_initial_datum_is_fixed_for_xi_and_varies_otherwise():
    fixed, varying = equation("nse"), equation("nse", kappa=1.0)
    grid = fixed.solving_grid
    a, b = fixed.initial(grid, 0, range(3)), fixed.initial(grid, 9, [5])
    assert torch.equal(a[0], a[2])
    assert torch.equal(a[:1], b)  # whatever the seed
    c = varying.initial(grid, 0, range(3))
    assert float((c[0] - c[1]).std()) > 0.01
    assert float(a.mean((-2, -1)).abs().max()) < 1e-15
    finer = Grid.unit(128, 2)
    assert torch.allclose(varying.initial(finer, 0, range(3))[..., ::2, ::2], c, atol=1e-14)


@pytest.mark.parametrize("edition", ["paper", "converged"])
def test_dirichlet_trace_is_zero(edition):
    eq = equation("nse", boundary="dirichlet", edition=edition, kappa=1.0, **SMALL)
    paths = simulate(eq, 0, range(2), out_dtype=torch.float64)
    for field in (paths.u, paths.dw):
        assert float(field[..., 0, :].abs().max()) == 0
        assert float(field[..., :, 0].abs().max()) == 0
    assert float(paths.u.abs().max()) > 0.01


def test_storage_by_stride_and_by_modes():
    """Stride keeps the values at every fourth point; spectral storage the modes that the stored grid resolves."""
    fine = equation("nse", **{**SMALL, "points": 32, "solve_points": 32})
    stride, modes = (equation("nse", storage=s, **SMALL) for s in ("stride", "spectral"))
    whole, by_stride, by_modes = (simulate(eq, 1, range(2), out_dtype=torch.float64) for eq in (fine, stride, modes))
    for key in ("u0", "u", "dw"):
        assert torch.equal(getattr(by_stride, key), getattr(whole, key)[..., ::4, ::4])
        resized = fine.grid.resize(fine.grid.transform(getattr(whole, key)), modes.grid)
        assert torch.allclose(modes.grid.inverse(resized), getattr(by_modes, key), atol=1e-13)
    with pytest.raises(UserError, match="multiple"):
        equation("nse", points=16, solve_points=40)


def test_stored_noise_is_that_of_the_interval_that_ends_at_the_frame():
    """From rest, without viscosity and f, omega(t_k) - omega(t_{k-1}) = sigma dw[k] + O(sigma^2)."""
    eq = equation("nse", scale=0.0, **{**SMALL, **FREE, "sigma": 1e-9})
    paths = simulate(eq, 2, range(2), out_dtype=torch.float64)
    assert torch.allclose(paths.u.diff(dim=1) / 1e-9, paths.dw[:, 1:], atol=1e-5)


@pytest.mark.parametrize("boundary", ["periodic", "dirichlet"])
def test_a_sample_does_not_depend_on_its_batch(boundary):
    eq = equation("nse", boundary=boundary, kappa=1.0, **{**SMALL, "points": 16})  # batches of 8 on 64 x 64 points
    together = simulate(eq, 1, range(9), out_dtype=torch.float64)
    for rows in ([8], range(3, 6)):
        alone = simulate(eq, 1, rows, out_dtype=torch.float64)
        for key in ("u0", "u", "dw"):
            assert torch.allclose(getattr(alone, key), getattr(together, key)[list(rows)], rtol=0, atol=1e-13)


@pytest.mark.parametrize("boundary", ["periodic", "dirichlet"])
def test_solving_again_from_the_stored_data(boundary):
    eq = full(boundary=boundary, kappa=1.0)
    paths = simulate(eq, 1, range(2), out_dtype=torch.float64)
    assert torch.allclose(solve(eq, paths.u0, paths.dw), paths.u, atol=1e-12)


@pytest.mark.parametrize("edition", ["paper", "converged"])
def test_strong_order_in_time(edition):
    """Order 1 on coupled paths against 512 steps of edition converged: smooth additive noise, 24 x 24 points, n = 8."""
    eq = full(
        points=24,
        solve_points=24,
        truncation=6,
        edition=edition,
        sigma=0.1,
        viscosity=5e-3,
        substeps=1,
        storage="spectral",
        kappa=1.0,
        scale=162.0,
    )
    reference = paths_at(eq, 512, edition="converged")
    exact = final(reference, range(8))
    errors = [(final(paths_at(eq, s), range(8)) - exact).square().mean((-2, -1)) for s in (8, 16, 32, 64)]
    assert_order(slope(torch.stack(errors)), 1.0)


@pytest.mark.parametrize("boundary", ["periodic", "dirichlet"])
@pytest.mark.parametrize("edition", ["paper", "converged"])
def test_samples_of_each_edition_are_finite(edition, boundary):
    eq = equation(
        "nse", edition=edition, boundary=boundary, kappa=1.0, **{**SMALL, "steps": 40, "truncation": 8, "points": 4}
    )
    paths = simulate(eq, 0, range(32))
    assert paths.u.shape == (32, 11, 4, 4)
    assert bool(torch.isfinite(paths.u).all())


@pytest.mark.slow
@pytest.mark.parametrize("boundary", ["periodic", "dirichlet"])
@pytest.mark.parametrize("edition", ["paper", "converged"])
def test_default_samples_are_finite(edition, boundary):
    paths = simulate(equation("nse", edition=edition, boundary=boundary), 0, range(32))
    assert bool(torch.isfinite(paths.u).all())


def test_a_warning_only_for_noise_beyond_the_grid():
    for spectrum in ("paper", "reference"):
        equation("nse", spectrum=spectrum).wiener()
    for spectrum, aliased in (("paper", True), ("reference", False)):  # of the latter |k| <= 12 is all that matters
        eq = equation("nse", truncation=128, spectrum=spectrum)
        assert bool(eq.aliasing_message()) is aliased
    with pytest.warns(AliasingWarning):
        equation("nse", truncation=128, spectrum="paper").wiener()
