"""Neural SPDE:  z^{j+1} = S_t z_0 + S * ( F(z^j) + G(z^j) xi ),  z^0 = S_t z_0,  u = R(z).

(Salvi, Lemercier, Gerasimovics 2022, arXiv:2110.10249.) z_0 lifts u_0; S is a learned kernel, one matrix for each kept
mode of space and time; F and G act point by point (1x1, normalisation, tanh); R is a perceptron. Since
(S * H)(t) = sum_s S(t-s) H(s), S_t z_0 is the convolution with the field that is z_0 at t_0 and 0 later: one kernel,
one transform, and z_0 is transformed in space only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from spdebench.errors import UserError
from spdebench.models.base import Config, Features, OperatorModel
from spdebench.models.layers.gate import gate
from spdebench.models.layers.linear import Linear
from spdebench.models.layers.mlp import MLP
from spdebench.models.layers.normalise import fit_units
from spdebench.models.layers.spectral import Fourier, Modes, mix
from spdebench.tasks import Batch, Setting


@dataclass(frozen=True, kw_only=True)
class NSPDEConfig(Config):
    """``modes``: how many along each space axis, then along time (`RealKernel` says which). ``padding``: frames of
    zeros appended in time, against the wrapping of the periodic transform; the band of frequencies stays."""

    hidden: int = 32
    picard: int = 1
    modes: tuple[int, ...] = (64, 50)
    padding: int = 0
    form: Literal["default", "published"] = "default"


class NSPDE(OperatorModel, name="nspde"):
    """NSPDE; the paper's counts are those of ``form="published"``: 3,283,457 on phi41.

    dw, u_0 and u are measured in units of their root mean squares over the training part. Where the reference is wrong:
    it embeds the spectrum of S_t with negative frequencies in the place of positive ones, so that S_t is not the S of
    S * H (here they are one); half of the real numbers of its complex kernel are redundant in S * H (the default form
    keeps a real kernel); it transforms z_0 once a frame; it never calls ``eval``. It could not: all Picard iterates
    share the running statistics of one normalisation, which then fit none of them. Here each iterate has its own
    (`IterateNorm`). "published" has the full complex kernel, correctly embedded, and biases that the normalisation
    takes away again.

    Nothing but S carries noise to u, so that modes left out are lost. On phi43, where energy is spread evenly over |k|,
    8 of 17 modes an axis leave a relative error of 0.81 (linear solution, all frames), 4 leave 0.93, all leave none.
    """

    title = "NSPDE"
    config_class = NSPDEConfig
    dims: ClassVar[tuple[int, ...]] = (1, 2, 3)
    any_grid = True

    config: NSPDEConfig
    scales: Tensor

    def __init__(self, setting: Setting, config: NSPDEConfig) -> None:
        super().__init__(setting, config)
        width, published = config.hidden, config.form == "published"
        lengths = (setting.frames + config.padding, *setting.grid.points)
        self.embed = nn.Linear(1, width)
        self.kernel: RealKernel | ComplexKernel = (
            ComplexKernel(config.modes, width)
            if published
            else RealKernel(_tops(config.modes, lengths, setting.frames), width, lengths)
        )
        self.local = Linear(width, 2 * width, bias=published)  # of F, then of G
        self.norm = IterateNorm(2 * width, config.picard)
        self.readout = MLP(width, 128, 1, "relu")
        self.register_buffer("scales", torch.ones(3))  # of dw, u0, u

    @classmethod
    def largest_modes(cls, setting: Setting) -> tuple[int, ...]:
        return (*setting.grid.points, setting.frames)

    def prepare(self, batch: Batch) -> Features:
        if batch.dw.shape[1] != self.setting.frames:
            raise UserError(
                f"model '{self.name}' was built for {self.setting.frames} frames, got {batch.dw.shape[1]}; "
                f"other points are fine, other frames are not: its kernel counts in frames"
            )
        return {"dw": batch.dw, "u0": batch.u0}

    @torch.no_grad()
    def calibrate(self, features: Features, target: Tensor) -> None:
        dw, u0 = features["dw"], features["u0"]
        fit_units(self.scales, dw[:, 1:], u0, target)
        with self.norm.first_statistics():
            self.latent(dw[:64], u0[:64])

    def forward(self, features: Features) -> Tensor:
        return self.decode(self.latent(features["dw"], features["u0"]))

    def latent(self, dw: Tensor, u0: Tensor) -> Tensor:
        """z (T, X.., B, hidden): samples stand next to the channels, which makes the transforms large products."""
        xi = (dw / self.scales[0]).movedim(0, -1)[..., None].contiguous()
        z0 = self.embed((u0 / self.scales[1]).movedim(0, -1)[..., None])
        frames = len(xi)
        lengths = (frames + self.config.padding, *u0.shape[1:])
        start = self.kernel(z0[None], lengths)
        z = self.kernel.inverse(start, lengths, frames)
        for j in range(self.config.picard):
            driven = self.kernel(self.norm(self.local(z), xi, j), lengths)
            z = self.kernel.inverse(start + driven, lengths, frames)
        return z

    def decode(self, z: Tensor) -> Tensor:
        """u (B, T, X..) from z."""
        out: Tensor = self.readout(z).squeeze(-1).movedim(-1, 0).contiguous() * self.scales[2]
        return out


def _tops(modes: Sequence[int], lengths: Sequence[int], frames: int) -> tuple[int, ...]:
    """Largest |k| along space and |w| along time: half the modes asked for, short of Nyquist."""
    wanted = (*modes[:-1], modes[-1] * lengths[0] // frames)
    return tuple(min(m // 2, (n - 1) // 2) for m, n in zip(wanted, (*lengths[1:], lengths[0]), strict=True))


# --- kernels ------------------------------------------------------------------------------------------------------
class RealKernel(nn.Module):
    """S(t, x), a real matrix at each point: |k| <= tops along space and |w| <= tops[-1] along time.

    m modes asked for become the symmetric set |k| <= m/2 (short of Nyquist, whose sine a grid does not see), since a
    real kernel has K(-w, -k) = conj K(w, k). One of each conjugate pair is a parameter, the mode 0 a real matrix: as
    many real numbers as modes, none without effect. They start as in the reference, U[0,1)(1+i)/C^2; centred, larger
    or semigroup-like beginnings did not train better.
    """

    def __init__(self, tops: Sequence[int], width: int, lengths: Sequence[int]) -> None:
        super().__init__()
        modes = Modes.symmetric(tops)
        self.fourier = Fourier(modes, lengths, doubled=True)
        self.dropped = math.prod(modes.space) // 2  # at w = 0 the modes k before 0 are conjugates of those after it
        pairs = math.prod(modes.shape) - self.dropped - 1
        self.mean = nn.Parameter(torch.rand(width, width) / width**2)
        self.pairs = nn.Parameter(torch.rand(2, pairs, width, width) / width**2)

    def forward(self, h: Tensor, lengths: Sequence[int]) -> Tensor:
        """The spectrum of S * h; frames that h (T, X.., B, C) lacks are 0."""
        z = self.fourier(h, lengths[0]).flatten(1, -3)[:, self.dropped :]
        middle = z[0, :1] @ (self.mean / 2)  # half, because the inverse counts each mode and its conjugate
        middle = torch.stack([middle, torch.zeros_like(middle)])
        pairs = mix(z[:, 1:], self.pairs)
        before = middle.new_zeros(2, self.dropped, *middle.shape[2:])
        out: Tensor = torch.cat([before, middle, pairs], dim=1).unflatten(1, self.fourier.modes.shape)
        return out

    def inverse(self, z: Tensor, lengths: Sequence[int], frames: int) -> Tensor:
        """The first ``frames`` of the field (T, X.., B, C) with this spectrum."""
        return self.fourier.inverse(z, lengths, frames)


class ComplexKernel(nn.Module):
    """The reference's kernel: one complex matrix per mode, -m/2 <= k < m/2 along every axis; the real part is taken."""

    def __init__(self, modes: Sequence[int], width: int) -> None:
        super().__init__()
        self.modes = (modes[-1], *modes[:-1])
        shape = (2, *self.modes, width, width)
        self.weight = nn.Parameter(torch.complex(*(torch.rand(shape) / width**2)))

    def forward(self, h: Tensor, lengths: Sequence[int]) -> Tensor:
        """The spectrum of S * h; frames that h (T, X.., B, C) lacks are 0."""
        z = torch.fft.fftn(h, s=tuple(lengths), dim=tuple(range(len(lengths))))
        out: Tensor = z[self._window(lengths)] @ self.weight
        return out

    def inverse(self, z: Tensor, lengths: Sequence[int], frames: int) -> Tensor:
        """The first ``frames`` of the field (T, X.., B, C) with this spectrum."""
        full = z.new_zeros(*lengths, *z.shape[-2:])
        full[self._window(lengths)] = z
        out: Tensor = torch.fft.ifftn(full, dim=tuple(range(len(lengths)))).real[:frames]
        return out

    def _window(self, lengths: Sequence[int]) -> tuple[Tensor, ...]:
        device = self.weight.device
        places = [(torch.arange(m, device=device) - m // 2) % n for m, n in zip(self.modes, lengths, strict=True)]
        return torch.meshgrid(*places, indexing="ij")


class IterateNorm(nn.Module):
    """tanh f + tanh(g) xi, where (f, g) are the channels after batch normalisation (`gate`): one scale and shift, and
    running statistics for each Picard iterate apart."""

    mean: Tensor
    variance: Tensor

    def __init__(self, width: int, iterates: int, momentum: float = 0.1) -> None:
        super().__init__()
        self.momentum = momentum
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.register_buffer("mean", torch.zeros(iterates, width))
        self.register_buffer("variance", torch.ones(iterates, width))

    @contextmanager
    def first_statistics(self) -> Iterator[None]:
        """Within it the running statistics become those of the batch that passes: a start that fits the data, so that
        evaluation makes sense before they have had time to follow the training."""
        before = self.momentum, self.training
        self.momentum = 1.0
        self.train()
        yield
        self.momentum = before[0]
        self.train(before[1])

    def forward(self, h: Tensor, xi: Tensor, iterate: int) -> Tensor:
        """h (.., 2 C), xi (.., 1) -> (.., C); normalised over all axes but the last."""
        known = self.mean[iterate], self.variance[iterate]
        return gate(h, xi, self.weight, self.bias, *known, training=self.training, momentum=self.momentum)
