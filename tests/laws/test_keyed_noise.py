"""Noise from secret keys has the law of ordinary noise; keys, problems and samples are independent of each other."""

from __future__ import annotations

import dataclasses
import hmac
import math

import pytest
import torch

from spdebench.equations import equation
from spdebench.noise import KeyedSeed, PartialNoise
from spdebench.noise.keyed import derived
from spdebench.noise.stream import normal_pairs, sample_states
from spdebench.solvers import seen_noise, simulate

SECRET = bytes(range(32))
EQ = equation("phi41", points=32, frames=8, steps=8, truncation=16, kappa=0.3)
SEED = KeyedSeed.of(SECRET, "phi41")


def pairs(seed: KeyedSeed, purpose: str = "noise", samples: int = 400) -> torch.Tensor:
    return normal_pairs(sample_states(seed, purpose, range(samples), "cpu"), torch.arange(8), torch.arange(16))


def test_a_state_is_the_hmac_that_the_formula_says():
    state = sample_states(SEED, "noise", [3], "cpu").at(torch.tensor([5]))
    key = hmac.new(SECRET, b"spdebench stream 1\x00seen\x00", "sha256").digest()
    expected = hmac.new(key, b"phi41\x00noise\x003\x000\x005\x00", "sha256").digest()[:8]
    assert int(state) == int.from_bytes(expected, "little", signed=True)
    assert derived(SECRET, "ab", "c") != derived(SECRET, "a", "bc")


def test_keyed_numbers_are_normal_and_uncorrelated():
    """51200 pairs: means, variances, fourth moments, correlations of neighbours in each direction; 4.5 errors."""
    z = torch.view_as_real(pairs(SEED))
    n = z.numel()
    assert abs(float(z.mean())) < 4.5 / math.sqrt(n)
    assert abs(float(z.square().mean()) - 1) < 4.5 * math.sqrt(2 / n)
    assert abs(float(z.pow(4).mean()) - 3) < 4.5 * math.sqrt(96 / n)
    for axis in range(4):
        a, b = z.narrow(axis, 0, z.shape[axis] - 1), z.narrow(axis, 1, z.shape[axis] - 1)
        assert abs(float((a * b).mean())) < 4.5 / math.sqrt(a.numel()), axis


@pytest.mark.parametrize(
    "other",
    [KeyedSeed.of(SECRET, "phi42"), KeyedSeed.of(SECRET, "phi41 seen 4"), KeyedSeed.of(bytes(32), "phi41")],
    ids=["problem", "law", "secret"],
)
def test_other_problems_and_secrets_are_independent(other):
    a, b = (torch.view_as_real(pairs(seed)) for seed in (SEED, other))
    assert abs(float((a * b).mean())) < 4.5 / math.sqrt(a.numel())
    c = torch.view_as_real(pairs(other, "initial"))
    assert abs(float((a * c).mean())) < 4.5 / math.sqrt(a.numel())


def test_increments_have_the_variance_of_the_noise():
    """Var dW/dt = J + 1 at every point (J = 16, all modes resolved); 400 samples, 8 intervals, 4.5 errors."""
    dw = simulate(EQ, SEED, range(400)).dw[:, 1:].double()
    draws, expected = 400 * 8 * (EQ.truncation + 1), EQ.truncation + 1
    variance = float(dw.square().mean()) / (EQ.horizon / EQ.frames)
    assert abs(variance - expected) < 4.5 * expected * math.sqrt(2 / draws)


def test_a_sample_does_not_depend_on_the_batch_and_dyadic_steps_agree():
    whole, part = simulate(EQ, SEED, range(6)), simulate(EQ, SEED, [4, 1])
    assert torch.equal(whole.u[[4, 1]], part.u) and torch.equal(whole.dw[[4, 1]], part.dw)
    fine = simulate(EQ.replace(steps=16), SEED, range(6)).dw
    assert torch.allclose(fine, whole.dw, atol=1e-6)


def test_the_published_part_says_nothing_about_the_unseen_key():
    """Another unseen key leaves u0 and the seen noise alone, to the bit, and makes independent members."""
    other = dataclasses.replace(SEED, unseen=bytes(32))
    assert torch.equal(seen_noise(EQ, SEED, range(200), 4), seen_noise(EQ, other, range(200), 4))
    first, second = (simulate(EQ, seed, range(200), partial=PartialNoise(4, 1)) for seed in (SEED, other))
    assert torch.equal(first.u0, second.u0)
    known = seen_noise(EQ, SEED, range(200), 4).double()
    rest = [paths.dw.double() - known for paths in (first, second)]
    products = (rest[0] * rest[1])[:, 1:].mean((1, 2))
    assert abs(float(products.mean())) < 4.5 * float(products.std()) / math.sqrt(200)
    dt, unseen = EQ.horizon / EQ.frames, EQ.truncation - 4
    for each in rest:
        variance = float(each[:, 1:].square().mean()) / dt
        assert abs(variance - unseen) < 4.5 * unseen * math.sqrt(2 / (200 * 8 * unseen))


def test_no_member_repeats_the_functions_that_follow_from_the_seen_ones():
    """Who inverts the stream along the modes of a node finds the ordinary sample's unseen functions: no member's."""
    known = seen_noise(EQ, SEED, range(200), 4).double()
    inverted = simulate(EQ, SEED, range(200)).dw.double() - known
    member = simulate(EQ, SEED, range(200), partial=PartialNoise(4, 1)).dw.double() - known
    products = (inverted * member)[:, 1:].mean((1, 2))
    assert abs(float(products.mean())) < 4.5 * float(products.std()) / math.sqrt(200)
    assert "key" not in repr(SEED) and repr(SEED.seen) not in repr(SEED)
