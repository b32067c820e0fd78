"""Laws that `benchmarks/evidence.py` uses."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import pytest
import torch

from spdebench.equations import EQUATIONS
from spdebench.solvers import make_scheme

FILE = Path(__file__).parents[2] / "benchmarks" / "evidence.py"


@pytest.fixture
def evidence(monkeypatch):
    """The module; what it declares is forgotten afterwards."""
    list(EQUATIONS)
    monkeypatch.setattr(EQUATIONS, "_items", dict(EQUATIONS._items))
    monkeypatch.syspath_prepend(FILE.parent)
    spec = importlib.util.spec_from_file_location("evidence", FILE)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "evidence", module)
    spec.loader.exec_module(module)
    return module


def test_crank_nicolson_leaves_these_shares_of_the_noise(evidence):
    """|1/(1 - z)|^2 = 1/(1 + (omega dt/2)^2), k = 1..8, dispersion 0.1, dt 0.0025; central differences of 128 points
    give the shares that were found in the authors' code."""
    eq = evidence.AuthorsKdV(dispersion=0.1, steps=200)
    dt = eq.horizon / eq.steps
    gain = make_scheme(eq, dt).damping[1:9] / dt
    assert torch.allclose(gain.abs() ** 2, evidence.damping(eq.symbol(eq.grid)[1:9].abs(), dt), rtol=1e-12)
    differences = eq.grid.derivative(0, difference=True) * eq.grid.laplacian(difference=True)
    shares = evidence.damping(0.1 * differences[1:9].abs(), dt)
    found = torch.tensor([0.999, 0.942, 0.59, 0.21, 0.064, 0.023, 0.009, 0.004], dtype=torch.float64)
    assert torch.allclose(shares, found, rtol=0, atol=5e-3), shares
    assert torch.allclose(shares[4:], found[4:], rtol=0, atol=5e-4), shares


def test_damped_noise_has_the_power_that_is_left(evidence):
    """Tr Q = 1 + 2 sum_{k=1}^{64} 1/(1 + (omega_k dt/2)^2) = 4.186 for omega_k = 0.1 (2 pi k)^3, dt 0.01."""
    omega = 0.1 * (2 * math.pi * torch.arange(1, 65, dtype=torch.float64)) ** 3
    wanted = 1 + 2 * float(evidence.damping(omega, 0.01).sum())
    assert wanted == pytest.approx(4.186, abs=5e-4)
    assert evidence.DampedKdV(noise="cylindrical").wiener().trace == pytest.approx(wanted, rel=1e-12)


def test_noise_of_the_mean_only_moves_the_solution(evidence, tmp_path):
    """u(t, x) = m(t) + v(t, x + 6 int_0^t m) with v the same for all paths, if all waves but k = 0 have no noise."""
    eq = evidence.DampedKdV(points=16, truncation=2, damping_step=1e6)
    task = evidence.Task(evidence.generate(eq, n=20, out=tmp_path))
    assert evidence.moving_mean(task) < 1e-6
    assert float((task.test.u - task.train.u.mean(0)).std()) > 0.01


def test_response_of_the_lattice_gives_the_known_variance(evidence):
    """E X(T)^2 = dt/eps^3 / M^3 sum_k sum_s K(T-s, k)^2 = 0.96805 for phi43's scheme, zero mode included."""
    eq = evidence.Phi43()
    response = sys.modules["sizes"].heat_response(eq, 1)
    dt, eps = eq.horizon / eq.steps, 2 / eq.points
    total = float((response**2 * eq.grid.multiplicity().flatten()).sum())
    assert total * dt / eps**3 / eq.points**3 == pytest.approx(0.96805, abs=5e-6)


def test_no_choice_of_few_numbers_beats_the_unseen_share(evidence):
    """min over P of rank w of |K (1 - P)|^2 / |K|^2 is the sum of the smallest eigenvalues of K'K; all of them: 0."""
    torch.manual_seed(0)
    kernel = torch.randn(40, 12, dtype=torch.float64)
    bound = evidence.unseen(kernel.T @ kernel, 5)
    for _ in range(20):
        seen = torch.linalg.qr(torch.randn(12, 5, dtype=torch.float64))[0]
        assert float((kernel - kernel @ seen @ seen.T).norm() / kernel.norm()) >= bound
    best = torch.linalg.svd(kernel)[2][:5].T
    assert float((kernel - kernel @ best @ best.T).norm() / kernel.norm()) == pytest.approx(bound)
    assert evidence.unseen(kernel.T @ kernel, 12) == 0


def test_an_absolute_amount_freezes_slow_progress(evidence):
    """1, 0.5, then steps of 0.01: an amount of 0.1 keeps 0.5, unless patience lasts for ten of them."""
    errors = [1.0, 0.5, *(0.5 - 0.01 * k for k in range(1, 30))]
    assert evidence.kept_by_amount(errors, 0.1, 5) == 0.5
    assert evidence.kept_by_amount(errors, 0.1, 11) == pytest.approx(0.3)  # and 0.4 before it
    assert evidence.kept_by_amount(errors, 0.0, 5) == min(errors)


def test_authors_phi42_has_the_variance_that_was_found(evidence):
    """E X^2 = 1.750e-2 at t = 0.025 with 64 functions per axis, aliased on 31 points; nearly so one frame before."""
    _, _, linear = evidence.authors_phi42(24, 64)
    assert float(linear[:, -1].square().mean()) == pytest.approx(1.75e-2, rel=0.06)


def test_sines_on_a_circle_are_the_series_at_the_points(evidence):
    """Also where 24 sines alias on 16 points."""
    basis, grid = evidence.SinesOnCircle(24), evidence.Phi41(points=16, truncation=8).grid
    z = torch.randn(basis.pairs, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    k, x = torch.arange(1, 25, dtype=torch.float64), grid.coordinates(0)
    wanted = (math.sqrt(2) * z.flatten()[:, None] * torch.sin(math.pi * k[:, None] * x)).sum(0)
    pairs = torch.view_as_complex(z)
    assert torch.allclose(basis.physical(pairs, grid), wanted, atol=1e-12)
    assert torch.allclose(grid.inverse(basis.spectral(pairs, grid)), wanted, atol=1e-12)
