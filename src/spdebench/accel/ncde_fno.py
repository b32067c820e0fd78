"""Kernels of the model `ncde-fno` (Triton): one program solves one sample, forwards and backwards.

    v = B z + b + waves^T p,   p = K waves z,   drift = tanh(D gelu(C v + c) + d),   spread = tanh(E z + e)
    g(z) = drift dt + spread dW

A solve is some hundred evaluations of g, one after the other, on 128 x 32 numbers: they fit the registers of a program
and are far too few for one kernel per operation. K acts as two real matrices per mode (P and Q of `Convolution`).

With gradients the solve keeps z, v, drift, spread and waves z of each evaluation. Only the adjoint must be computed in
order, so the backward kernel keeps the adjoints of the layers' outputs, and the gradients of the weights are computed
from both afterwards, for all evaluations at once. No two programs add to the same number, so results are the same in
every run. Each product is computed as three TF32 products, as accurate as float32.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from spdebench.accel import linear as linear_cuda
from spdebench.accel import mlp as mlp_cuda
from spdebench.accel.rows import gram
from spdebench.accel.triton_math import activated, entries, inverse, power, product, split, tile

STAGES = {"euler": 1, "heun": 2, "rk4": 4}
PART = 32  # rows of C and c that a program holds at once
WARPS = 8


class Layers(NamedTuple):
    """The linear maps of g, each W (to, from) or b (to)."""

    waves: Tensor  # (2k, X): cosines and sines alternately
    mixing: Tensor  # (2, k, h, h): P and Q
    local: Tensor  # B
    local_bias: Tensor
    inner: Tensor  # C (w, h)
    inner_bias: Tensor
    outer: Tensor  # D (h, w)
    outer_bias: Tensor
    noise: Tensor  # E
    noise_bias: Tensor


class SavedForBackward(NamedTuple):
    """What a solve with B samples, N steps and S stages per step keeps for the gradients.

    The first four are (B, N S, X, h); ``spectrum`` is waves z, (k, E, 2, h), with E = B N S evaluations.
    """

    z: Tensor
    v: Tensor
    drift: Tensor
    spread: Tensor
    spectrum: Tensor


def supports(points: int, hidden: int, width: int, modes: int) -> bool:
    """Whether a sample fits into one program."""
    return points <= 128 and modes <= 16 and hidden <= 32 and mlp_cuda.supports(hidden, width, hidden)


# --- pieces of the kernels ----------------------------------------------------------------------------------------
@triton.jit
def _row(base, columns, count: tl.constexpr):
    return tl.load(base + columns, mask=columns < count, other=0.0)[None, :]


@triton.jit
def _product(a, b, total):
    """total + a b."""
    main_a, rest_a = split(a)
    main_b, rest_b = split(b)
    return product(main_a, rest_a, main_b, rest_b, total)


@triton.jit
def _tanh(x):
    """1 - 2 / (1 + e^{2x}), and near 0, where this cancels, the series to x^9 (10^-8 of the value)."""
    square = x * x
    small = x + x * square * (-0.33333333 + square * (0.13333333 + square * (-0.053968254 + square * 0.021869488)))
    return tl.where(square < 0.0625, small, 1.0 - 2.0 * inverse(1.0 + power(2.8853900817779268 * x)))


@triton.jit
def _spectrum(z, waves, points: tl.constexpr, modes: tl.constexpr, groups: tl.constexpr, count: tl.constexpr):
    """waves z, cosines and sines (k, h): as many products over parts of the points as there are warps, added."""
    rows: tl.constexpr = z.shape[0]
    width: tl.constexpr = z.shape[1]
    g, r = tl.arange(0, groups)[:, None, None], tl.arange(0, 2 * count)[None, :, None]
    x = g * (rows // groups) + tl.arange(0, rows // groups)[None, None, :]
    wave = tl.load(waves + r * points + x, mask=(r < 2 * modes) & (x < points), other=0.0)
    each = tl.dot(wave, tl.reshape(z, (groups, rows // groups, width)), input_precision="tf32x3")
    return tl.split(tl.permute(tl.reshape(tl.sum(each, axis=0), (count, 2, width)), (0, 2, 1)))


@triton.jit
def _mixed(a, b, matrices, sign: tl.constexpr, modes: tl.constexpr, h: tl.constexpr):
    """P a + s Q b and P b - s Q a in every mode, as alternate rows; ``matrices`` are P and Q, each (k, from, to)."""
    count: tl.constexpr = a.shape[0]
    width: tl.constexpr = a.shape[1]
    k, i, o = tl.arange(0, count)[:, None, None], tl.arange(0, width)[None, :, None], tl.arange(0, width)[None, None, :]
    inside = (k < modes) & (i < h) & (o < h)
    at = matrices + (k * h + i) * h + o
    a, b = a[:, :, None], b[:, :, None]
    p = tl.load(at, mask=inside, other=0.0)
    cosines, sines = tl.sum(p * a, axis=1), tl.sum(p * b, axis=1)
    q = tl.load(at + modes * h * h, mask=inside, other=0.0) * sign
    cosines, sines = cosines + tl.sum(q * b, axis=1), sines - tl.sum(q * a, axis=1)
    return tl.reshape(tl.permute(tl.join(cosines, sines), (0, 2, 1)), (2 * count, width))


@triton.jit
def _keep_spectrum(base, cosines, sines, at, total, modes: tl.constexpr, h: tl.constexpr):
    k, i = tl.arange(0, cosines.shape[0])[:, None], tl.arange(0, cosines.shape[1])[None, :]
    inside = (k < modes) & (i < h)
    place = base + (k * total + at) * (2 * h) + i
    tl.store(place, cosines, mask=inside)
    tl.store(place + h, sines, mask=inside)


@triton.jit
def _coefficients(j, stages: tl.constexpr):
    """Factors of k_j in the input of stage j + 1, of the third stage, of the fourth stage, and in the next frame.

    The last three are sums that earlier stages have begun: z - k1/3, z + k1 - k2 and z + k1/8 + ..; see `integrate`.
    """
    if stages == 4:
        end = (j == 0) | (j == 3)
        third = tl.where(j == 0, -0.3333333333333333, 0.0)
        fourth = tl.where(j == 0, 1.0, tl.where(j == 1, -1.0, 0.0))
        return tl.where(j == 0, 0.3333333333333333, 1.0), third, fourth, tl.where(end, 0.125, 0.375)
    return 1.0, 0.0, 0.0, 1.0 / stages


# --- forwards -----------------------------------------------------------------------------------------------------
@triton.jit
def _forward_kernel(
    start, increments, waves, mixing, local, local_bias, inner, inner_bias, outer, outer_bias, noise, noise_bias,
    out, kept_z, kept_v, kept_drift, kept_spread, kept_spectrum,
    dt, steps, total, points: tl.constexpr, h: tl.constexpr, w: tl.constexpr, modes: tl.constexpr,
    stages: tl.constexpr, keep: tl.constexpr,
    rows: tl.constexpr, groups: tl.constexpr, count: tl.constexpr, width: tl.constexpr, hidden: tl.constexpr,
    part: tl.constexpr,
):  # fmt: skip
    """One sample: ``third``, ``fourth`` and ``frame`` are what is known of the later stages' inputs and the frame."""
    sample = tl.program_id(0).to(tl.int64)
    x, i, r = tl.arange(0, rows), tl.arange(0, width), tl.arange(0, 2 * count)
    inside = (x[:, None] < points) & (i[None, :] < h)
    place = x[:, None] * h + i[None, :]
    size = points * h
    z = tl.load(start + sample * size + place, mask=inside, other=0.0)
    third, fourth, frame = z, z, z
    for e in range(steps * stages):
        j, n = e % stages, e // stages
        at = sample * steps * stages + e
        # F
        a, b = _spectrum(z, waves, points, modes, groups, count)
        if keep:
            _keep_spectrum(kept_spectrum, a, b, at, total, modes, h)
        parts = _mixed(a, b, mixing, 1.0, modes, h)
        v = tl.zeros((rows, width), tl.float32) + _row(local_bias, i, h)
        v = _product(z, entries(local, i, i, 1, h, h, h), v)
        v = _product(entries(waves, x, r, 1, points, points, 2 * modes), parts, v)
        y = tl.zeros((rows, width), tl.float32) + _row(outer_bias, i, h)
        for first in range(0, hidden, part):
            c = first + tl.arange(0, part)
            pre = tl.zeros((rows, part), tl.float32) + _row(inner_bias, c, w)
            pre = _product(v, entries(inner, i, c, 1, h, h, w), pre)
            value, _ = activated(pre, True)
            y = _product(value, entries(outer, c, i, 1, w, w, h), y)
        drift = _tanh(y)
        # G
        y = tl.zeros((rows, width), tl.float32) + _row(noise_bias, i, h)
        spread = _tanh(_product(z, entries(noise, i, i, 1, h, h, h), y))
        dw = tl.load(increments + (sample * steps + n) * points + x, mask=x < points, other=0.0)[:, None]
        k = dt * drift + spread * dw
        if keep:
            here = at * size + place
            tl.store(kept_z + here, z, mask=inside)
            tl.store(kept_v + here, v, mask=inside)
            tl.store(kept_drift + here, drift, mask=inside)
            tl.store(kept_spread + here, spread, mask=inside)
        # the next stage
        to_next, to_third, to_fourth, to_frame = _coefficients(j, stages)
        if stages == 4:
            z = tl.where(j == 2, fourth, third) + to_next * k
            third += to_third * k
            fourth += to_fourth * k
        else:
            z = frame + to_next * k
        frame += to_frame * k
        last = j == stages - 1
        z = tl.where(last, frame, z)
        if stages == 4:
            third = tl.where(last, frame, third)
            fourth = tl.where(last, frame, fourth)
        if last:
            tl.store(out + (sample * steps + n) * size + place, frame, mask=inside)


# --- backwards ----------------------------------------------------------------------------------------------------
@triton.jit
def _backward_kernel(
    grad, increments, waves, mixing, local, inner_turned, inner, inner_bias, outer, noise,
    kept_v, kept_drift, kept_spread, to_start, to_drift, to_spread, to_parts,
    dt, steps, total, points: tl.constexpr, h: tl.constexpr, w: tl.constexpr, modes: tl.constexpr,
    stages: tl.constexpr,
    rows: tl.constexpr, groups: tl.constexpr, count: tl.constexpr, width: tl.constexpr, hidden: tl.constexpr,
    part: tl.constexpr,
):  # fmt: skip
    """One sample: z, third, fourth and frame hold the adjoints of the arrays of the same name in `_forward_kernel`.

    ``local``, ``outer`` and ``noise`` are (from, to), ``mixing`` is (2, k, to, from), so that sums run along rows.
    """
    sample = tl.program_id(0).to(tl.int64)
    x, i, r = tl.arange(0, rows), tl.arange(0, width), tl.arange(0, 2 * count)
    inside = (x[:, None] < points) & (i[None, :] < h)
    place = x[:, None] * h + i[None, :]
    size = points * h
    z = tl.zeros((rows, width), tl.float32)
    third, fourth, frame = z, z, z
    for back in range(steps * stages):
        e = steps * stages - 1 - back
        j, n = e % stages, e // stages
        at = sample * steps * stages + e
        here = at * size + place
        last = j == stages - 1
        given = tl.load(grad + (sample * steps + n) * size + place, mask=inside & last, other=0.0)
        frame = tl.where(last, frame + z + given, frame)
        z = tl.where(last, 0.0, z)
        if stages == 4:
            frame = tl.where(last, frame + third + fourth, frame)
            third = tl.where(last, 0.0, third)
            fourth = tl.where(last, 0.0, fourth)
        to_next, to_third, to_fourth, to_frame = _coefficients(j, stages)
        k = to_next * z + to_frame * frame
        if stages == 4:
            k += to_third * third + to_fourth * fourth
            fourth = tl.where(j == 2, fourth + z, fourth)
            third = tl.where(j == 2, third, third + z)
        else:
            frame += z
        # through tanh
        dw = tl.load(increments + (sample * steps + n) * points + x, mask=x < points, other=0.0)[:, None]
        drift = tl.load(kept_drift + here, mask=inside, other=0.0)
        spread = tl.load(kept_spread + here, mask=inside, other=0.0)
        of_drift = dt * k * (1.0 - drift * drift)
        of_spread = dw * k * (1.0 - spread * spread)
        tl.store(to_drift + here, of_drift, mask=inside)
        tl.store(to_spread + here, of_spread, mask=inside)
        # through D, gelu and C
        v = tl.load(kept_v + here, mask=inside, other=0.0)
        of_v = tl.zeros((rows, width), tl.float32)
        for first in range(0, hidden, part):
            c = first + tl.arange(0, part)
            pre = tl.zeros((rows, part), tl.float32) + _row(inner_bias, c, w)
            pre = _product(v, entries(inner, i, c, 1, h, h, w), pre)
            _, slope = activated(pre, True)
            delta = tl.zeros((rows, part), tl.float32)
            delta = _product(of_drift, entries(outer, i, c, 1, h, h, w), delta)
            of_v = _product(delta * slope, entries(inner_turned, c, i, 1, w, w, h), of_v)
        # through waves, K and waves, B and E
        a, b = _spectrum(of_v, waves, points, modes, groups, count)
        _keep_spectrum(to_parts, a, b, at, total, modes, h)
        parts = _mixed(a, b, mixing, -1.0, modes, h)
        z = tl.zeros((rows, width), tl.float32)
        z = _product(of_v, entries(local, i, i, 1, h, h, h), z)
        z = _product(of_spread, entries(noise, i, i, 1, h, h, h), z)
        z = _product(entries(waves, x, r, 1, points, points, 2 * modes), parts, z)
    tl.store(to_start + sample * size + place, z + third + fourth + frame, mask=inside)


# --- launches -----------------------------------------------------------------------------------------------------
def forward(
    start: Tensor, increments: Tensor, layers: Layers, dt: float, solver: str, *, keep: bool
) -> tuple[Tensor, SavedForBackward]:
    """z_1..z_N ``(B, N, X, h)`` from z_0 ``(B, X, h)`` and dW ``(B, N, X)``; without ``keep`` the second is empty."""
    batch, steps, points = increments.shape
    h, w, modes, stages = start.shape[2], len(layers.inner), layers.mixing.shape[1], STAGES[solver]
    total = batch * steps * stages
    out = start.new_empty(batch, steps, points, h)
    shapes = [(batch, steps * stages, points, h)] * 4 + [(modes, total, 2, h)]
    kept = SavedForBackward(*(start.new_empty(shape if keep else 0) for shape in shapes))
    weights = layers._replace(mixing=layers.mixing.mT.contiguous())
    _forward_kernel[(batch,)](
        start, increments, *weights, out, *kept, dt, steps, total, points, h, w, modes, stages, keep,
        *_sizes(points, modes, h, w), num_warps=WARPS, num_stages=1,
    )  # fmt: skip
    return out, kept


def backward(
    grad: Tensor, increments: Tensor, layers: Layers, kept: SavedForBackward, dt: float, solver: str
) -> tuple[Tensor | None, ...]:
    """Gradients of z_0 and of all `Layers` except the waves, from the gradient of z_1..z_N."""
    batch, steps, points = increments.shape
    h, w, modes, stages = grad.shape[3], len(layers.inner), layers.mixing.shape[1], STAGES[solver]
    total = batch * steps * stages
    to_start = grad.new_empty(batch, points, h)
    to_drift, to_spread, to_parts = (torch.empty_like(t) for t in (kept.drift, kept.spread, kept.spectrum))
    turned = [t.T.contiguous() for t in (layers.local, layers.inner, layers.outer, layers.noise)]
    local, inner, outer, noise = turned
    _backward_kernel[(batch,)](
        grad, increments, layers.waves, layers.mixing, local, inner, layers.inner, layers.inner_bias, outer, noise,
        kept.v, kept.drift, kept.spread, to_start, to_drift, to_spread, to_parts,
        dt, steps, total, points, h, w, modes, stages, *_sizes(points, modes, h, w), num_warps=WARPS, num_stages=1,
    )  # fmt: skip
    inside = layers.inner, layers.inner_bias, layers.outer, layers.outer_bias
    to_v, *to_inside = mlp_cuda.backward(to_drift, kept.v, *inside, "gelu")
    _, *to_local = linear_cuda.backward(to_v, kept.z, layers.local, to_x=False, bias=True)
    _, *to_noise = linear_cuda.backward(to_spread, kept.z, layers.noise, to_x=False, bias=True)
    to_mixing = _to_mixing(to_parts.flatten(2), kept.spectrum.flatten(2))
    return to_start, to_mixing, *to_local, *to_inside, *to_noise


def _to_mixing(g: Tensor, spectrum: Tensor) -> Tensor:
    """Gradients of P and Q from  Pa + Qb, Pb - Qa  and (a, b), both (k, E, 2h)."""
    h = g.shape[2] // 2
    of = gram(g, spectrum).view(-1, 2, h, 2, h)
    return torch.stack([of[:, 0, :, 0] + of[:, 1, :, 1], of[:, 0, :, 1] - of[:, 1, :, 0]])


def _sizes(points: int, modes: int, h: int, w: int) -> tuple[int, ...]:
    """Sizes of the tiles; products need 16 along each side, and there are two rows per mode."""
    rows, hidden = tile(points), tile(w)
    return rows, min(WARPS, rows // 16), tile(2 * modes) // 2, tile(h), hidden, min(hidden, PART)
