"""Kernels of the layer `attention` (Triton): four launches forward and four backward for all samples.

With Q, K, V, O the weights, q and o the biases of query and output, and the moment S of the tokens x about their mean:

    k = K S,  v = V S,  r_k = (diag k K' + eps)^-1/2,  r_v = (diag v V' + eps)^-1/2,  N = r_k [k V']_heads r_v
    P = N O',  M = Q' P,  s = q P + o,  y = before + s + x M

One program computes these C x C matrices for a sample, and one their gradients. Many programs share the moments and y,
which are sums and products over the tokens. Since x - m sums to 0, dL/dx = g M' + (x - m)(dS + dS') / n, m the mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from spdebench.accel.dispatch import programs
from spdebench.accel.triton_math import Sums, entries, product, split, tile

ROWS, WARPS, SHARE = 64, 4, 4  # tokens per block, warps, programs per multiprocessor
LARGEST = 32  # channels


def supports(c: int) -> bool:
    """Whether the C x C matrices of a sample fit into one program."""
    return c <= LARGEST


@triton.jit
def _moment_kernel(x, mean, parts, total, blocks, c, rows: tl.constexpr, width: tl.constexpr):
    """Blocks of tokens p, p + P, .. of a sample: the sum of (x - m)(x - m)'."""
    p, step, sample = tl.program_id(0), tl.num_programs(0), tl.program_id(1).to(tl.int64)
    i = tl.arange(0, width)
    x += sample * total * c
    m = tl.load(mean + sample * c + i, mask=i < c, other=0.0)
    moment = tl.zeros((width, width), tl.float32)
    for block in range(p, blocks, step):
        r = block * rows + tl.arange(0, rows)
        inside = (r < total)[:, None] & (i < c)[None, :]
        v = tl.load(x + r.to(tl.int64)[:, None] * c + i[None, :], mask=inside, other=0.0)
        v, v_rest = split(tl.where(inside, v - m[None, :], 0.0))
        moment = product(tl.trans(v), tl.trans(v_rest), v, v_rest, moment)
    parts += (sample * step + p) * c * c
    tl.store(parts + i[:, None] * c + i[None, :], moment, mask=(i < c)[:, None] & (i < c)[None, :])


@triton.jit
def _outer_kernel(x, grad, parts, total, blocks, c, rows: tl.constexpr, width: tl.constexpr):
    """Blocks of tokens p, p + P, .. of a sample: the sums of x' g and, one row more, of g."""
    p, step, sample = tl.program_id(0), tl.num_programs(0), tl.program_id(1).to(tl.int64)
    i = tl.arange(0, width)
    x += sample * total * c
    grad += sample * total * c
    across, flat = tl.zeros((width, width), tl.float32), tl.zeros((rows, width), tl.float32)
    for block in range(p, blocks, step):
        r = block * rows + tl.arange(0, rows)
        inside = (r < total)[:, None] & (i < c)[None, :]
        at = r.to(tl.int64)[:, None] * c + i[None, :]
        v, v_rest = split(tl.load(x + at, mask=inside, other=0.0))
        g = tl.load(grad + at, mask=inside, other=0.0)
        flat += g
        g, g_rest = split(g)
        across = product(tl.trans(v), tl.trans(v_rest), g, g_rest, across)
    parts += (sample * step + p) * (c + 1) * c
    tl.store(parts + i[:, None] * c + i[None, :], across, mask=(i < c)[:, None] & (i < c)[None, :])
    tl.store(parts + c * c + i, tl.sum(flat, axis=0), mask=i < c)


@triton.jit
def _affine_kernel(
    before, x, matrix, shift, other, second, out, total, c,
    turned: tl.constexpr, mode: tl.constexpr, rows: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """x M + shift for every sample by itself, M transposed where ``turned``; mode 1: + before, mode 2: + other M_2."""
    sample = tl.program_id(1).to(tl.int64)
    i, r = tl.arange(0, width), tl.program_id(0) * rows + tl.arange(0, rows)
    inside, square = (r < total)[:, None] & (i < c)[None, :], (i < c)[:, None] & (i < c)[None, :]
    at = (sample * total + r.to(tl.int64))[:, None] * c + i[None, :]
    straight = sample * c * c + i[:, None] * c + i[None, :]
    if turned:
        w, w_rest = split(tl.load(matrix + sample * c * c + i[None, :] * c + i[:, None], mask=square, other=0.0))
    else:
        w, w_rest = split(tl.load(matrix + straight, mask=square, other=0.0))
    v, v_rest = split(tl.load(x + at, mask=inside, other=0.0))
    y = product(v, v_rest, w, w_rest, tl.zeros((rows, width), tl.float32))
    if mode == 2:
        w, w_rest = split(tl.load(second + straight, mask=square, other=0.0))
        v, v_rest = split(tl.load(other + at, mask=inside, other=0.0))
        y = product(v, v_rest, w, w_rest, y)
    y += tl.load(shift + sample * c + i, mask=i < c, other=0.0)[None, :]
    if mode == 1:
        y += tl.load(before + at, mask=inside, other=0.0)
    tl.store(out + at, y, mask=inside)


@triton.jit
def _times(a, b, width: tl.constexpr):
    """a b for C x C matrices."""
    a, a_rest = split(a)
    b, b_rest = split(b)
    return product(a, a_rest, b, b_rest, tl.zeros((width, width), tl.float32))


@triton.jit
def _mixed(moment, key, value, same, eps, width: tl.constexpr):
    """k, v, [k V']_heads, r_k, r_v."""
    k, v = _times(key, moment, width), _times(value, moment, width)
    across = tl.where(same, _times(k, tl.trans(value), width), 0.0)
    return k, v, across, _inverse_root(k, key, eps), _inverse_root(v, value, eps)


@triton.jit
def _inverse_root(square, weight, eps):
    return 1.0 / tl.sqrt(tl.sum(square * weight, axis=1) + eps)


@triton.jit
def _square(base, i, c):
    return entries(base, i, i, c, 1, c, c)


@triton.jit
def _matrix_kernel(
    parts, query, query_bias, key, value, out, out_bias, moments, matrix, shift, count, tokens, c, size, eps,
    width: tl.constexpr,
):  # fmt: skip
    """S, M and s of a sample from the parts of S; ``size``: channels of a head."""
    sample, i = tl.program_id(0).to(tl.int64), tl.arange(0, width)
    same = (i[:, None] // size == i[None, :] // size) & (i < c)[:, None] & (i < c)[None, :]
    place, square = sample * c * c + i[:, None] * c + i[None, :], (i < c)[:, None] & (i < c)[None, :]
    moment = tl.zeros((width, width), tl.float32)
    for p in tl.range(0, count, loop_unroll_factor=8):
        moment += _square(parts + (sample * count + p) * c * c, i, c)
    moment = moment / tokens
    tl.store(moments + place, moment, mask=square)
    _, _, across, r_k, r_v = _mixed(moment, _square(key, i, c), _square(value, i, c), same, eps, width)
    onwards = _times(across * r_k[:, None] * r_v[None, :], tl.trans(_square(out, i, c)), width)
    tl.store(matrix + place, _times(tl.trans(_square(query, i, c)), onwards, width), mask=square)
    q = tl.load(query_bias + i, mask=i < c, other=0.0)
    s = tl.sum(q[:, None] * onwards, axis=0) + tl.load(out_bias + i, mask=i < c, other=0.0)
    tl.store(shift + sample * c + i, s, mask=i < c)


@triton.jit
def _matrix_backward_kernel(
    parts, mean, moments, query, query_bias, key, value, out, sums, matrix, shift, count, tokens, c, size, eps,
    length, at_query_bias, at_key, at_value, at_out, at_out_bias, width: tl.constexpr,
):  # fmt: skip
    """Of a sample, from the parts of dM and ds: gradients of the six parameters, (dS + dS') / n =: Z and -m Z."""
    sample, i = tl.program_id(0).to(tl.int64), tl.arange(0, width)
    square = (i < c)[:, None] & (i < c)[None, :]
    same, place = (i[:, None] // size == i[None, :] // size) & square, i[:, None] * c + i[None, :]
    to_matrix, to_shift = tl.zeros((width, width), tl.float32), tl.zeros((width,), tl.float32)
    for p in tl.range(0, count, loop_unroll_factor=8):
        part = parts + (sample * count + p) * (c + 1) * c
        to_matrix += _square(part, i, c)
        to_shift += tl.load(part + c * c + i, mask=i < c, other=0.0)
    sums += sample * length
    w_k, w_v, w_o = _square(key, i, c), _square(value, i, c), _square(out, i, c)
    moment = _square(moments + sample * c * c, i, c)
    k, v, across, r_k, r_v = _mixed(moment, w_k, w_v, same, eps, width)
    normal = across * r_k[:, None] * r_v[None, :]
    onwards = _times(normal, tl.trans(w_o), width)
    tl.store(sums + place, _times(onwards, tl.trans(to_matrix), width), mask=square)
    tl.store(sums + at_query_bias + i, tl.sum(onwards * to_shift[None, :], axis=1), mask=i < c)
    q = tl.load(query_bias + i, mask=i < c, other=0.0)
    to_onwards = _times(_square(query, i, c), to_matrix, width) + q[:, None] * to_shift[None, :]
    tl.store(sums + at_out + place, _times(tl.trans(to_onwards), normal, width), mask=square)
    tl.store(sums + at_out_bias + i, to_shift, mask=i < c)
    to_normal = _times(to_onwards, w_o, width)
    to_across = tl.where(same, to_normal * r_k[:, None] * r_v[None, :], 0.0)
    to_k_square = -0.5 * r_k * r_k * r_k * tl.sum(to_normal * across * r_v[None, :], axis=1)  # of diag k K'
    to_v_square = -0.5 * r_v * r_v * r_v * tl.sum(to_normal * across * r_k[:, None], axis=0)
    to_k = _times(to_across, w_v, width) + to_k_square[:, None] * w_k
    to_v = to_v_square[:, None] * w_v
    to_key = _times(to_k, moment, width) + to_k_square[:, None] * k
    tl.store(sums + at_key + place, to_key, mask=square)
    to_value = _times(to_v, moment, width) + to_v_square[:, None] * v + _times(tl.trans(to_across), k, width)
    tl.store(sums + at_value + place, to_value, mask=square)
    to_moment = _times(tl.trans(w_k), to_k, width) + _times(tl.trans(w_v), to_v, width)
    z = (to_moment + tl.trans(to_moment)) / tokens
    tl.store(matrix + sample * c * c + place, z, mask=square)
    m = tl.load(mean + sample * c + i, mask=i < c, other=0.0)
    tl.store(shift + sample * c + i, -tl.sum(m[:, None] * z, axis=0), mask=i < c)


Parameters = Sequence[Tensor]  # query: weight and bias, weights of key and value, out: weight and bias


def forward(
    x: Tensor, before: Tensor | None, parameters: Parameters, heads: int, eps: float
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Attention of x (B, n, C), plus ``before``; and m, S and M, which the backward kernels need."""
    samples, n, c = x.shape
    blocks, count = _share(x)
    mean, (moments, matrix), shift = x.mean(1), x.new_empty(2, samples, c, c), x.new_empty(samples, c)
    parts = x.new_empty(samples, count, c, c)
    _moment_kernel[(count, samples)](x, mean, parts, n, blocks, c, ROWS, tile(c), num_warps=WARPS, num_stages=2)
    _matrix_kernel[(samples,)](
        parts, *parameters, moments, matrix, shift, count, n, c, c // heads, eps, tile(c), num_warps=WARPS
    )
    y, mode = torch.empty_like(x), 0 if before is None else 1
    _affine_kernel[(blocks, samples)](
        y if before is None else before, x, matrix, shift, x, matrix, y, n, c, False, mode, ROWS, tile(c),
        num_warps=WARPS,
    )  # fmt: skip
    return y, (mean, moments, matrix)


def backward(
    grad: Tensor, x: Tensor, parameters: Parameters, mean: Tensor, moments: Tensor, matrix: Tensor, heads: int,
    eps: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Gradients of x and of the parameters."""
    samples, n, c = x.shape
    blocks, count = _share(x)
    parts = x.new_empty(samples, count, c + 1, c)
    _outer_kernel[(count, samples)](x, grad, parts, n, blocks, c, ROWS, tile(c), num_warps=WARPS, num_stages=2)
    sums = Sums(x, samples, [p.shape for p in parameters])
    second, shift, to_x = torch.empty_like(matrix), torch.empty_like(mean), torch.empty_like(x)
    _matrix_backward_kernel[(samples,)](
        parts, mean, moments, *parameters[:5], sums.parts, second, shift, count, n, c, c // heads, eps, sums.length,
        *sums.starts[1:], tile(c), num_warps=2 * WARPS,
    )  # fmt: skip
    _affine_kernel[(blocks, samples)](
        x, grad, matrix, shift, x, second, to_x, n, c, True, 2, ROWS, tile(c), num_warps=WARPS
    )
    return to_x, *sums.summed()


def _share(x: Tensor) -> tuple[int, int]:
    """The number of blocks of tokens per sample, and the number of programs that share them."""
    samples, n, _ = x.shape
    blocks = triton.cdiv(n, ROWS)
    return blocks, min(blocks, -(-SHARE * programs(x.device.index) // (2 * samples)))
