"""FNO trained by flow matching:  u = m + x(1),  x'(s) = v(s, x(s) | dw, u0),  x(0) = z ~ N(0, C).

v is learned by regression (`loss=flow`): on the straight line from z to x = u - m the velocity is x - z,

    v = argmin E | v(s, x_s | dw, u0) - (x - z) |^2,       x_s = (1 - s) z + s x,   s uniform on [0, 1]

If v is the minimiser, x(1) has the law of u - m given dw and u0 (Lipman et al. 2023, arXiv:2210.02747). m is the mean
of the training part. z is a Gaussian field in space and time with the regularity of the data: the modes of the grid are
independent, and each has the covariance in time of the training part. White noise would have no limit as the grid is
refined, and the flow would have to smooth it (for flows of functions see Kerrigan, Migliorini and Smyth 2023,
arXiv:2305.17209). At s = 0 the state is z and tells nothing about u. Hence m + v(0, 0 | dw, u0) is the mean of u given
dw and u0, and the model's point prediction.

    v(s, x) = (2s - 1)/r x + F(x/sqrt(r), s, dw, u0)/sqrt(r),      r = s^2 + (1 - s)^2

With F = 0 this is the flow from N(0, C) to the same law. F is a Fourier neural operator on space and time
(`layers/fourier.py`), whose first layer is scaled and shifted by functions of s. Members are drawn with `steps` steps
of the midpoint method. It does not evaluate v at s = 1, where v is singular if dw and u0 determine u.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.models.base import Config, Features, OperatorModel
from spdebench.models.layers.coordinates import coordinates
from spdebench.models.layers.fourier import FourierTrunk
from spdebench.models.layers.mlp import MLP
from spdebench.models.layers.normalise import Standard, fit_units
from spdebench.noise.stream import normal_pairs
from spdebench.tasks import Batch, Setting

ANGLES = 3
"""The first layer is given s, cos(pi j s) and sin(pi j s), j = 1..ANGLES."""
ROWS = 64
"""The number of samples whose covariance is summed at a time."""


@dataclass(frozen=True, kw_only=True)
class FlowFNOConfig(Config):
    """``modes`` as in FNO; ``steps`` of the midpoint method draw a member, each evaluates the network twice."""

    width: int = 32
    layers: int = 3
    modes: tuple[int, ...] = (24, 12)
    padding: int = 6
    steps: int = 10


class FlowFNO(OperatorModel, name="flow-fno"):
    """A generative network: members of the law are solutions of an ordinary differential equation.

    On a task with ``seen=K`` it is trained with ``loss=flow`` and draws members. With ``loss=rel_l2`` the point
    prediction alone is trained, as of any network. Where all of the noise is seen there is one answer and no law to
    learn, and ``loss=flow`` is refused. This model is not in the paper.
    """

    title = "Flow-FNO"
    config_class = FlowFNOConfig
    dims = (1, 2, 3)
    added_inputs = ("xi", "u0+xi")
    law_loss = "flow"

    config: FlowFNOConfig
    scales: Tensor
    _coordinates: Tensor

    def __init__(self, setting: Setting, config: FlowFNOConfig) -> None:
        super().__init__(setting, config)
        self.with_u0 = setting.inputs == "u0+xi"
        self.lift = nn.Linear(setting.frames + self.with_u0 + 1 + setting.dim + 1, config.width)
        self.modulate = MLP(1 + 2 * ANGLES, 2 * config.width, 2 * config.width)
        self.trunk = FourierTrunk(
            config.width, config.layers, config.modes, padding=config.padding, lengths=setting.shape
        )
        self.centre = Standard(setting.shape)  # m, and the unit in which x and z are measured
        self.reference = GaussianReference(setting.grid, setting.frames - 1)
        self.register_buffer("scales", torch.ones(2))  # of dw and u0
        self.register_buffer("_coordinates", coordinates(setting), persistent=False)

    @classmethod
    def largest_modes(cls, setting: Setting) -> tuple[int, ...]:
        return FourierTrunk.largest_modes(setting)

    def prepare(self, batch: Batch) -> Features:
        if tuple(batch.dw.shape[1:]) != self.setting.shape:
            raise UserError(
                f"model '{self.name}' works at the frames and points that it was trained on, dw {self.setting.shape}; "
                f"got {tuple(batch.dw.shape[1:])}"
            )
        return {"dw": batch.dw, "u0": batch.u0} if self.with_u0 else {"dw": batch.dw}

    def calibrate(self, features: Features, target: Tensor) -> None:
        fit_units(self.scales, features["dw"][:, 1:], features.get("u0"))
        self.centre.fit(target)
        self.reference.fit(self.centre(target)[:, 1:])

    def forward(self, features: Features) -> Tensor:
        """m + v(s, x | dw, u0): s and x are ``time`` and ``state`` among the features, or 0 where they are not."""
        dw = features["dw"]
        s = features["time"] if "time" in features else dw.new_zeros(len(dw))
        state = features["state"] if "state" in features else torch.zeros_like(dw)
        return self.centre.inverse(self.velocity(s, state, features))

    def velocity(self, s: Tensor, state: Tensor, features: Features) -> Tensor:
        """v(s, x | dw, u0) for s (B) and x (B T X..), both in the unit of `centre`."""
        shape = (len(s), *(1,) * (state.ndim - 1))  # in which s broadcasts to fields
        root = (s.square() + (1 - s).square()).sqrt()
        paths = (features["dw"] / self.scales[0]).movedim(0, -1).movedim(0, -1)  # (X.., B, T)
        if self.with_u0:
            paths = torch.cat([paths, (features["u0"] / self.scales[1]).movedim(0, -1)[..., None]], dim=-1)
        on_paths, on_places, on_state = self.lift.weight.split([paths.shape[-1], 1 + self.setting.dim, 1], dim=1)
        places = nn.functional.linear(self._coordinates, on_places, self.lift.bias)
        h = nn.functional.linear(paths, on_paths) + places[..., None, :]  # (T, X.., B, width)
        h = h + nn.functional.linear((state / root.view(shape)).movedim(0, -1)[..., None], on_state)
        angles = math.pi * s[:, None] * torch.arange(1, ANGLES + 1, device=s.device)
        scale, shift = self.modulate(torch.cat([s[:, None], angles.cos(), angles.sin()], dim=1)).chunk(2, dim=1)
        out: Tensor = self.trunk(torch.addcmul(shift, h, 1 + scale).movedim(-2, 0)) / root.view(shape)
        return out + ((2 * s - 1) / root.square()).view(shape) * state

    # --- the law ----------------------------------------------------------------------------------------------------
    def flow_pair(self, features: Features, u: Tensor, states: Tensor) -> tuple[Features, Tensor]:
        """A time s and the state x_s, and the wanted output of `forward`: m + x - z = u - z, in the unit of u.

        The frame t_0 is given and not drawn; the state there is 0.
        """
        s, z = self.draw(states)
        x = self.centre(u)
        x[:, 0] = 0
        state = torch.lerp(z, x, s.view(-1, *(1,) * (x.ndim - 1)))
        return {"time": s, "state": state}, u - self.centre.size * z

    def draw(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """s (B), uniform, and z (B T X..), 0 at t_0; ``states`` has one state of the random stream per sample."""
        points = math.prod(self.setting.grid.points)
        nodes, pairs = (torch.arange(n, device=states.device) for n in (self.setting.frames, (points + 1) // 2))
        numbers = torch.view_as_real(normal_pairs(states, nodes, pairs)).flatten(2).float()
        s = torch.special.ndtr(numbers[:, 0, 0])
        white = numbers[:, 1:, :points].unflatten(2, self.setting.grid.points)
        z = self.reference(white)
        return s, torch.cat([torch.zeros_like(z[:, :1]), z], dim=1)

    def sample(
        self, batch: Batch, members: int, seed: int = 0, first: int = 0, samples: Tensor | None = None
    ) -> Tensor:
        """Each member is the end of the flow from its own z, which is a function of (seed, sample, member)."""

        def flow(several: Batch, states: Tensor) -> Tensor:
            features = self.prepare(several)

            def velocity(s: float, x: Tensor) -> Tensor:
                v = self.velocity(x.new_full((len(x),), s), x, features)
                v[:, 0] = 0
                return v

            return self.centre.inverse(midpoint(velocity, self.draw(states)[1], self.config.steps))

        with self.evaluating():
            return self.draw_members(batch, members, seed, first, samples, flow)


def midpoint(velocity: Callable[[float, Tensor], Tensor], x: Tensor, steps: int) -> Tensor:
    """x(1) of dx/ds = velocity(s, x), x(0) = x: the explicit midpoint method, of second order."""
    h = 1 / steps
    for i in range(steps):
        half = x + h / 2 * velocity(i * h, x)
        x = x + h * velocity((i + 0.5) * h, half)
    return x


class GaussianReference(nn.Module):
    """z = F^-1[ C_k^{1/2} F w ],  w white noise: Gaussian fields whose mode k has the data's covariance C_k in time.

    Modes are independent of each other. C_k is the real part of the empirical covariance; its imaginary part, a wave
    that travels in one direction, is left out.
    """

    roots: Tensor

    def __init__(self, grid: Grid, frames: int) -> None:
        super().__init__()
        self.grid = grid
        shape = (math.prod(grid.spectral_shape), frames, frames)
        self.register_buffer("roots", torch.eye(frames).expand(shape).clone())  # C_k^{1/2}: white noise before `fit`

    def fit(self, x: Tensor) -> None:
        """Fit C_k to samples x (N T X..) with mean 0."""
        total = torch.zeros(self.roots.shape, dtype=torch.float64, device=x.device)
        for rows in x.split(ROWS):
            c = self._modes(rows.double())
            total += c @ c.mT
        white = math.prod((1 if self.grid.periodic else 2) / n for n in self.grid.points)  # E|F w|^2
        values, vectors = torch.linalg.eigh(total / (max(1, len(x) - 1) * white))
        self.roots.copy_((vectors * values.clamp_min(0).sqrt().unsqueeze(1)) @ vectors.mT)

    def forward(self, white: Tensor) -> Tensor:
        """z from white noise, both (B T X..)."""
        mixed = (self.roots @ self._modes(white)).unflatten(2, (len(white), -1))  # (K, T, B, 1 or 2)
        mixed = mixed.permute(2, 1, 0, 3).contiguous().unflatten(2, self.grid.spectral_shape)
        out: Tensor = self.grid.inverse(torch.view_as_complex(mixed) if mixed.shape[-1] == 2 else mixed[..., 0])
        return out

    def _modes(self, field: Tensor) -> Tensor:
        """Coefficients of a field (B T X..): (K, T, B), or (K, T, 2B) with real and imaginary parts side by side."""
        c = self.grid.transform(field)
        parts = (torch.view_as_real(c) if c.is_complex() else c[..., None]).flatten(2, -2)  # (B, T, K, 1 or 2)
        return parts.permute(2, 1, 0, 3).flatten(2)
