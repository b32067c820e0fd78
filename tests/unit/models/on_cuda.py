"""Helpers of the tests of GPU kernels: value and gradients by our kernels and by torch's own operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from spdebench.accel import without_kernels


def normal(*shape: int) -> Tensor:
    """Independent normals on the device, the same for the same shape."""
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator).cuda().requires_grad_()


def evaluated(work: Callable[[], Tensor], inputs: Sequence[Tensor]) -> list[Tensor]:
    """Value of ``work`` and gradients for weights none of whose sums is near 0."""
    out = work()
    weights = 1.5 + torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out)
    return [out.detach(), *torch.autograd.grad(out, inputs, weights)]


def close(work: Callable[[], Tensor], inputs: Sequence[Tensor], tolerance: float = 2e-5) -> list[Tensor]:
    """Our kernels against torch's, relative to the largest entry; ours are given back."""
    ours_all = evaluated(work, inputs)
    with without_kernels():
        theirs_all = evaluated(work, inputs)
    for ours, theirs in zip(ours_all, theirs_all, strict=True):
        assert ours.shape == theirs.shape
        assert float((ours - theirs).abs().max()) <= tolerance * float(theirs.abs().max())
    return ours_all


def close_and_again(work: Callable[[], Tensor], inputs: Sequence[Tensor], tolerance: float = 2e-5) -> None:
    """Our kernels against torch's, and against themselves, run again: the same bits."""
    first = close(work, inputs, tolerance)
    assert all(torch.equal(a, b) for a, b in zip(first, evaluated(work, inputs), strict=True))
