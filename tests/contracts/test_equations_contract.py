"""What every registered equation owes: a formula, complete specs in both editions, finite paths, causality."""

from __future__ import annotations

import inspect
import warnings

import pytest
import torch

from spdebench.equations import EQUATIONS, Equation
from spdebench.errors import AliasingWarning
from spdebench.solvers import SCHEMES, simulate, solve

NAMES = list(EQUATIONS)
ONE_D = [n for n in NAMES if EQUATIONS[n].dim == 1]
COARSE = {"points": 8, "truncation": 4, "frames": 10, "steps": 10}
"""In two and three dimensions: few points and a horizon that is shorter by the steps left out."""


def small(name: str, points: int = 32, **fields: object) -> Equation:
    """The default spec on a small grid; in more than one dimension for few steps of the usual length."""
    cls = EQUATIONS[name]
    if cls.dim == 1:
        return cls(**{"points": points, "truncation": 8, **fields})
    usual = cls()
    return cls(**{**COARSE, "horizon": usual.horizon * 10 / usual.steps, **fields})


def variants(name: str) -> list[Equation]:
    """The kinds that an equation offers: datum, boundary, basis, noise, level of noise, renormalisation."""
    cls = EQUATIONS[name]
    fields = {"kappa": [0.1], "sigma": [1.0]}
    fields["boundary"] = [b for b in cls.boundaries if b != "periodic"]
    fields["noise"] = [n for n in cls.noises if n != cls().noise]
    fields["basis"] = [b for b in cls.bases if b == "haar"]
    fields |= {"coupling": [0.05]} if name == "kpz" else {}
    fields |= {"renormalisation": ["none", "exact"]} if hasattr(cls, "renormalisation") else {}
    if name == "kdv":  # nothing dissipates the energy that the noise brings
        fields["sigma"] = [0.2]
    make = small if cls.dim > 1 else lambda _, **values: cls(**values)
    made = [make(name), *(make(name, **{key: value}) for key, values in fields.items() for value in values)]
    return [eq.replace(truncation=8) if eq.caution() else eq for eq in made]  # an equation at small J only


@pytest.mark.parametrize("name", NAMES)
def test_declares_what_others_ask_for(name):
    eq = EQUATIONS[name]()
    assert (inspect.getdoc(type(eq)) or "").splitlines()[0]
    assert "=" in eq.formula and eq.title
    assert set(eq.schemes) == {"paper", "converged"}
    assert all(scheme in SCHEMES for scheme in eq.schemes.values())
    assert eq.rule is None or any(m.noise for m in eq.rule.monomials)
    assert eq.symbol(eq.grid).shape == eq.grid.spectral_shape
    assert float(eq.symbol(eq.grid).real.max()) <= 1e-9  # the linear part does not grow


@pytest.mark.parametrize("edition", ["paper", "converged"])
@pytest.mark.parametrize("name", NAMES)
def test_paths_are_finite_and_of_order_1(name, edition):
    for eq in variants(name):
        one = eq.replace(edition=edition)
        if edition == "converged":
            one = one.replace(substeps=max(1, one.substeps // 4))
        u = simulate(one, 0, range(32 if one.dim == 1 else 4)).u  # raises if anything is not finite
        assert float(u.abs().max()) < 20


@pytest.mark.slow
@pytest.mark.parametrize("truncation", [32, 64, 128, 256])
@pytest.mark.parametrize("edition", ["paper", "converged"])
@pytest.mark.parametrize("name", ONE_D)
def test_paths_of_1200_samples_are_finite(name, edition, truncation):
    """On one core the 32 cases of the edition ``paper`` take about 5 minutes in all. Those of ``converged``, with up to
    3200 steps on 512 points, take from 10 s (heat) to 6 minutes each, and kdv with J=256 takes 13 minutes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AliasingWarning)
        for eq in variants(name):
            one = eq.replace(edition=edition, truncation=truncation)
            if one.caution():
                continue
            for start in range(0, 1200, 240):
                assert float(simulate(one, 0, range(start, start + 240)).u.abs().max()) < 20


@pytest.mark.parametrize("name", NAMES)
def test_editions_share_their_path_and_stay_close(name):
    eq = small(name, kappa=0.1)
    a = simulate(eq, 5, range(4), out_dtype=torch.float64)
    b = simulate(eq.replace(edition="converged"), 5, range(4), out_dtype=torch.float64)
    assert torch.allclose(a.dw, b.dw, atol=1e-12)
    gap = (a.u - b.u)[:, 1:].flatten(1).norm(dim=1) / b.u[:, 1:].flatten(1).norm(dim=1)
    assert 0 < float(gap.max()) < 0.15


@pytest.mark.parametrize("name", NAMES)
def test_noise_of_a_frame_acts_after_the_frame_before_it(name):
    """dw[k] belongs to the interval that ends at frame k: changing the noise after t_k leaves u up to t_k alone."""
    eq = small(name)
    paths = simulate(eq, 1, range(2), out_dtype=torch.float64)
    other = paths.dw.clone()
    k = eq.frames // 2
    other[:, k + 1 :] += 0.01 * torch.sin(torch.arange(eq.points) * 0.3)
    before, after = solve(eq, paths.u0, paths.dw), solve(eq, paths.u0, other)
    assert torch.equal(before[:, : k + 1], after[:, : k + 1])
    assert (before[:, k + 1] - after[:, k + 1]).abs().max() > 1e-8
