"""out_t = factor_t amplitude_{source_t} on complex numbers in one pass for NVIDIA GPUs (Triton)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024


@triton.jit
def _kernel(amplitudes, source, factor, out, size, count, step: tl.constexpr, block: tl.constexpr):
    """One program does some targets of one row; ``step`` is 2 where real and imaginary part have own factors."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * block + tl.arange(0, block)
    inside, part = (at < count)[:, None], tl.arange(0, 2)[None, :]  # both parts of a number in one access of 16 bytes
    place = (row * size + tl.load(source + at, mask=at < count, other=0))[:, None] * 2 + part
    scale = tl.load(factor + at[:, None] * step + part * (step - 1), mask=inside, other=0)
    values = tl.load(amplitudes + place, mask=inside, other=0)
    tl.store(out + (row * count + at)[:, None] * 2 + part, values * scale, mask=inside)


def gather(amplitudes: Tensor, source: Tensor, factor: Tensor) -> Tensor:
    """amplitudes (.., M) complex128, source (C), factor (C) or (C, 2): (.., C)."""
    amplitudes, count, size = amplitudes.contiguous(), source.numel(), amplitudes.shape[-1]
    out = torch.empty((*amplitudes.shape[:-1], count), dtype=amplitudes.dtype, device=amplitudes.device)
    if rows := out.numel() // max(1, count):
        block = min(_BLOCK, triton.next_power_of_2(count))
        _kernel[(rows, triton.cdiv(count, block))](
            torch.view_as_real(amplitudes), source, factor, torch.view_as_real(out), size, count, factor.ndim, block
        )
    return out
