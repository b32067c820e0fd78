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

_BLOCK = 256  # two numbers per thread: more would take so many registers that few threads run at a time


@triton.jit
def _shift_xor(h, shift: tl.constexpr):
    return h ^ ((h >> shift) & ((1 << (64 - shift)) - 1))


@triton.jit
def _kernel(
    rows, offsets, parent, out, constants, total, width, m1, m2,
    split: tl.constexpr, wide: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """out = z; with ``split`` out = (parent + z, parent - z), stacked along the axis before the modes."""
    if wide:
        at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block).to(tl.int64)
    else:  # division of 64-bit integers is slow
        at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < total
    row, column = at // width, at % width
    h = tl.load(rows + row, mask=inside, other=0) + tl.load(offsets + column, mask=inside, other=0)
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
    z = tl.join(radius * libdevice.cos(angle), radius * libdevice.sin(angle))  # both parts in one store of 16 bytes
    part, inside = tl.arange(0, 2)[None, :], inside[:, None]
    here = at.to(tl.int64)[:, None] * 2 + part
    if split:
        start = tl.load(parent + here, mask=inside, other=0)
        first = (row.to(tl.int64) * 2 * width + column)[:, None] * 2 + part
        tl.store(out + first, start + z, mask=inside)
        tl.store(out + first + 2 * width, start - z, mask=inside)
    else:
        tl.store(out + here, z, mask=inside)


@functools.lru_cache(maxsize=64)
def _constants(scale: float, device: torch.device) -> Tensor:
    """Constants that the kernel reads from memory: a literal in a kernel may be rounded to single precision."""
    values = [2 * math.pi / 2**32, 2.0**31 + 0.5, 2.0**-32, -2.0 * scale * scale]
    return torch.tensor(values, dtype=torch.float64, device=device)


def box_muller(
    rows: Tensor, offsets: Tensor, scale: float, factors: tuple[int, int], parent: Tensor | None = None
) -> Tensor:
    """z = scale (a + ib) for every row state and mode offset: complex128 (rows, modes).

    With ``parent`` (rows, modes): (rows, 2, modes) with parent + z and parent - z.
    """
    total, width = rows.numel() * offsets.numel(), offsets.numel()
    shape = (rows.numel(), width) if parent is None else (rows.numel(), 2, width)
    out = torch.empty(shape, dtype=torch.complex128, device=rows.device)
    if total:
        values, target = _constants(scale, rows.device), torch.view_as_real(out)
        source = target if parent is None else torch.view_as_real(parent.contiguous())
        grid = (triton.cdiv(total, _BLOCK),)
        wide = total + _BLOCK >= 1 << 31
        _kernel[grid](
            rows, offsets, source, target, values, total, width, *factors, parent is not None, wide, _BLOCK
        )  # fmt: skip
    return out
