"""What every declared equation owes: a formula, whole specs in both editions, finite paths, coupling, a rule."""

from __future__ import annotations

import inspect
import warnings

import pytest
import torch

from spdebench.equations import EQUATIONS, Equation
from spdebench.errors import FoldingWarning
from spdebench.solvers import SCHEMES, simulate

NAMES = list(EQUATIONS)
ONE_D = [n for n in NAMES if EQUATIONS[n].dim == 1]


def variants(name: str) -> list[Equation]:
    """The kinds of the paper's Table 2 that an equation offers."""
    cls = EQUATIONS[name]
    out = [cls(), cls(kappa=0.1)]
    if "dirichlet" in cls.boundaries:
        out.append(cls(boundary="dirichlet"))
    if "haar" in cls.bases:
        out.append(cls(basis="haar"))
    if "q_wiener" in cls.noises:
        out.append(cls(noise="cylindrical"))
    if name != "wave":
        out.append(cls(sigma=1.0) if name != "kdv" else cls(points=256))
    if name == "kpz":
        out += [cls(coupling=0.05), cls(renormalisation="exact"), cls(renormalisation="none")]
    return out


@pytest.mark.parametrize("name", NAMES)
def test_declares_what_others_ask_for(name):
    eq = EQUATIONS[name]()
    assert (inspect.getdoc(type(eq)) or "").splitlines()[0]
    assert "=" in eq.formula
    assert set(eq.schemes) == {"paper", "converged"}
    assert all(scheme in SCHEMES for scheme in eq.schemes.values())
    assert eq.rule.monomials and sum(m.noise for m in eq.rule.monomials) == 1
    assert eq.symbol(eq.grid).shape == eq.grid.spectral_shape
    assert float(eq.symbol(eq.grid).real.max()) <= 1e-9  # the linear part does not grow


@pytest.mark.parametrize("edition", ["paper", "converged"])
@pytest.mark.parametrize("name", ONE_D)
def test_default_specs_are_finite_for_32_samples(name, edition):
    for eq in variants(name):
        one = eq.replace(edition=edition)
        if edition == "converged":
            one = one.replace(substeps=max(1, one.substeps // 4))
        u = simulate(one, 0, range(32)).u  # raises if anything is not finite
        assert float(u.abs().max()) < 20


@pytest.mark.slow
@pytest.mark.parametrize("truncation", [32, 64, 128, 256])
@pytest.mark.parametrize("edition", ["paper", "converged"])
@pytest.mark.parametrize("name", ONE_D)
def test_default_specs_are_finite_for_1200_samples(name, edition, truncation):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FoldingWarning)
        for eq in variants(name):
            one = eq.replace(edition=edition, truncation=truncation)
            for start in range(0, 1200, 240):
                assert float(simulate(one, 0, range(start, start + 240)).u.abs().max()) < 20


@pytest.mark.parametrize("name", ONE_D)
def test_editions_share_their_path_and_stay_close(name):
    cls = EQUATIONS[name]
    eq = cls(points=32, truncation=8, kappa=0.1)
    a = simulate(eq, 5, range(4), out_dtype=torch.float64)
    b = simulate(eq.replace(edition="converged"), 5, range(4), out_dtype=torch.float64)
    assert torch.allclose(a.dw, b.dw, atol=1e-12)
    gap = (a.u - b.u)[:, 1:].flatten(1).norm(dim=1) / b.u[:, 1:].flatten(1).norm(dim=1)
    assert 0 < float(gap.max()) < 0.15


@pytest.mark.parametrize("name", ONE_D)
def test_noise_of_a_frame_acts_after_the_frame_before_it(name):
    """dw[k] belongs to the interval that ends at frame k: changing the noise after t_k leaves u up to t_k alone."""
    from spdebench.solvers import solve

    eq = EQUATIONS[name](points=32, truncation=8)
    paths = simulate(eq, 1, range(2), out_dtype=torch.float64)
    other = paths.dw.clone()
    k = eq.frames // 2
    other[:, k + 1 :] += 0.01 * torch.sin(torch.arange(32) * 0.3)
    before, after = solve(eq, paths.u0, paths.dw), solve(eq, paths.u0, other)
    assert torch.equal(before[:, : k + 1], after[:, : k + 1])
    assert (before[:, k + 1] - after[:, k + 1]).abs().max() > 1e-8
