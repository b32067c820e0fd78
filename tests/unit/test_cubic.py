"""The cubic drift, by itself and as the explicit half of a linearly implicit step."""

from __future__ import annotations

import pytest
import torch

import spdebench as sb
from spdebench.equations.cubic import Cubic
from spdebench.solvers.cubic import CubicStep

U = torch.linspace(-2, 2, 2 * 8, dtype=torch.float64).reshape(2, 8)


@pytest.mark.parametrize("linear", [0.0, 3.0])
def test_the_drift(linear):
    torch.testing.assert_close(Cubic(linear, -0.5)(U), linear * U - 0.5 * U**3, rtol=1e-14, atol=1e-14)


def test_growth_of_its_interval_cube_and_noise_and_u_stays():
    block = torch.linspace(0, 1, 2 * 3 * 8, dtype=torch.float64).reshape(2, 3, 8)
    step, kept = CubicStep([1.5, 0.5], -0.1, 0.25), U.clone()
    for n, growth in enumerate((1.5, 0.5)):
        dw = block[:, n]  # one time of a block: its rows are not side by side
        torch.testing.assert_close(step(U, dw, n), growth * U - 0.1 * U**3 + 0.25 * dw, rtol=1e-14, atol=1e-14)
    assert torch.equal(U, kept)


@pytest.mark.parametrize("changes", [{"mass": 3.0}, {"boundary": "dirichlet"}, {"sigma": 0.0}, {"substeps": 3}])
def test_a_drift_that_hides_its_numbers_gives_the_same_path(changes, monkeypatch):
    eq = sb.equation("phi41", kappa=0.1, points=16, truncation=8, **changes)
    known = sb.simulate(eq, 0, range(3), out_dtype=torch.float64).u
    drift = type(eq).drift
    monkeypatch.setattr(type(eq), "drift", lambda self, *where: lambda u: drift(self, *where)(u))
    hidden = sb.simulate(eq, 0, range(3), out_dtype=torch.float64).u
    torch.testing.assert_close(known, hidden, rtol=0, atol=1e-13)
