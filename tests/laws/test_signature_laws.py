"""The algebra and the probability of signatures."""

from __future__ import annotations

import itertools
import math
from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spdebench.signatures import log_signature, signature, with_time, words

DEPTH = 4


def path(length: int, channels: int, seed: int) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(length, channels, generator=draw, dtype=torch.float64).cumsum(0) / length**0.5


def levels(flat: torch.Tensor, d: int, depth: int) -> list[torch.Tensor]:
    """Split a signature into its levels, with the empty word in front."""
    return [torch.ones(1, dtype=flat.dtype), *flat.split([d**k for k in range(1, depth + 1)])]


def product(a: list[torch.Tensor], b: list[torch.Tensor]) -> list[torch.Tensor]:
    """Tensor product of two truncated series."""
    return [sum(torch.outer(a[j], b[k - j]).flatten() for j in range(k + 1)) for k in range(len(a))]  # type: ignore[misc]


def shuffles(a: tuple[int, ...], b: tuple[int, ...]) -> list[tuple[int, ...]]:
    out = []
    for places in combinations(range(len(a) + len(b)), len(a)):
        first, second = iter(a), iter(b)
        out.append(tuple(next(first) if k in places else next(second) for k in range(len(a) + len(b))))
    return out


cases = st.tuples(st.integers(2, 6), st.integers(1, 3), st.integers(0, 10_000))


@given(cases)
@settings(max_examples=20, deadline=None)
def test_a_straight_line_is_an_exponential(case) -> None:
    length, d, seed = case
    ends = path(2, d, seed)
    line = ends[0] + torch.linspace(0, 1, length, dtype=torch.float64)[:, None] * (ends[1] - ends[0])
    x = ends[1] - ends[0]
    expected = torch.stack([math.prod(x[i] for i in w) / math.factorial(len(w)) for w in words(d, DEPTH)])
    torch.testing.assert_close(signature(line, DEPTH), expected, rtol=1e-10, atol=1e-12)


@given(cases)
@settings(max_examples=20, deadline=None)
def test_chen_joins_paths_by_the_tensor_product(case) -> None:
    length, d, seed = case
    first, second = path(length, d, seed), path(length + 2, d, seed + 1)
    second = second - second[0] + first[-1]
    joined = signature(torch.cat([first, second[1:]]), DEPTH)
    expected = product(*(levels(signature(x, DEPTH), d, DEPTH) for x in (first, second)))
    torch.testing.assert_close(joined, torch.cat(expected[1:]), rtol=1e-9, atol=1e-12)


@given(cases)
@settings(max_examples=20, deadline=None)
def test_products_of_terms_are_sums_over_shuffles(case) -> None:
    length, d, seed = case
    terms = dict(zip(words(d, DEPTH), signature(path(length, d, seed), DEPTH), strict=True))
    letters = list(itertools.product(range(d), repeat=2))
    for a, b in itertools.product(letters, letters):
        torch.testing.assert_close(terms[a] * terms[b], sum(terms[w] for w in shuffles(a, b)), rtol=1e-9, atol=1e-12)


@given(cases)
@settings(max_examples=20, deadline=None)
def test_the_reversed_path_is_the_inverse(case) -> None:
    length, d, seed = case
    x = path(length, d, seed)
    there, back = (levels(signature(y, DEPTH), d, DEPTH) for y in (x, x.flip(0)))
    assert torch.cat(product(there, back)[1:]).abs().max() < 1e-12


@given(cases, st.floats(-5, 5))
@settings(max_examples=20, deadline=None)
def test_translation_and_repeated_points_change_nothing(case, shift: float) -> None:
    length, d, seed = case
    x = path(length, d, seed)
    torch.testing.assert_close(signature(x + shift, DEPTH), signature(x, DEPTH), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(signature(x.repeat_interleave(2, 0), DEPTH), signature(x, DEPTH), rtol=1e-9, atol=1e-12)


def test_the_log_signature_is_the_logarithm_at_depth_two() -> None:
    x = path(8, 4, 3)
    one, two = signature(x, 2).split([4, 16])
    logarithm = (two - torch.outer(one, one).flatten() / 2).reshape(4, 4)
    torch.testing.assert_close(logarithm, -logarithm.T)
    i, j = torch.triu_indices(4, 4, 1)
    torch.testing.assert_close(log_signature(x), torch.cat([one, logarithm[i, j]]))


def test_the_area_of_a_circle() -> None:
    turn = torch.linspace(0, 2 * math.pi, 20_001, dtype=torch.float64)
    circle = torch.stack([torch.cos(turn), torch.sin(turn)], dim=1)
    torch.testing.assert_close(log_signature(circle)[2], torch.tensor(math.pi, dtype=torch.float64), rtol=1e-6, atol=0)


def gaussian_step(h: float) -> list[torch.Tensor]:
    """E[exp(z)], z = (h, sqrt(h) xi): E xi^c = (c-1)!! for even c."""
    out = [torch.ones(1, dtype=torch.float64)]
    for k in range(1, DEPTH + 1):
        row = []
        for word in itertools.product((0, 1), repeat=k):
            c = sum(word)
            moment = 0.0 if c % 2 else math.prod(range(c - 1, 0, -2))
            row.append(h ** (k - c) * h ** (c / 2) * moment / math.factorial(k))
        out.append(torch.tensor(row, dtype=torch.float64))
    return out


def brownian_expectation(steps: int) -> torch.Tensor:
    """The n-th tensor power of the expectation of one step (independent increments)."""
    total = [torch.ones(1, dtype=torch.float64)] + [torch.zeros(2**k, dtype=torch.float64) for k in range(1, DEPTH + 1)]
    for _ in range(steps):
        total = product(total, gaussian_step(1 / steps))
    return torch.cat(total[1:])


def test_expected_signature_of_a_piecewise_linear_brownian_path() -> None:
    """40 000 paths of 20 steps: all 30 terms within 4 standard errors of the exact expectation."""
    steps, count = 20, 40_000
    draw = torch.Generator().manual_seed(7)
    walk = torch.randn(count, steps, 1, generator=draw, dtype=torch.float64).cumsum(1) / steps**0.5
    walk = torch.cat([torch.zeros(count, 1, 1, dtype=torch.float64), walk], dim=1)
    terms = signature(with_time(walk), DEPTH)
    error = terms.std(0) / count**0.5
    gap = (terms.mean(0) - brownian_expectation(steps)).abs()
    random = error > 1e-12  # words in time alone are not random
    assert int(random.sum()) == 26
    assert (gap[random] / error[random]).max() < 4
    assert gap[~random].max() < 1e-12


def test_refinement_leads_to_fawcetts_formula() -> None:
    """E S(t, B) on [0, 1] is exp(e_1 + e_22 / 2); the piecewise-linear expectation converges with order 1."""
    generator = [torch.zeros(2**k, dtype=torch.float64) for k in range(DEPTH + 1)]
    generator[1][0], generator[2][3] = 1.0, 0.5
    power = [torch.ones(1, dtype=torch.float64)] + [torch.zeros(2**k, dtype=torch.float64) for k in range(1, DEPTH + 1)]
    limit = [p.clone() for p in power]
    for k in range(1, DEPTH + 1):
        power = [p / k for p in product(power, generator)]
        limit = [a + b for a, b in zip(limit, power, strict=True)]
    coarse, fine = ((brownian_expectation(n) - torch.cat(limit[1:])).abs().max() for n in (32, 64))
    assert fine < 0.01
    assert coarse / fine == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_agreement_with_pysiglib(dtype: torch.dtype) -> None:
    api = pytest.importorskip("pysiglib.torch_api")
    x = torch.stack([path(51, 2, seed) for seed in range(40)]).to(dtype)
    torch.testing.assert_close(signature(x, 5), signature(x, 5, backend="pysiglib"), rtol=1e-5, atol=1e-5)
    api.prepare_log_sig(2, 2, 2)
    torch.testing.assert_close(log_signature(x), api.log_sig(x, 2, method=2), rtol=1e-5, atol=1e-5)
