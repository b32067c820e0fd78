"""Truncated Fourier transforms over space and time as real matrix products.

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
from spdebench.models.layers.contract import apply_matrix
from spdebench.models.layers.precision import full_precision, wide


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
    """The transform for the given modes. Its matrices are kept for one shape (T, X..) and rebuilt for another one.

    If ``doubled``, the inverse counts every mode twice, also those with w = 0: for spectra that contain only one of
    each pair of conjugate modes. Otherwise a_w is that of ``irfft``: 1 for w = 0 and w = T/2, else 2.
    """

    def __init__(self, modes: Modes, lengths: Sequence[int] | None = None, *, doubled: bool = False) -> None:
        super().__init__()
        self.modes, self.doubled = modes, doubled
        self.lengths: tuple[int, ...] = ()
        if lengths is not None:
            self._build(tuple(lengths), torch.device("cpu"), torch.get_default_dtype())

    def forward(self, h: Tensor, frames: int | None = None) -> Tensor:
        """(T, X.., B, C) -> (2, W, K.., B, C); ``frames`` is the length of the time axis if zeros follow h."""
        self._fit((frames or h.shape[0], *h.shape[1:-2]), wide(h[:0]))
        time, *space = self._matrices("ahead")
        with full_precision(h):
            return _transform(wide(h), True, self.modes, [time[:, : h.shape[0]], *space])

    def inverse(self, z: Tensor, lengths: Sequence[int], frames: int | None = None) -> Tensor:
        """(2, W, K.., B, C) -> (T, X.., B, C) on a grid of ``lengths``; only the first ``frames`` if given."""
        self._fit(tuple(lengths), wide(z[:0]))
        time, *space = self._matrices("back")
        with full_precision(z):
            return _transform(wide(z), False, self.modes, [time[:, :frames], *space])

    # --- matrices -------------------------------------------------------------------------------------------------
    def _matrices(self, which: str) -> list[Tensor]:
        """The matrices of all axes: of the transform (``ahead``) or of its inverse (``back``)."""
        return [getattr(self, f"{which}_{axis}") for axis in range(len(self.lengths))]

    def _fit(self, lengths: tuple[int, ...], like: Tensor) -> None:
        """Build the matrices again if the grid has changed."""
        if lengths != self.lengths:
            self._build(lengths, like.device, like.dtype)

    def _build(self, lengths: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> None:
        """Register the matrices as buffers that are not in the state dict.

        They are made outside inference mode, so that training can use them later.
        """
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
        """a_w for w = 0..top, once for the cosines and once for the sines."""
        a = torch.full((top + 1,), 2.0, dtype=torch.float64)
        if not self.doubled:
            a[0] = 1.0
            if 2 * top == n:
                a[top] = 1.0
        return a.repeat(2)


def _waves(n: int, top: int, *, with_zero_sine: bool) -> Tensor:
    """Rows cos(2 pi k j/n), k = 0..top, then -sin(2 pi k j/n), k = 1..top or ``with_zero_sine`` 0..top; j = 0..n-1."""
    k = torch.arange(top + 1)
    angle = 2 * math.pi / n * (k[:, None] * torch.arange(n) % n).to(torch.float64)
    return torch.cat([torch.cos(angle), -torch.sin(angle)[0 if with_zero_sine else 1 :]])


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
    """A h: cosine and sine sums along every axis in the cheapest order, then sums and differences of these."""
    tail = h.shape[len(matrices) :]
    for axis in _order(matrices):
        h = apply_matrix(matrices[axis], h, axis)
    z = h.reshape(2, modes.time, *h.shape[1 : len(matrices)], -1)
    for axis, (low, high) in enumerate(zip(modes.negative, modes.positive, strict=True)):
        z = _join(z, axis + 2, low, high)
    return z.reshape(*z.shape[:-1], *tail)


def _synthesise(z: Tensor, modes: Modes, matrices: Sequence[Tensor]) -> Tensor:
    """A^T z: the transposed steps of `_analyse` in reverse order."""
    tail = z.shape[len(matrices) + 1 :]
    z = z.reshape(*z.shape[: len(matrices) + 1], -1)
    for axis, (low, high) in enumerate(zip(modes.negative, modes.positive, strict=True)):
        z = _part(z, axis + 2, low, high)
    h = z.flatten(0, 1)
    for axis in reversed(_order(matrices)):
        h = apply_matrix(matrices[axis].T, h, axis)
    return h.reshape(*h.shape[:-1], *tail)


def _order(matrices: Sequence[Tensor]) -> list[int]:
    """The cheapest order of contractions with matrices (m, n).

    Axis i before axis j costs m_i n_i n_j + m_i m_j n_j, and j before i costs m_j n_i n_j + m_i m_j n_i: i goes first
    if 1/n_i - 1/m_i is smaller than 1/n_j - 1/m_j.
    """
    return sorted(range(len(matrices)), key=lambda a: 1 / matrices[a].shape[1] - 1 / matrices[a].shape[0])


def _join(z: Tensor, axis: int, low: int, high: int) -> Tensor:
    """Along an axis c_0..c_M, s_1..s_M -> c_k - i s_k at -k (k = 1..low), c_0, c_k + i s_k at k (k = 1..high).

    c and s are complex numbers; their real and imaginary parts are along the first axis.
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
    """i z, for complex numbers as pairs (real, imaginary) along the first axis."""
    return torch.stack([-z[1], z[0]])
