"""The kernel of `layers.contract.contract` (Triton):  out[l, j, r] = sum_k M[j, k] h[l, k, r].

M is small, r long. A program has all rows of M and a piece of r, so that h is read once and out is written once. It
adds up products of 16 rows at a time (`part`), which the GPU multiplies without transposing h in memory. A product is
three TF32 products, as accurate as float32: x = high + low, M h = low high + high low + high high. They are written
out so that every piece of h is split once for all rows of M.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from spdebench.accel.triton_math import product, split

LARGEST = 128  # rows of M
LONGEST = 512  # columns of M
SHORTEST = 32  # r, below which a program has too little to do
PART = 16


def supports(matrix: Tensor, h: Tensor) -> bool:
    """Whether the kernel can multiply M (m, n) and h (l, n, r)."""
    (m, n), r = matrix.shape, h.shape[-1]
    return 0 < m <= LARGEST and 0 < n <= LONGEST and SHORTEST <= r < 2**30 and h.numel() > 0


@triton.jit
def _contract_kernel(
    matrix, h, out, m, n, r, row, column, blocks,
    part: tl.constexpr, parts: tl.constexpr, depth: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """One index of the leading axis, ``width`` of r, all rows of M in ``parts``; k in steps of ``depth``.

    Rows and columns outside of M repeat its last ones: they meet zeros of h, or are not stored.
    """
    program = tl.program_id(0)
    lead = (program // blocks).to(tl.int64)
    at = (program % blocks) * width + tl.arange(0, width)
    rows, inside = tl.arange(0, part), (at < r)[None, :]
    h += lead * n * r
    out += lead * m * r
    sums = ()
    for _ in tl.static_range(parts):
        sums = sums + (tl.zeros((part, width), tl.float32),)  # type: ignore[assignment]  # noqa: RUF005
    for start in range(0, n, depth):
        k = start + tl.arange(0, depth)
        values = tl.load(h + k.to(tl.int64)[:, None] * r + at[None, :], mask=(k < n)[:, None] & inside, other=0.0)
        high, low = split(values)
        k = tl.minimum(k, n - 1)
        added = ()
        for i in tl.static_range(parts):
            j = tl.minimum(i * part + rows, m - 1)
            some = tl.load(matrix + j[:, None] * row + k[None, :] * column)
            some_high, some_low = split(some)
            new = product(some_high, some_low, high, low, tl.zeros((part, width), tl.float32))
            added = added + (sums[i] + new,)  # type: ignore[assignment]  # noqa: RUF005
        sums = added
    for i in tl.static_range(parts):
        j = i * part + rows
        tl.store(out + j.to(tl.int64)[:, None] * r + at[None, :], sums[i], mask=(j < m)[:, None] & inside)


def contract(matrix: Tensor, h: Tensor) -> Tensor:
    """M (m, n), by its strides, times h (l, n, r), contiguous: (l, m, r)."""
    (m, n), (lead, _, r) = matrix.shape, h.shape
    out = h.new_empty(lead, m, r)
    width, depth, warps, stages = _tile(r)
    blocks = triton.cdiv(r, width)
    _contract_kernel[(lead * blocks,)](
        matrix, h, out, m, n, r, *matrix.stride(), blocks, PART, triton.cdiv(m, PART), depth, width,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out


def _tile(r: int) -> tuple[int, int, int, int]:
    """Tile sizes along r and along k, the number of warps, and the number of steps of k that are loaded ahead."""
    return (128, 16, 4, 3) if r > 32 else (32, 32, 4, 3)
