"""Neural SPDE:  z^{j+1} = S_t z_0 + S * ( F(z^j) + G(z^j) xi ),  z^0 = S_t z_0,  u = R(z).

(Salvi, Lemercier, Gerasimovics 2022, arXiv:2110.10249.) z_0 is a linear map of u_0. S is a learned kernel, one matrix
for each kept mode in space and time. F and G act pointwise (linear map, normalisation, tanh). R is a perceptron. Since
(S * H)(t) = sum_s S(t-s) H(s), S_t z_0 is the convolution of S with the field that is z_0 at t_0 and 0 later, so one
kernel and one transform serve both, and z_0 is transformed in space only.
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
from spdebench.models.layers.linear import TallLinear
from spdebench.models.layers.mixing import mix
from spdebench.models.layers.mlp import MLP
from spdebench.models.layers.normalise import fit_units
from spdebench.models.layers.spectral import FourierTransform, Modes
from spdebench.tasks import Batch, Setting


@dataclass(frozen=True, kw_only=True)
class NSPDEConfig(Config):
    """``modes``: the number of modes along each space axis, then along time (`RealKernel` says which they are).

    ``padding`` frames of zeros are appended in time, because the Fourier transform is periodic; the range of
    frequencies does not change.
    """

    hidden: int = 32
    picard: int = 1
    modes: tuple[int, ...] = (64, 50)
    padding: int = 0
    form: Literal["default", "published"] = "default"


class NSPDE(OperatorModel, name="nspde"):
    """Neural SPDE: Picard iterations of a mild solution whose kernel is learned in Fourier space.

    dw, u_0 and u are divided by their root mean squares over the training part. The authors' code differs as follows:

    * In the spectrum of S_t it puts negative frequencies in the place of positive ones, so that S_t is not the S of
      S * H. Here they are the same.
    * Half of the real numbers of its complex kernel are redundant in S * H. The default form has a real kernel.
    * It transforms z_0 once for every frame.
    * It never calls ``eval``. It could not, because all Picard iterates share the running statistics of one
      normalisation, which fit none of them. Here each iterate has its own statistics (`IterateNorm`).

    ``form="published"`` has the full complex kernel, with correct frequencies, and biases that the normalisation
    cancels. It has the paper's number of parameters: 3,283,457 on phi41.

    The noise reaches u only through S, so modes that S lacks are missing in u. On phi43, where the energy is spread
    evenly over |k|, 8 of 17 modes per axis leave a relative error of 0.81 (linear solution, all frames), 4 modes leave
    0.93, and all modes leave none.
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
        self.local = TallLinear(width, 2 * width, bias=published)  # of F, then of G
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
                f"it can predict on another grid, but not for another number of frames"
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
        """z (T, X.., B, hidden): samples are next to the channels, which makes the transforms large matrix products."""
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
    """The largest |k| along each space axis and |w| along time: half the requested number of modes, below Nyquist."""
    wanted = (*modes[:-1], modes[-1] * lengths[0] // frames)
    return tuple(min(m // 2, (n - 1) // 2) for m, n in zip(wanted, (*lengths[1:], lengths[0]), strict=True))


# --- kernels ------------------------------------------------------------------------------------------------------
class RealKernel(nn.Module):
    """S(t, x), a real matrix at each point, with the modes |k| <= tops along space and |w| <= tops[-1] along time.

    m requested modes become the symmetric set |k| <= m/2 without Nyquist, whose sine vanishes on the grid, because a
    real kernel has K(-w, -k) = conj K(w, k). One of each conjugate pair is a parameter, and the mode 0 is a real
    matrix, so there are as many real parameters as modes and all have an effect. Initial values are those of the
    authors' code, U[0,1)(1+i)/C^2; centred, larger or semigroup-like ones did not train better.
    """

    def __init__(self, tops: Sequence[int], width: int, lengths: Sequence[int]) -> None:
        super().__init__()
        modes = Modes.symmetric(tops)
        self.fourier = FourierTransform(modes, lengths, doubled=True)
        self.dropped = math.prod(modes.space) // 2  # at w = 0 the modes k before 0 are conjugates of those after 0
        pairs = math.prod(modes.shape) - self.dropped - 1
        self.mean = nn.Parameter(torch.rand(width, width) / width**2)
        self.pairs = nn.Parameter(torch.rand(2, pairs, width, width) / width**2)

    def forward(self, h: Tensor, lengths: Sequence[int]) -> Tensor:
        """The spectrum of S * h for h (T, X.., B, C), which is extended by 0 to all frames."""
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
    """The authors' kernel: one complex matrix per mode, -m/2 <= k < m/2 along every axis; results are real parts."""

    def __init__(self, modes: Sequence[int], width: int) -> None:
        super().__init__()
        self.modes = (modes[-1], *modes[:-1])
        shape = (2, *self.modes, width, width)
        self.weight = nn.Parameter(torch.complex(*(torch.rand(shape) / width**2)))

    def forward(self, h: Tensor, lengths: Sequence[int]) -> Tensor:
        """The spectrum of S * h for h (T, X.., B, C), which is extended by 0 to all frames."""
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
        """The indices of the kept modes in a full spectrum."""
        device = self.weight.device
        places = [(torch.arange(m, device=device) - m // 2) % n for m, n in zip(self.modes, lengths, strict=True)]
        return torch.meshgrid(*places, indexing="ij")


class IterateNorm(nn.Module):
    """tanh f + tanh(g) xi, where (f, g) are the channels after batch normalisation (`gate`).

    All Picard iterates share the learned scale and shift; each has its own running statistics.
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, width: int, iterates: int) -> None:
        super().__init__()
        self.momentum = 0.1
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.register_buffer("mean", torch.zeros(iterates, width))
        self.register_buffer("variance", torch.ones(iterates, width))

    @contextmanager
    def first_statistics(self) -> Iterator[None]:
        """Within this context the running statistics become those of the batch, so that evaluation is meaningful from
        the start of training."""
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
