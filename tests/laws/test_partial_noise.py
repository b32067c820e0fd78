"""Noise seen in part: the seen functions keep their bits, the others are drawn anew, and the law is the same."""

from __future__ import annotations

import math

import pytest
import torch

from spdebench.challenge.manifest import ChallengeProblem
from spdebench.challenge.truth import drawn_inputs
from spdebench.data.generate import generate
from spdebench.data.identity import DatasetSpec
from spdebench.equations import equation, identity
from spdebench.errors import UserError
from spdebench.noise import KeyedSeed, PartialNoise, make_basis
from spdebench.solvers import seen_noise, simulate
from spdebench.tasks import Task

SMALL = {"points": 32, "frames": 8, "steps": 8, "truncation": 16}
CASES = [
    ("phi41", {}, 4),
    ("phi41", {"edition": "converged"}, 4),
    ("phi41", {"boundary": "dirichlet"}, 5),
    ("phi41", {"basis": "haar"}, 3),
    ("wave", {"frames": 4}, 6),
    ("phi42", {"points": 16, "truncation": 8, "horizon": 0.01}, 2),
]


def build(name: str, fields: dict) -> object:
    return equation(name, **{**SMALL, **fields})


@pytest.mark.parametrize(("name", "fields", "seen"), CASES)
def test_member_zero_and_full_sight_are_the_ordinary_sample(name, fields, seen):
    eq = build(name, fields)
    plain = simulate(eq, 3, range(4))
    for partial in (PartialNoise(seen, 0), PartialNoise(eq.truncation, 5), PartialNoise(eq.truncation)):
        other = simulate(eq, 3, range(4), partial=partial)
        assert torch.equal(plain.u, other.u) and torch.equal(plain.dw, other.dw)
    assert torch.equal(seen_noise(eq, 3, range(4), eq.truncation), plain.dw)
    assert not seen_noise(eq, 3, range(4), 0).any()


def test_without_seen_all_modes_are_stored_also_those_beyond_J():
    """With resolve_mollifier the noise of kpz has harmonics beyond J/2, which a truncation J leaves out."""
    eq = equation("kpz", points=64, frames=4, steps=4, truncation=16, sigma=1, kappa=0.1, resolve_mollifier=True)
    seed = KeyedSeed.of(bytes(32), "kpz")
    paths = simulate(eq, seed, range(3))
    assert float((seen_noise(eq, seed, range(3), 16) - paths.dw).norm() / paths.dw.norm()) > 0.2
    assert torch.equal(seen_noise(eq, seed, range(3), None), paths.dw)
    u0, dw = drawn_inputs(ChallengeProblem(name="kpz", equation=identity.to_dict(eq), n=3, sha256="0" * 64), seed)
    assert torch.equal(torch.from_numpy(u0), paths.u0) and torch.equal(torch.from_numpy(dw), paths.dw)


def test_J_is_refused_where_the_noise_has_modes_beyond_it(tmp_path):
    eq = equation("kpz", points=64, frames=4, steps=4, truncation=16, kappa=0.1, resolve_mollifier=True)
    for members in (1, 4):
        assert DatasetSpec(equation=eq, n=40, seen=14, members=members).seen == 14
        with pytest.raises(UserError, match="seen=J=16 is not all of the noise"):
            DatasetSpec(equation=eq, n=40, seen=16, members=members)
    with pytest.raises(UserError, match="seen=J=16 is not all of the noise"):
        Task(generate(eq, n=20, out=tmp_path), seen=16)


@pytest.mark.parametrize(("name", "fields", "seen"), CASES)
def test_all_members_have_the_same_seen_noise(name, fields, seen):
    """What a member adds to the seen part lies in the other functions: its inner products with the seen ones vanish."""
    eq = build(name, {**fields, "kappa": 0.1})
    known = seen_noise(eq, 3, range(4), seen).double()
    members = [simulate(eq, 3, range(4), partial=PartialNoise(seen, m)) for m in (0, 1, 2)]
    for a, b in ((0, 1), (1, 2)):
        assert not torch.allclose(members[a].dw, members[b].dw)
        assert torch.equal(members[a].u0, members[b].u0)  # the initial datum is given
    for member in members:
        rest = member.dw.double() - known
        inner = (rest * known).flatten(2).sum(2).abs()
        size = rest.flatten(2).norm(dim=2) * known.flatten(2).norm(dim=2)
        assert float((inner - 1e-5 * size).max()) <= 1e-12


def test_seen_noise_is_the_projection_where_nothing_aliases():
    eq = build("phi41", {})
    known, dw = seen_noise(eq, 1, range(3), 4), simulate(eq, 1, range(3)).dw
    coefficients = torch.fft.rfft(dw.double())
    coefficients[..., 3:] = 0
    assert torch.allclose(torch.fft.irfft(coefficients, n=32), known.double(), atol=1e-6)


def test_members_are_independent_draws_of_the_unseen_law():
    """Var dW/dt of the unseen functions is (J - K)/L at every point; members are uncorrelated. 1600 draws, 4 errors."""
    eq = build("phi41", {})
    known = seen_noise(eq, 0, range(200), 4).double()
    rest = torch.stack(
        [simulate(eq, 0, range(200), partial=PartialNoise(4, m)).dw.double() - known for m in range(1, 9)]
    )[:, :, 1:]
    dt = eq.horizon / eq.frames
    variance, draws = rest.square().mean() / dt, 8 * 200 * 8
    expected = eq.truncation - 4
    assert abs(float(variance) - expected) < 4 * expected * math.sqrt(2 / (draws * expected))
    products = (rest[0] * rest[1]).mean((1, 2))
    assert abs(float(products.mean())) < 4 * float(products.std()) / math.sqrt(200)


def test_the_mean_of_a_linear_equation_is_the_solution_with_the_seen_noise():
    """E[u | seen] solves the linear equation with the seen noise alone (kpz without coupling)."""
    eq = equation("kpz", **SMALL, coupling=0.0, sigma=1.0, renormalisation="none", edition="paper")
    samples = range(3)
    point = simulate(eq, 0, samples, partial=PartialNoise(4), out_dtype=torch.float64).u
    members = torch.stack(
        [simulate(eq, 0, samples, partial=PartialNoise(4, m), out_dtype=torch.float64).u for m in range(1, 81)]
    )
    error = (members.mean(0) - point).abs()
    assert float((error / (members.std(0) / math.sqrt(80) + 1e-12)).max()) < 5
    assert float((members[0] - point).abs().max()) > 0.01


def test_samples_do_not_depend_on_their_batch():
    eq = build("phi41", {})
    whole = simulate(eq, 0, range(6), partial=PartialNoise(4, 2)).u
    assert torch.equal(whole[3:5], simulate(eq, 0, [3, 4], partial=PartialNoise(4, 2)).u)


def test_each_sample_may_have_its_own_member_and_member_0_is_the_sample():
    eq = build("phi41", {})
    mixed = simulate(eq, 0, [0, 0, 1, 1], partial=PartialNoise(4, (0, 2, 1, 0)))
    for row, (sample, member) in enumerate([(0, 0), (0, 2), (1, 1), (1, 0)]):
        alone = simulate(eq, 0, [sample], partial=PartialNoise(4, member))
        assert torch.equal(mixed.dw[row], alone.dw[0]) and torch.equal(mixed.u[row], alone.u[0])


@pytest.mark.parametrize(
    ("name", "dim", "truncation", "seen", "count"),
    [
        ("fourier", 1, 8, 4, 5),
        ("fourier", 2, 4, 2, 9),
        ("sine", 1, 7, 3, 3),
        ("sine", 2, 5, 2, 4),
        ("haar", 1, 8, 5, 5),
        ("haar", 1, 8, 0, 0),
    ],
)
def test_a_smaller_truncation_keeps_its_own_functions(name, dim, truncation, seen, count):
    basis = make_basis(name, truncation, dim)
    kept = basis.kept_by(seen)
    assert int(kept.sum()) == count == (make_basis(name, seen, dim).functions if seen else 0)


def test_a_wrong_truncation_is_one_line():
    with pytest.raises(UserError, match="J is even; try 4"):
        make_basis("fourier", 8).kept_by(3)
    with pytest.raises(UserError, match="must not be negative"):
        make_basis("sine", 8).kept_by(-1)
