"""The coarse part of a wavelet transform as two small matrices per axis, and the layer of a wavelet operator.

One step of the transform with filters of length L and half-sample symmetric ends (..x_1 x_0 | x_0 x_1..):
    low_i = sum_j g_j x_{2i+1-j},   high_i = sum_j d_j x_{2i+1-j},   i < (n + L - 1) // 2
    x_m = sum_i h_{m+L-2-2i} low_i + e_{m+L-2-2i} high_i
with h the scaling filter, g_j = h_{L-1-j}, d_j = (-1)^{j+1} h_j, e_j = d_{L-1-j}. The inverse of an odd length drops
its last sample. Conventions are those of PyWavelets (mode "symmetric").

Over (t, x) and ``level`` steps the coarsest approximation and the three coarsest detail bands are exactly
    c = A_t v A_x',   A = [low_level; high_level] along each axis,
and finer bands are left alone by the layer. So, as the transform reconstructs perfectly, with M the learned matrices
    inverse(M c, fine) = v + S_t ((M - 1) c) S_x',
and the fine bands are never computed. The plain way computes all bands of all levels, forwards and backwards.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from spdebench.errors import UserError
from spdebench.models.layers.contract import contract
from spdebench.models.layers.skip import skip
from spdebench.models.layers.wavelet_filters import scaling_filter


def steps(n: int, length: int, level: int) -> list[int]:
    """The lengths of an axis of n points before and after 1..level steps with filters of ``length`` taps."""
    out = [n]
    for _ in range(level):
        out.append((out[-1] + length - 1) // 2)
    return out


def largest_level(n: int, wavelet: str) -> int:
    """The number of steps that shorten an axis of n points; a step lengthens an axis that is shorter than the filter.

    Beyond the level at which the filter outgrows what is left, log2(n / (L-1)), coefficients are dominated by the
    reflected ends; the paper's level 4 at 128 and 57 points lies there (3 and 2), so it is no limit here.
    """
    length = len(scaling_filter(wavelet))
    level = 0
    while (shorter := (n + length - 1) // 2) < n:
        n, level = shorter, level + 1
    return level


def analysis(n: int, wavelet: str) -> tuple[np.ndarray, np.ndarray]:
    """One step as matrices: low and high, each (n + L - 1) // 2 by n."""
    h = np.array(scaling_filter(wavelet))
    length = len(h)
    taps = np.arange(length)
    rows = np.arange((n + length - 1) // 2)
    place = 2 * rows[:, None] + 1 - taps
    place = place % (2 * n)
    place = np.where(place < n, place, 2 * n - 1 - place)  # reflection, several times if n < L
    low, high = np.zeros((2, len(rows), n))
    np.add.at(low, (rows[:, None], place), h[::-1])
    np.add.at(high, (rows[:, None], place), (-1.0) ** (taps + 1) * h)
    return low, high


def synthesis(n: int, wavelet: str) -> tuple[np.ndarray, np.ndarray]:
    """One step back to n samples: matrices for low and high, each n by (n + L - 1) // 2."""
    h = np.array(scaling_filter(wavelet))
    length = len(h)
    filters = h, ((-1.0) ** (np.arange(length) + 1) * h)[::-1]
    tap = np.arange(n)[:, None] + length - 2 - 2 * np.arange((n + length - 1) // 2)
    inside = (tap >= 0) & (tap < length)
    low, high = (np.where(inside, f[tap.clip(0, length - 1)], 0.0) for f in filters)
    return low, high


def coarse(n: int, wavelet: str, level: int) -> tuple[np.ndarray, np.ndarray]:
    """A (2k by n) and S (n by 2k) for the coarsest low and high bands, k coefficients each, of ``level`` steps."""
    if level < 1 or level > largest_level(n, wavelet):
        raise UserError(
            f"wavelet {wavelet}: {n} points carry levels 1 to {largest_level(n, wavelet)}, got {level}; "
            f"take a lower level, more points or a shorter wavelet (db1 = haar is the shortest)"
        )
    forth, back = np.eye(n), np.eye(n)
    lengths = steps(n, len(scaling_filter(wavelet)), level)
    for m in lengths[:-2]:
        forth = analysis(m, wavelet)[0] @ forth
        back = back @ synthesis(m, wavelet)[0]
    return np.vstack(analysis(lengths[-2], wavelet)) @ forth, back @ np.hstack(synthesis(lengths[-2], wavelet))


class WaveletLayer(nn.Module):
    """v -> v + S_t ((M - 1) A_t v A_x') S_x' + K v + b: a learned C x C matrix M per coarse coefficient, K pointwise.

    v is (B, T, X, C). ``weight`` (coefficients, C, C) holds the four coarsest bands: low and high in t times low and
    high in x. At first M is small, so that the layer starts as fine bands plus K v, as in the authors' code.
    """

    forth_t: Tensor
    forth_x: Tensor
    back_t: Tensor
    back_x: Tensor
    eye: Tensor

    def __init__(self, width: int, shape: tuple[int, int], wavelet: str, level: int) -> None:
        super().__init__()
        for axis, n in zip("tx", shape, strict=True):
            forth, back = coarse(n, wavelet, level)
            self.register_buffer(f"forth_{axis}", torch.from_numpy(forth).float(), persistent=False)
            self.register_buffer(f"back_{axis}", torch.from_numpy(back).float(), persistent=False)
        self.register_buffer("eye", torch.eye(width), persistent=False)
        count = len(self.forth_t) * len(self.forth_x)
        self.weight = nn.Parameter(torch.rand(count, width, width) / width**2)
        self.pointwise = nn.Linear(width, width)

    def forward(self, v: Tensor, frames: int | None = None, activation: Literal["gelu"] | None = None) -> Tensor:
        """(B, T, X, C) -> (B, T', X, C). Frames that v lacks count as 0; with ``frames`` only the first are computed.

        It is fastest on a view of a (T, X, B, C) array, and such a view is what it returns.
        """
        h = v.movedim(0, -2).contiguous()
        bands = contract(self.forth_x, contract(self.forth_t[:, : len(h)], h, 0), 1)
        flat = bands.flatten(0, 1)
        change = torch.baddbmm(flat, flat, self.weight, beta=-1).view_as(bands)
        far = contract(self.back_t[:frames], contract(self.back_x, change, 1), 0)
        return skip(h, self.pointwise.weight + self.eye, self.pointwise.bias, far, activation).movedim(-2, 0)
