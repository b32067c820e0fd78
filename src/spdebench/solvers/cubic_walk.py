"""u' = S (g_n u + b u^3 + gain dW_n) for all steps of a block in one CUDA kernel, u staying on chip between them.

S is diagonal in Fourier space and even in every wave number, on a periodic cube of an odd number of points. The kernel
is `cubic_walk.cu`, which is compiled for the points when it is first needed.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from spdebench.accel.load import Launch, compiled
from spdebench.noise import Wiener
from spdebench.noise.lattice import Layer
from spdebench.solvers.cubic import CubicStep

KINDS = 8
"""Different factors that members may be multiplied by on their way to the grid."""

PROCESSOR_SHARED = 228 << 10
"""Bytes of shared memory of a multiprocessor; a thread block takes ``RESERVED`` more than it asks for."""

RESERVED = 1 << 10
OUTPUTS = {torch.float32: "float", torch.float64: "double"}


class CubicWalk:
    """(state, members, dw, u) -> state: the members of a block's noise in, its frames written to dw and u.

    A state is (u, n), n steps done; from the first block on u is kept as coefficients along its last axis, so that a
    path does not depend on how its steps are divided into blocks.
    """

    def __init__(self, launch: Launch, threads: int, step: CubicStep, tables: tuple[Tensor, ...]) -> None:
        self.launch, self.threads, self.step = launch, threads, step
        self.tables = tuple(table.to(step.growth.device) for table in tables)

    @staticmethod
    def of(damping: Tensor, step: CubicStep, wiener: Wiener, dtype: torch.dtype) -> CubicWalk | None:
        """The walk on the grid of ``wiener`` with S = ``damping``, divided by the number of points.

        None where the kernel does not serve: another grid, S, noise or ``dtype`` of frames, or no such device.
        """
        grid, n = wiener.grid, wiener.grid.points[0]
        if not (grid.periodic and grid.points == (n, n, n) and n % 2 == 1 and dtype in OUTPUTS):
            return None
        defines, threads, shared = _shape(n, dtype)
        launch = compiled("solvers/cubic_walk", "cubic_walk", defines, shared, step.growth.device)
        if launch is None or (layer := wiener.layer("cpu")) is None:
            return None
        damping, codes = damping.cpu(), _codes(layer, grid.spectral_shape[-1])
        if codes is None or not _even(damping):
            return None
        return CubicWalk(launch, threads, step, (*codes, _by_slots(damping)))

    def __call__(self, state: tuple[Tensor, int], members: Tensor, dw: Tensor, u: Tensor) -> tuple[Tensor, int]:
        """members (N T pairs); dw and u (N T X Y Z), frames of which lie behind each other in memory."""
        values, n = state
        if n == 0:
            values = _coefficients(values)
        members, steps, size = members.contiguous(), members.shape[1], math.prod(u.shape[2:])
        numbers = (self.step.growth[n:], self.step.factors)
        sizes = (steps, members.shape[2], u.stride(0) // size)
        self.launch(len(members), self.threads, (members, *self.tables, *numbers, values, dw, u, *sizes))
        return values, n + steps


def _shape(n: int, dtype: torch.dtype) -> tuple[tuple[tuple[str, str], ...], int, int]:
    """What the kernel is told of its size, its threads, and the bytes of shared memory that it needs."""
    half, number = (n + 1) // 2, torch.finfo(dtype).bits // 8
    columns = _warps(n * half)
    threads = max(2 * columns, _warps(n * n))
    shared = 16 * KINDS + 4 * number * half * n * n + 8 * n**3
    blocks = 2 if 2 * (shared + RESERVED) <= PROCESSOR_SHARED else 1
    angles = [2 * math.pi * m / n for m in range(n)]
    values = {
        "POINTS": n,
        "OUT": OUTPUTS[dtype],
        "THREADS": threads,
        "NOISE_THREADS": columns,
        "BLOCKS": blocks,
        "COSINES": "{" + ", ".join(repr(math.cos(a)) for a in angles) + "}",
        "SINES": "{" + ", ".join(repr(math.sin(a)) for a in angles) + "}",
    }
    return tuple((name, str(value)) for name, value in values.items()), threads, shared


def _warps(count: int) -> int:
    return -(-count // 32) * 32


def _even(damping: Tensor) -> bool:
    """Whether S (N, N, H) is the same at k_i and -k_i."""
    n = len(damping)
    mirror = -torch.arange(n) % n
    return torch.allclose(damping, damping[mirror], 1e-12, 0) and torch.allclose(damping, damping[:, mirror], 1e-12, 0)


def _by_slots(damping: Tensor) -> Tensor:
    """S (N, N, H) at k = 0..H-1 of the first axis and the N cosines and sines of the others, twice for each k_i > 0."""
    half = damping.shape[-1]
    k = torch.cat((torch.arange(half), torch.arange(1, half)))
    twice = torch.where(k > 0, 2.0, 1.0).to(torch.float64)
    table = damping[:half][:, k][:, :, k]
    return (table * twice[:half, None, None] * twice[:, None] * twice).contiguous()


def _codes(layer: Layer, half: int) -> tuple[Tensor, Tensor] | None:
    """A layer of factors (C, 2) as ``KINDS`` source + kind (C) and the factors of the kinds, twice those of k_d > 0."""
    source, factor = layer.source, layer.factor
    if factor.ndim != 2 or layer.target is not None or int(source.max()) >= (1 << 31) // KINDS:
        return None
    twice = torch.where(torch.arange(len(source)) % half > 0, 2.0, 1.0).to(torch.float64)
    (real, first), (imaginary, second) = (torch.unique(f * twice, return_inverse=True) for f in factor.unbind(1))
    pairs, kind = torch.unique(first * len(imaginary) + second, return_inverse=True)
    if len(pairs) > KINDS:
        return None
    table = torch.zeros((KINDS, 2), dtype=torch.float64)
    table[: len(pairs), 0], table[: len(pairs), 1] = real[pairs // len(imaginary)], imaginary[pairs % len(imaginary)]
    return (source * KINDS + kind).to(torch.int32), table


def _coefficients(u: Tensor) -> Tensor:
    """u (.. N) as c_0, cosines, sines along the last axis: u_j = c_0 + sum_k c_k cos(..) + c_{H-1+k} sin(..)."""
    c = torch.fft.rfft(u, norm="forward")
    return torch.cat((c.real[..., :1], 2 * c.real[..., 1:], -2 * c.imag[..., 1:]), dim=-1)
