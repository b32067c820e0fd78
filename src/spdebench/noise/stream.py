"""Gaussian numbers as a function: (seed, purpose, sample, node, mode) -> a pair of independent N(0,1).

    h      = M(s + g (mode+1)),          s = M(r + g (node+1)),   r = M(M(M(seed) + g purpose) + g (sample+1))
    v1, v2 = high and low 32 bits of h as signed integers:  u1 = 1/2 + (v1 + 1/2)/2^32,  u2 = v2/2^32
    a + ib = sqrt(-2 log u1) exp(2 pi i u2)                                         (Box-Muller)

M is the 64-bit finaliser "mix13" of Stafford, g the odd golden-ratio constant: along the modes of one node this is the
SplitMix64 generator (Steele, Lea, Flood 2014) from a random start. There is no state, so that any batch, worker,
truncation or order draws the same numbers; integers are exact on every device, and log, sqrt, sin, cos agree to
rounding. Values are bounded by sqrt(-2 log 2^-33) = 6.76 and spaced by about 1e-9: P(|a| > 6.76) = 1.4e-11.

The work is done in tiles that stay in the processor's cache; the result does not depend on the tiling.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import overload

import torch
from torch import Tensor

from spdebench import accel
from spdebench.noise.keyed import KeyedSeed, KeyedStates

STREAM = "splitmix64-boxmuller-1"
"""Name of this stream; it is stored in every file, and must be changed whenever the formula above changes."""

PURPOSES = {"noise": 1, "initial": 2, "fixed": 3, "study": 4, "member": 6, "fill": 7, "fill epoch": 8}
"""The number of each purpose in the formula; numbers drawn for different purposes are independent."""

_TILE = 1 << 15
_MASK64 = (1 << 64) - 1


def _signed(value: int) -> int:
    """The value modulo 2^64 as a signed 64-bit integer."""
    value = operator.index(value) & _MASK64  # a whole number of NumPy would overflow
    return value - (1 << 64) if value >> 63 else value


_GOLDEN = _signed(0x9E3779B97F4A7C15)
_M1, _M2 = _signed(0xBF58476D1CE4E5B9), _signed(0x94D049BB133111EB)


def _mix(h: Tensor, spare: Tensor) -> Tensor:
    """mix13 of ``h`` in place; ``spare`` is a buffer of the same shape. Masks undo the sign of arithmetic shifts."""
    for shift, factor in ((30, _M1), (27, _M2), (31, None)):
        torch.bitwise_right_shift(h, shift, out=spare)
        spare.bitwise_and_((1 << (64 - shift)) - 1)
        h.bitwise_xor_(spare)
        if factor is not None:
            h.mul_(factor)
    return h


def _mixed(h: Tensor) -> Tensor:
    """mix13 of ``h``, which changes."""
    return _mix(h, torch.empty_like(h))


Seed = int | KeyedSeed
"""Determines the noise of all samples: a number, or the keys of a challenge (`keyed`)."""
States = Tensor | KeyedStates
"""Where the random numbers of some samples start: r of the formula, one 64-bit state per sample; or keyed states."""


@overload
def sample_states(seed: int, purpose: str, samples: Sequence[int] | Tensor, device: torch.device | str) -> Tensor: ...
@overload
def sample_states(seed: Seed, purpose: str, samples: Sequence[int] | Tensor, device: torch.device | str) -> States: ...
def sample_states(seed: Seed, purpose: str, samples: Sequence[int] | Tensor, device: torch.device | str) -> States:
    """r of the formula for each sample: (samples,) int64, or keyed states if the seed is keyed."""
    if isinstance(seed, KeyedSeed):
        return seed.states(purpose, samples, device)
    index = torch.as_tensor(samples, dtype=torch.int64, device=device)
    root = _mixed(torch.tensor([_signed(seed)], dtype=torch.int64, device=device))
    root = _mixed(root + _signed(_GOLDEN * PURPOSES[purpose]))
    return _mixed(root + (index + 1) * _GOLDEN)


def member_states(
    seed: Seed, samples: Sequence[int] | Tensor, members: int | Sequence[int], device: torch.device | str
) -> States:
    """M(r + g member) for each sample, r with the purpose "member"; members 1, 2, .. are draws of a conditional law.

    ``members`` is one number for all samples or one for each.
    """
    if isinstance(seed, KeyedSeed):
        return seed.member_states(samples, members, device)
    index = torch.as_tensor(members, dtype=torch.int64, device=device)
    return _mixed(sample_states(seed, "member", samples, device) + index * _GOLDEN)


def numbered_states(states: Tensor, number: int) -> Tensor:
    """M(r + g (number+1)) for all states: makes the numbers depend on one more argument."""
    return _mixed(states + _signed(_GOLDEN * (number + 1)))


def _rows(states: States, nodes: Tensor) -> Tensor:
    """s of the formula for every sample and node: (samples * nodes,)."""
    if isinstance(states, KeyedStates):
        return states.at(nodes).reshape(-1)
    return _mixed(states[:, None] + (nodes[None, :] + 1) * _GOLDEN).reshape(-1)


def normal_pairs(states: States, nodes: Tensor, modes: Tensor, scale: float = 1.0) -> Tensor:
    """scale (a + ib) for every sample state, node and mode: complex128 of shape (samples, nodes, modes)."""
    rows = _rows(states, nodes)
    offsets = (modes + 1) * _GOLDEN
    width = offsets.numel()
    if rows.is_cuda and (kernels := accel.module("stream")):
        numbers: Tensor = kernels.box_muller(rows, offsets, scale, (_M1, _M2))
        return numbers.reshape(len(states), nodes.numel(), width)
    out = torch.empty((rows.numel(), width), dtype=torch.complex128, device=rows.device)
    step = max(1, _TILE // max(1, width)) if rows.device.type == "cpu" else rows.numel()
    scratch = _Scratch(min(step, rows.numel()), width, rows.device)
    for start in range(0, rows.numel(), step):
        scratch.box_muller(rows[start : start + step, None], offsets, scale, out[start : start + step])
    return out.reshape(len(states), nodes.numel(), width)


def split(path: Tensor, states: States, nodes: Tensor, modes: Tensor, scale: float) -> Tensor:
    """D + z and D - z, z = scale (a + ib), for each D in ``path`` (samples, nodes, modes).

    Returns (samples, 2 nodes, modes).
    """
    if path.is_cuda and (kernels := accel.module("stream")):
        rows = _rows(states, nodes)
        both: Tensor = kernels.box_muller(
            rows, (modes + 1) * _GOLDEN, scale, (_M1, _M2), path.reshape(-1, path.shape[-1])
        )
        return both.reshape(path.shape[0], -1, path.shape[-1])
    z = normal_pairs(states, nodes, modes, scale)
    fine = torch.empty((*path.shape[:2], 2, path.shape[2]), dtype=z.dtype, device=z.device)
    torch.add(path, z, out=fine[:, :, 0])
    torch.sub(path, z, out=fine[:, :, 1])
    return fine.flatten(1, 2)


class _Scratch:
    """The buffers for one tile; every tile uses them again."""

    def __init__(self, rows: int, width: int, device: torch.device) -> None:
        self.integers = torch.empty((2, rows, width), dtype=torch.int64, device=device)
        self.reals = torch.empty((2, rows, width), dtype=torch.float64, device=device)

    def box_muller(self, rows: Tensor, offsets: Tensor, scale: float, out: Tensor) -> None:
        """Write scale (a + ib) of the states s = ``rows`` (rows, 1) and all modes into ``out`` (rows, modes)."""
        h, spare = self.integers[:, : len(rows)]
        radius, angle = self.reals[:, : len(rows)]
        _mix(torch.add(rows, offsets, out=h), spare)
        words = h.view(torch.int32).unflatten(-1, (-1, 2))  # little endian: low word first
        angle.copy_(words[..., 0]).mul_(2 * math.pi / 2**32)
        radius.copy_(words[..., 1]).add_(0.5 + 2.0**31).mul_(2.0**-32).log_().mul_(-2.0 * scale * scale).sqrt_()
        parts = torch.view_as_real(out)
        sines = spare.view(torch.float64)  # the buffer is free again
        torch.mul(radius, torch.sin(angle, out=sines), out=parts[..., 1])
        torch.mul(radius, angle.cos_(), out=parts[..., 0])
