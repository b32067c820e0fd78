"""Neural CDE whose drift is a Fourier layer (a baseline of C. Salvi, M. Lemercier, A. Gerasimovics, NeurIPS 2022):

    z_0(x) = A u_0(x),   dz = F(z) dt + G(z) dW,   u(t, x) = R(z_t(x)),   z_t(x) in R^h
    F(z) = tanh(D gelu(C (K * z + B z))),   G(z) = tanh(E z),   R = r_2 relu(r_1 .)

pointwise in x but for the convolution  (K * z)(x) = Re sum_k K_k z^_k e^{2 pi i k x}  over m centred wave numbers k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from spdebench.errors import UserError
from spdebench.models.base import Config, Features
from spdebench.models.paths import DrivenModel, Product, Solver, integrate
from spdebench.tasks import Setting


@dataclass(frozen=True, kw_only=True)
class NCDEFNOConfig(Config):
    hidden: int = 32  # h
    width: int = 128  # inside F and the readout
    space_modes: int = 16  # m, both signs counted: k = -m/2 .. m/2 - 1; cut to the points of a small grid
    solver: Solver = "rk4"
    form: Literal["default", "published"] = "default"


class Convolution(nn.Module):
    """v + K * z on ``(X, B, h)`` by real matrix products.

    With z^_k = a - ib (means of z cos and z sin) and the matrices of k and -k folded into P + iQ,

        K * z = sum_{k=0}^{m/2} (P a + Q b) cos(2 pi k x) + (P b - Q a) sin(2 pi k x).

    ``default`` holds P and Q for k = 0..m/2. ``published`` holds a matrix for each centred k, as reals (h, h, m, 2);
    for real z those of k and -k say the same twice.
    """

    def __init__(self, hidden: int, modes: int, published: bool) -> None:
        super().__init__()
        self.modes, self.published = modes, published
        shape = (hidden, hidden, modes, 2) if published else (modes // 2 + 1, hidden, hidden, 2)
        self.weight = nn.Parameter(torch.randn(shape) / math.sqrt(2 * hidden))  # from, to

    def bind(self, points: int) -> tuple[Tensor, Tensor]:
        """What all evaluations of a solve on ``points`` share: matrices ``(k, 2h, 2h)`` and waves ``(2k, X)``."""
        if points < self.modes:
            raise UserError(
                f"model ncde-fno: a grid of {points} points does not carry {self.modes} modes; use a finer one"
            )
        p, q = self._centred() if self.published else self._half(points)
        matrices = torch.cat([torch.cat([p, -q], dim=2), torch.cat([q, p], dim=2)], dim=1) / points
        k = torch.arange(self.modes // 2 + 1, device=p.device)
        j = torch.arange(points, device=p.device)
        angle = (k[:, None] * j % points).double() * (2 * math.pi / points)
        return matrices, torch.cat([angle.cos(), angle.sin()]).to(p)

    def _half(self, points: int) -> tuple[Tensor, Tensor]:
        """k stands for -k too, so it counts twice; 0 and Nyquist are their own opposites."""
        k = torch.arange(self.modes // 2 + 1, device=self.weight.device)
        alone = (k == 0) | (2 * k == points)
        p, q = (self.weight * torch.where(alone, 1.0, 2.0)[:, None, None, None]).unbind(-1)
        return p, q

    def _centred(self) -> tuple[Tensor, Tensor]:
        """K_k + conj K_{-k}, as Re(K_{-k} conj(z^_k) e^{-ikx}) = Re(conj K_{-k} z^_k e^{ikx}); K_0 once."""
        half = self.modes // 2
        out = []
        for part, sign in zip(self.weight.permute(3, 2, 0, 1), (1, -1), strict=True):
            opposite = sign * part[:half].flip(0)  # -1 .. -m/2
            above = part[half + 1 :]  # 1 ..
            above = functional.pad(above, (0, 0, 0, 0, 0, half - len(above)))
            out.append(torch.cat([part[half : half + 1], opposite + above]))
        return out[0], out[1]

    @staticmethod
    def add_to(v: Tensor, z: Tensor, matrices: Tensor, waves: Tensor) -> Tensor:
        points, batch, h = z.shape
        a, b = (waves @ z.view(points, -1)).view(2, -1, batch, h)
        mixed = torch.bmm(torch.cat([a, b], dim=2), matrices)
        parts = torch.cat([mixed[..., :h], mixed[..., h:]]).view(len(waves), -1)
        return torch.addmm(v.view(points, -1), waves.T, parts).view_as(z)


class Field(nn.Module):
    """F(z) dt + G(z) dW on z ``(X, B, h)``, dW ``(X, B)``, dt one step of the clock."""

    def __init__(self, config: NCDEFNOConfig, points: int, step: float) -> None:
        super().__init__()
        h, published = config.hidden, config.form == "published"
        self.step = step
        self.lift = nn.Linear(h, h) if published else nn.Identity()
        self.kernel = Convolution(h, min(config.space_modes, points), published)
        self.skip = nn.Linear(h, h)
        self.inner, self.outer = nn.Linear(h, config.width), nn.Linear(config.width, h)
        self.noise = nn.Linear(h, h)
        self.norm = nn.BatchNorm1d(h) if published else nn.Identity()

    def bind(self, points: int) -> Product:
        """(z, dW) -> F(z) dt + G(z) dW on a grid of ``points``."""
        matrices, waves = self.kernel.bind(points)

        def product(z: Tensor, dw: Tensor) -> Tensor:
            v = self.lift(z)
            mixed = self.kernel.add_to(self.skip(v), v, matrices, waves)
            drift = self.outer(functional.gelu(self.inner(mixed))).tanh()
            noise = self.norm(self.noise(z).flatten(0, 1)).view_as(z).tanh()
            return torch.add(noise * dw[..., None], drift, alpha=self.step)

        return product


class NCDEFNO(DrivenModel, name="ncde-fno"):
    """dz = F(z) dt + G(z) dW at every point, F with a Fourier layer in x; 48,769 parameters as published.

    Time runs from 0 to sqrt(n) in n steps and W is divided by the training rms of W_T, so that both move by 1/sqrt(n) a
    step (the reference counts time in steps and takes W as it comes: F and G then differ in size by the data's units).
    u0 and u are standardised by numbers, so the network works on any grid; frame 0 is u0, which is given.

    ``published`` has what the paper's count needs besides: a linear map before the linear convolution, the redundant
    half of its matrices, and a BatchNorm in G. The last is unsound inside a solver, as its statistics are shared by
    stages and steps where z differs in size, and differ between training and evaluation; ``default`` has none, tanh
    bounds G as it is. Steps and gradients: `spdebench.models.paths.integrate` tells what the reference does.
    """

    title = "NCDE-FNO"
    config_class = NCDEFNOConfig
    any_grid = True

    def __init__(self, setting: Setting, config: NCDEFNOConfig) -> None:
        super().__init__(setting, config)
        self.solver = config.solver
        self.lift = nn.Linear(1, config.hidden)
        self.field = Field(config, setting.grid.points[0], (setting.frames - 1) ** -0.5)
        self.readout = nn.Sequential(nn.Linear(config.hidden, config.width), nn.ReLU(), nn.Linear(config.width, 1))

    def forward(self, features: Features) -> Tensor:
        u0 = features["u0"]
        start = self.lift(self.initial(u0).T[..., None])  # space first: every map is then one matrix product
        increments = self.noise(features["dw"][:, 1:]).permute(2, 1, 0)
        states = integrate(self.field.bind(u0.shape[1]), start, increments, self.solver)[:, 1:]
        u = self.solution.inverse(self.readout(states).squeeze(-1))  # (X, T - 1, B)
        return torch.cat([u0[:, None], u.permute(2, 1, 0)], dim=1)
