"""FNO's trunk: Fourier layers on lifted space-time fields, then a pointwise decoder.

    h <- gelu( F^-1[ W(w, k) F h ] + V h + b ),  the last one without gelu;  u = q(gelu(p(h)))

(Li et al. 2021, arXiv:2010.08895.) The time axis is extended by ``padding`` frames of zeros, so that the periodic
transform does not join t_T to t_0; space is never extended.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from spdebench.models.layers.linear import TallLinear
from spdebench.models.layers.mixing import mix
from spdebench.models.layers.mlp import MLP
from spdebench.models.layers.skip import skip
from spdebench.models.layers.spectral import FourierTransform, Modes
from spdebench.tasks import Setting


class SpectralWeights(nn.Module):
    """One complex C x C matrix per mode. Real (2, W, K.., C, C) or, ``published``, complex (W, K.., C, C).

    Initial values U[0,1)(1+i)/C^2, as in the authors' code (centred or larger ones did not train differently). At w = 0
    the modes k and -k act through one sum, and at w = k = 0 the imaginary part has no effect, as in FNO.
    """

    def __init__(self, modes: Modes, width: int, *, published: bool = False) -> None:
        super().__init__()
        values = torch.rand(2, *modes.shape, width, width) / width**2
        self.weight = nn.Parameter(torch.complex(values[0], values[1]) if published else values)

    def forward(self, z: Tensor) -> Tensor:
        """(2, W, K.., B, C) -> the same shape."""
        if self.weight.is_complex():
            return mix(z, torch.view_as_real(self.weight).movedim(-1, 0).contiguous())
        return mix(z, self.weight)


class FourierTrunk(nn.Module):
    """Fourier layers on lifted space-time fields, then the decoder.

    ``modes``: space axes, then time, FNO's way of counting (k = -m..m-1, w = 0..m_t-1). ``lengths``, (T, X..), is the
    shape it will mostly see, for which the transforms are prepared at once.
    """

    def __init__(
        self,
        width: int,
        layers: int,
        modes: tuple[int, ...],
        *,
        padding: int = 6,
        published: bool = False,
        lengths: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        kept = Modes.half(modes)
        self.padding = padding
        padded = None if lengths is None else (lengths[0] + padding, *lengths[1:])
        self.fourier = FourierTransform(kept, padded)
        self.spectral = nn.ModuleList(SpectralWeights(kept, width, published=published) for _ in range(layers))
        self.local = nn.ModuleList(TallLinear(width, width) for _ in range(layers))
        self.decode = MLP(width, 128, 1)

    @staticmethod
    def largest_modes(setting: Setting) -> tuple[int, ...]:
        """The largest ``modes`` that the grid of the data resolves."""
        return (*(n // 2 for n in setting.grid.points), setting.frames // 2 + 1)

    def forward(self, h: Tensor) -> Tensor:
        """(B, T, X.., width) -> u (B, T, X..).

        It is fastest on a view of a (T, X.., B, width) array: there samples are next to the channels, so that the
        transforms along the other axes are few large products.
        """
        h = h.movedim(0, -2).contiguous()
        frames = len(h)
        lengths = (frames + self.padding, *h.shape[1:-2])
        last = len(self.local) - 1
        for i, (spectral, local) in enumerate(zip(self.spectral, self.local, strict=True)):
            kept = frames if i == last else lengths[0]  # padded frames: 0 before the first layer, unused after the last
            assert isinstance(local, TallLinear)
            far = self.fourier.inverse(spectral(self.fourier(h, lengths[0])), lengths, kept)
            h = skip(h, local.weight, local.bias, far, None if i == last else "gelu")
        out: Tensor = self.decode(h).squeeze(-1).movedim(-1, 0).contiguous()
        return out
