"""Truncated Fourier transforms over space and time as real matrix products, and the mixing of channels mode by mode.

    z(w, k) = sum_{t,x} h(t, x) exp(-i (w t' + k x')),  t' = 2 pi t/T, x' = 2 pi x/N
    h(t, x) = Re sum_{w,k} a_w z(w, k) exp(i (w t' + k x')) / (T N..)

Only kept modes are computed, 0 <= w < W and -negative <= k <= positive along each space axis. Arrays have the axes
(T, X.., B, C), spectra (2, W, K.., B, C) with real and imaginary part first, so that every step is a large product of
real matrices: cosines and sines along each axis (any length is as fast as any other; 51 and 57 frames are bad sizes for
an FFT), then sums and differences that turn them into exponentials, and one matrix product per mode with the samples as
rows. There are no complex tensors, no zero-filled buffers and no branches on data. Gradients are written out below, but
torch.compile gets the same sums without them and differentiates them itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from spdebench import accel
from spdebench.errors import UserError


@dataclass(frozen=True)
class Modes:
    """The kept modes: w = 0..time-1, and k = -negative..positive along each space axis, in this order along the array:
    -1, -2, .., -negative, 0, 1, .., positive."""

    time: int
    negative: tuple[int, ...]
    positive: tuple[int, ...]

    @staticmethod
    def half(modes: Sequence[int]) -> Modes:
        """FNO's way of counting, (m.., m_t): k = -m..m-1 and w = 0..m_t-1."""
        return Modes(modes[-1], tuple(modes[:-1]), tuple(m - 1 for m in modes[:-1]))

    @staticmethod
    def symmetric(tops: Sequence[int]) -> Modes:
        """|k| <= tops[i] and 0 <= w <= tops[-1]."""
        return Modes(tops[-1] + 1, tuple(tops[:-1]), tuple(tops[:-1]))

    @property
    def space(self) -> tuple[int, ...]:
        """Number of modes along each space axis."""
        return tuple(a + b + 1 for a, b in zip(self.negative, self.positive, strict=True))

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.time, *self.space)

    def numbers(self, axis: int) -> list[int]:
        """k along a space axis (0-based), in the order of the array."""
        return [*range(-1, -self.negative[axis] - 1, -1), *range(self.positive[axis] + 1)]

    def fits(self, lengths: Sequence[int]) -> bool:
        """Whether these modes are distinct on a grid of (T, X..) points."""
        return self.time <= lengths[0] // 2 + 1 and all(k <= n for k, n in zip(self.space, lengths[1:], strict=True))


class FourierTransform(nn.Module):
    """The transform for some modes; matrices are kept for one shape (T, X..) and rebuilt when another one comes.

    ``doubled`` counts every mode twice in the inverse, w = 0 too: for spectra of which only one of each pair of
    conjugate modes is given. Otherwise a_w is that of ``irfft``: 1 for w = 0 and w = T/2, else 2.
    """

    def __init__(self, modes: Modes, lengths: Sequence[int] | None = None, *, doubled: bool = False) -> None:
        super().__init__()
        self.modes, self.doubled = modes, doubled
        self.lengths: tuple[int, ...] = ()
        if lengths is not None:
            self._build(tuple(lengths), torch.device("cpu"), torch.get_default_dtype())

    def forward(self, h: Tensor, frames: int | None = None) -> Tensor:
        """(T, X.., B, C) -> (2, W, K.., B, C); ``frames`` is the length of the time axis if zeros follow h."""
        self._fit((frames or h.shape[0], *h.shape[1:-2]), _wide(h[:0]))
        time, *space = self._matrices("ahead")
        with _full_precision(h):
            return _transform(_wide(h), True, self.modes, [time[:, : h.shape[0]], *space])

    def inverse(self, z: Tensor, lengths: Sequence[int], frames: int | None = None) -> Tensor:
        """(2, W, K.., B, C) -> (T, X.., B, C) on a grid of ``lengths``; only the first ``frames`` if given."""
        self._fit(tuple(lengths), _wide(z[:0]))
        time, *space = self._matrices("back")
        with _full_precision(z):
            return _transform(_wide(z), False, self.modes, [time[:, :frames], *space])

    # --- matrices -------------------------------------------------------------------------------------------------
    def _matrices(self, which: str) -> list[Tensor]:
        return [getattr(self, f"{which}_{axis}") for axis in range(len(self.lengths))]

    def _fit(self, lengths: tuple[int, ...], like: Tensor) -> None:
        if lengths != self.lengths:
            self._build(lengths, like.device, like.dtype)

    def _build(self, lengths: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> None:
        """Buffers that the state dict leaves out; made outside inference mode, so that training may use them later."""
        if not self.modes.fits(lengths):
            raise UserError(
                f"spectral layer: {self.modes.shape} modes (time, space) do not fit {lengths} points; "
                f"choose fewer modes, or more points"
            )
        tops = [self.modes.time - 1, *map(max, self.modes.negative, self.modes.positive)]
        with torch.inference_mode(False):
            for axis, (n, top) in enumerate(zip(lengths, tops, strict=True)):
                ahead = _waves(n, top, with_zero_sine=axis == 0)
                back = ahead / n
                if axis == 0:
                    back = back * self._multiplicity(n, top)[:, None]
                for name, matrix in (("ahead", ahead), ("back", back)):
                    self.register_buffer(f"{name}_{axis}", matrix.to(device, dtype), persistent=False)
        self.lengths = lengths

    def _multiplicity(self, n: int, top: int) -> Tensor:
        a = torch.full((top + 1,), 2.0, dtype=torch.float64)
        if not self.doubled:
            a[0] = 1.0
            if 2 * top == n:
                a[top] = 1.0
        return a.repeat(2)


def _full_precision(like: Tensor) -> torch.autocast:
    """Sums over whole axes lose too much in half precision, so autocast is switched off."""
    return torch.autocast(like.device.type, enabled=False)


def _wide(values: Tensor) -> Tensor:
    """bfloat16 and float16 as float32; the rest as it is."""
    return values.float() if values.dtype.itemsize < 4 else values


def _waves(n: int, top: int, *, with_zero_sine: bool) -> Tensor:
    """Rows cos(2 pi k j/n), k = 0..top, then -sin(2 pi k j/n), k = 1..top (from 0 where asked), j = 0..n-1."""
    k = torch.arange(top + 1)
    angle = 2 * math.pi / n * (k[:, None] * torch.arange(n) % n).to(torch.float64)
    return torch.cat([torch.cos(angle), -torch.sin(angle)[0 if with_zero_sine else 1 :]])


# --- a matrix along one axis --------------------------------------------------------------------------------------
def contract(matrix: Tensor, h: Tensor, axis: int) -> Tensor:
    """out(.., j, ..) = sum_k M(j, k) h(.., k, ..), M (m, n) a constant and n the length of this axis of h."""
    with _full_precision(h):
        if torch.compiler.is_compiling():
            return _contract(matrix, _wide(h), axis)
        return _Contraction.apply(_wide(h), matrix, axis)  # type: ignore[no-any-return,no-untyped-call]


class _Contraction(torch.autograd.Function):
    """M h, whose gradient is M' g."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, matrix: Tensor, axis: int) -> Tensor:
        ctx.axis = axis
        ctx.save_for_backward(matrix)
        return _contract(matrix, h, axis)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (matrix,) = ctx.saved_tensors
        return _contract(matrix.T, grad, ctx.axis), None, None


def _contract(matrix: Tensor, h: Tensor, axis: int) -> Tensor:
    """matrix (m, n) along an axis of length n: one product, or one for each index of the axes before it."""
    before, after = h.shape[:axis], h.shape[axis + 1 :]
    flat = h.reshape(math.prod(before), matrix.shape[1], math.prod(after))
    return _product(matrix, flat).reshape(*before, matrix.shape[0], *after)


def _product(matrix: Tensor, h: Tensor) -> Tensor:
    """M (m, n) times h (l, n, r): (l, m, r)."""
    if (cuda := accel.kernels("contract", (h, matrix), matrix, h)) is not None:
        return cuda.contract(matrix, h.contiguous())  # type: ignore[no-any-return]
    return (matrix @ h[0])[None] if len(h) == 1 else torch.bmm(matrix.expand(len(h), -1, -1), h)


# --- the two linear maps, each the other's adjoint ----------------------------------------------------------------
def _transform(x: Tensor, ahead: bool, modes: Modes, matrices: Sequence[Tensor]) -> Tensor:
    """``ahead``: z = A x; else h = A^T x."""
    if torch.compiler.is_compiling():
        return (_analyse if ahead else _synthesise)(x, modes, matrices)
    return _Transform.apply(x, ahead, modes, *matrices)  # type: ignore[no-any-return,no-untyped-call]


class _Transform(torch.autograd.Function):
    """``ahead``: z = A h, whose gradient is A^T g; else h = A^T z, whose gradient is A g."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, ahead: bool, modes: Modes, *matrices: Tensor) -> Tensor:
        ctx.ahead, ctx.modes = ahead, modes
        ctx.save_for_backward(*matrices)
        return (_analyse if ahead else _synthesise)(x, modes, matrices)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        matrices = ctx.saved_tensors
        back = (_synthesise if ctx.ahead else _analyse)(grad, ctx.modes, matrices)
        return (back, None, None, *(None,) * len(matrices))


def _analyse(h: Tensor, modes: Modes, matrices: Sequence[Tensor]) -> Tensor:
    """Cosine and sine sums along every axis in the cheapest order; then exponentials."""
    tail = h.shape[len(matrices) :]
    for axis in _order(matrices):
        h = _contract(matrices[axis], h, axis)
    z = h.reshape(2, modes.time, *h.shape[1 : len(matrices)], -1)
    for axis, (low, high) in enumerate(zip(modes.negative, modes.positive, strict=True)):
        z = _join(z, axis + 2, low, high)
    return z.reshape(*z.shape[:-1], *tail)


def _synthesise(z: Tensor, modes: Modes, matrices: Sequence[Tensor]) -> Tensor:
    """The transpose of `_analyse`, step by step backwards."""
    tail = z.shape[len(matrices) + 1 :]
    z = z.reshape(*z.shape[: len(matrices) + 1], -1)
    for axis, (low, high) in enumerate(zip(modes.negative, modes.positive, strict=True)):
        z = _part(z, axis + 2, low, high)
    h = z.flatten(0, 1)
    for axis in reversed(_order(matrices)):
        h = _contract(matrices[axis].T, h, axis)
    return h.reshape(*h.shape[:-1], *tail)


def _order(matrices: Sequence[Tensor]) -> list[int]:
    """The cheapest order of contractions with matrices (m, n).

    Axis i before axis j costs m_i n_i n_j + m_i m_j n_j, the other way round m_j n_i n_j + m_i m_j n_i: i goes first if
    1/n_i - 1/m_i is the smaller.
    """
    return sorted(range(len(matrices)), key=lambda a: 1 / matrices[a].shape[1] - 1 / matrices[a].shape[0])


def _join(z: Tensor, axis: int, low: int, high: int) -> Tensor:
    """Along an axis c_0..c_M, s_1..s_M -> c_k - i s_k at -k (k = 1..low), c_0, c_k + i s_k at k (k = 1..high).

    c and s are complex numbers, their parts along the first axis.
    """
    if (cuda := accel.kernels("spectral", (z,))) is not None:
        return cuda.join(z, axis, low, high)  # type: ignore[no-any-return]
    top = max(low, high)
    c, s = z.narrow(axis, 0, top + 1), _turned(z.narrow(axis, top + 1, top))
    below = c.narrow(axis, 1, low) - s.narrow(axis, 0, low)
    above = c.narrow(axis, 1, high) + s.narrow(axis, 0, high)
    return torch.cat([below, c.narrow(axis, 0, 1), above], axis)


def _part(z: Tensor, axis: int, low: int, high: int) -> Tensor:
    """The transpose of `_join`."""
    if (cuda := accel.kernels("spectral", (z,))) is not None:
        return cuda.part(z, axis, low, high)  # type: ignore[no-any-return]
    both = min(low, high)
    below, middle, above = z.split([low, 1, high], axis)
    shared_below, shared_above = below.narrow(axis, 0, both), above.narrow(axis, 0, both)
    c, s = [middle, shared_below + shared_above], [shared_above - shared_below]
    if low > both:  # modes of one sign only
        c, s = [*c, below.narrow(axis, both, low - both)], [*s, -below.narrow(axis, both, low - both)]
    if high > both:
        c, s = [*c, above.narrow(axis, both, high - both)], [*s, above.narrow(axis, both, high - both)]
    return torch.cat([*c, *(-_turned(part) for part in s)], axis)


def _turned(z: Tensor) -> Tensor:
    """i z."""
    return torch.stack([-z[1], z[0]])


# --- mixing -------------------------------------------------------------------------------------------------------
def mix(z: Tensor, weight: Tensor) -> Tensor:
    """y(mode) = z(mode) W(mode), complex products: z (2, modes.., B, C), W (2, modes.., C, D) -> (2, modes.., B, D)."""
    with _full_precision(z):
        modes, matrices = _wide(z).reshape(2, -1, *z.shape[-2:]), weight.reshape(2, -1, *weight.shape[-2:])
        product = _complex_product if torch.compiler.is_compiling() else _Mixing.apply
        flat: Tensor = product(modes, matrices)
    return flat.reshape(*z.shape[:-1], -1)


def _complex_product(z: Tensor, weight: Tensor) -> Tensor:
    """z W for every mode: four real products."""
    (a, b), (p, q) = z.unbind(0), weight.unbind(0)
    return torch.stack([a.bmm(p).baddbmm(b, q, alpha=-1), b.bmm(p).baddbmm(a, q)])


class _Mixing(torch.autograd.Function):
    """z W for every mode; the gradients are g W^H and z^H g."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(z, weight)
        y: Tensor = _kernels(z, weight).apply(z, weight)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        z, weight = ctx.saved_tensors
        grad = grad.contiguous()
        kernels = _kernels(z, weight)
        to_z = kernels.apply(grad, weight, adjoint=True) if ctx.needs_input_grad[0] else None
        to_weight = kernels.weight_gradient(z, grad) if ctx.needs_input_grad[1] else None
        return to_z, to_weight


def _kernels(z: Tensor, weight: Tensor) -> Any:
    """The products of each mode: GPU kernels where they can be used, else batched products of torch."""
    return accel.kernels("spectral", (z, weight), z, weight) or _Batched


class _Batched:
    """Four real products per mode, accumulated in place."""

    @staticmethod
    def apply(z: Tensor, weight: Tensor, *, adjoint: bool = False) -> Tensor:
        (a, b), (p, q) = z.unbind(0), (weight.mT if adjoint else weight).unbind(0)
        sign = -1 if adjoint else 1
        y = z.new_empty(*z.shape[:-1], p.shape[-1])
        y[0].baddbmm_(a, p, beta=0).baddbmm_(b, q, alpha=-sign)
        y[1].baddbmm_(b, p, beta=0).baddbmm_(a, q, alpha=sign)
        return y

    @staticmethod
    def weight_gradient(z: Tensor, grad: Tensor) -> Tensor:
        (a, b), (r, s) = z.mT.unbind(0), grad.unbind(0)
        out = z.new_empty(2, z.shape[1], z.shape[-1], grad.shape[-1])
        out[0].baddbmm_(a, r, beta=0).baddbmm_(b, s)
        out[1].baddbmm_(a, s, beta=0).baddbmm_(b, r, alpha=-1)
        return out
