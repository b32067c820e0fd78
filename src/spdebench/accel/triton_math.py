"""Functions that several kernels share (Triton):  x y ~ h(x) h(y) + h(x) l(y) + l(x) h(y),  x = h(x) + l(x).

h rounds to TF32; three TF32 products are as accurate as float32. A sum over all rows is one row of partial sums per
program and then the sum of these rows, so that it gives the same numbers in every run.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor


class Sums:
    """sum_p parts[p] for several arrays in one buffer, with one row per program p; array a begins at ``starts[a]``.

    A start is a multiple of ``step`` numbers: 4 of them are the 16 bytes that a GPU reads at once.
    """

    def __init__(self, like: Tensor, count: int, shapes: Sequence[Sequence[int]], step: int = 4) -> None:
        self.shapes, self.starts, self.length = [torch.Size(s) for s in shapes], list[int](), 0
        for shape in self.shapes:
            self.starts.append(self.length)
            self.length += -(-shape.numel() // step) * step
        self.parts = like.new_empty(count, self.length)

    def summed(self) -> list[Tensor]:
        """The sums over all programs, one array per shape; they are views of one buffer."""
        total, pairs = self.parts.sum(0), zip(self.starts, self.shapes, strict=True)
        return [total[start : start + shape.numel()].view(shape) for start, shape in pairs]


def tile(n: int) -> int:
    """The side of a tile for n columns, a power of 2; products need at least 16."""
    return max(16, int(triton.next_power_of_2(n)))


@triton.jit
def entries(base, rows, columns, row_stride, column_stride, row_count, column_count):
    """M[rows, columns] of a matrix M that is read by its strides; 0 outside of it."""
    mask = (rows[:, None] < row_count) & (columns[None, :] < column_count)
    return tl.load(base + rows[:, None] * row_stride + columns[None, :] * column_stride, mask=mask, other=0.0)


@triton.jit
def split(x):
    """x rounded to TF32, and the remainder."""
    large = ((x.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return large, x - large


@triton.jit
def product(a, a_rest, b, b_rest, total):
    """total + (a + a_rest)(b + b_rest) without the product of the two remainders, which is 2^-22 of it."""
    total = tl.dot(a_rest, b, total, input_precision="tf32")
    total = tl.dot(a, b_rest, total, input_precision="tf32")
    return tl.dot(a, b, total, input_precision="tf32")


@triton.jit
def inverse(x):
    """1 / x for x of ordinary size."""
    return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def power(x):
    """2^x; 0 where that is below the normal numbers."""
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def activated(a, gelu: tl.constexpr):
    """act(a) and act'(a).

    With the normal density f and its tail Q(a) = int_a^inf f,  Q(|a|) = f(a) t P(t),  t = 1 / (1 + 0.2761 |a|), where P
    has degree 5 and is fitted: Q is off by 4e-9 at most, less than a float32 near 1 can show.
    It takes half the instructions of gelu by erf, which `skip` uses. The two differ by about 1e-7: to use one in place
    of the other would change results.
    """
    if gelu:
        density = power(a * a * -0.7213475204444817 - 1.3257480647361592)
        t = inverse(1.0 + 0.2761251980533468 * tl.abs(a))
        p = 1.1008303180 - 0.2837822493 * t
        p = -0.7803716291 + t * p
        p = 0.8030270387 + t * p
        p = 0.1188793920 + t * p
        p = 0.2947312569 + t * p
        tail = p * (t * density)
        share = tl.where(a > 0.0, 1.0 - tail, tail)
        return a * share, share + a * density
    return tl.maximum(a, 0.0), tl.where(a > 0.0, 1.0, 0.0)
