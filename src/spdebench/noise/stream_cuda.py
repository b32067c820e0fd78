"""The stream's kernel for NVIDIA GPUs: mix, Box-Muller and scaling of a number in one pass (Triton).

The same formula as `stream`, number for number; integers are exact and log, sqrt, sin, cos agree to rounding.
"""

from __future__ import annotations

import functools
import math

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra import libdevice

_BLOCK = 1024


@triton.jit
def _shift_xor(h, shift: tl.constexpr):
    return h ^ ((h >> shift) & ((1 << (64 - shift)) - 1))


@triton.jit
def _kernel(rows, offsets, out, constants, total, width, m1, m2, block: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block).to(tl.int64)
    inside = at < total
    h = tl.load(rows + at // width, mask=inside, other=0) + tl.load(offsets + at % width, mask=inside, other=0)
    h = _shift_xor(h, 30) * m1
    h = _shift_xor(h, 27) * m2
    h = _shift_xor(h, 31)
    turn, middle, unit, factor = (
        tl.load(constants),
        tl.load(constants + 1),
        tl.load(constants + 2),
        tl.load(constants + 3),
    )
    angle = h.to(tl.int32).to(tl.float64) * turn
    uniform = ((h >> 32).to(tl.int32).to(tl.float64) + middle) * unit
    radius = libdevice.sqrt(libdevice.log(uniform) * factor)
    tl.store(out + 2 * at, radius * libdevice.cos(angle), mask=inside)
    tl.store(out + 2 * at + 1, radius * libdevice.sin(angle), mask=inside)


@functools.lru_cache(maxsize=64)
def _constants(scale: float, device: torch.device) -> Tensor:
    """Read from memory: a literal in a kernel may be rounded to single precision."""
    values = [2 * math.pi / 2**32, 2.0**31 + 0.5, 2.0**-32, -2.0 * scale * scale]
    return torch.tensor(values, dtype=torch.float64, device=device)


def box_muller(rows: Tensor, offsets: Tensor, scale: float, factors: tuple[int, int]) -> Tensor:
    """scale (a + ib) for every row state and mode offset: complex128 (rows, modes)."""
    out = torch.empty((rows.numel(), offsets.numel()), dtype=torch.complex128, device=rows.device)
    if total := out.numel():
        values = _constants(scale, rows.device)
        grid = (triton.cdiv(total, _BLOCK),)
        _kernel[grid](rows, offsets, torch.view_as_real(out), values, total, offsets.numel(), *factors, _BLOCK)
    return out
