"""Signatures: layout, options and errors. The mathematics is in tests/laws/test_signature_laws.py."""

from __future__ import annotations

import sys

import pytest
import torch

from spdebench.errors import UserError
from spdebench.signatures import (
    log_signature,
    signature,
    signature_of_increments,
    signature_size,
    with_time,
    words,
)


def paths(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).cumsum(-2) / 3


def test_words_name_the_terms_by_level_then_letter() -> None:
    assert words(2, 2) == [(0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1)]
    assert signature_size(2, 5) == len(words(2, 5)) == 62
    x = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])  # first along axis 0, then along axis 1
    s = dict(zip(words(2, 2), signature(x, 2).tolist(), strict=True))
    assert s[(0, 1)] == 1.0 and s[(1, 0)] == 0.0  # all of letter 0 comes before all of letter 1


def test_batches_keep_their_shape_and_depth_one_is_the_increment() -> None:
    x = paths(3, 4, 7, 2)
    assert signature(x, 3).shape == (3, 4, 14)
    torch.testing.assert_close(signature(x, 1), x[..., -1, :] - x[..., 0, :])
    torch.testing.assert_close(signature(x, 3)[1, 2], signature(x[1, 2], 3))


def test_basepoint_makes_the_level_visible() -> None:
    x = paths(2, 6, 2)
    torch.testing.assert_close(signature(x, 2, basepoint=True)[:, :2], x[:, -1])
    assert signature(x[:, :1], 2, basepoint=True).shape == (2, 6)


def test_with_time_puts_time_first() -> None:
    x = paths(5, 4, 1)
    torch.testing.assert_close(with_time(x)[..., 0], torch.linspace(0, 1, 4, dtype=x.dtype).expand(5, 4))
    torch.testing.assert_close(with_time(x)[..., 1:], x)
    times = torch.tensor([0.0, 1.0, 4.0, 9.0])
    torch.testing.assert_close(with_time(x, times)[3, :, 0], times.double())


def test_the_state_in_place_equals_the_differentiable_one() -> None:
    z = paths(9, 3, 11)
    tracked = z.clone().requires_grad_()
    assert torch.equal(signature_of_increments(z, 4), signature_of_increments(tracked, 4).detach())


def test_gradients_are_those_of_finite_differences() -> None:
    x = paths(2, 5, 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda y: signature(y, 3), x)
    assert torch.autograd.gradcheck(log_signature, x)


def test_the_input_is_left_alone() -> None:
    x = paths(2, 6, 2)
    z = x.diff(dim=1).permute(1, 2, 0).contiguous()
    before = z.clone()
    signature_of_increments(z, 3)
    assert torch.equal(z, before)


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: signature(torch.zeros(3), 2), "expected real floating-point paths"),
        (lambda: signature(torch.zeros(3, 2, dtype=torch.complex64), 2), "complex64"),
        (lambda: signature(torch.zeros(0, 4, 2), 2), "empty"),
        (lambda: signature(torch.zeros(4, 2), 0), "depth must be at least 1"),
        (lambda: signature(torch.zeros(1, 2), 2), "at least 2 points"),
        (lambda: signature(torch.zeros(4, 2), 2, backend="iisignature"), "torch or pysiglib"),  # type: ignore[arg-type]
        (lambda: log_signature(torch.zeros(1, 2)), "at least 2 points"),
        (lambda: with_time(torch.zeros(5, 2), torch.zeros(4)), "5 times"),
    ],
)
def test_a_bad_request_is_one_line(call, line: str) -> None:
    with pytest.raises(UserError, match=line) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pysiglib.torch_api", None)
    monkeypatch.setitem(sys.modules, "pysiglib", None)
    with pytest.raises(UserError, match=r"needs the package pysiglib.*pip install 'pysiglib"):
        signature(torch.zeros(4, 2), 2, backend="pysiglib")
