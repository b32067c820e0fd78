"""Neural CDE whose drift is a Fourier layer (a baseline of C. Salvi, M. Lemercier, A. Gerasimovics, NeurIPS 2022):

    z_0(x) = A u_0(x),   dz = F(z) dt + G(z) dW,   u(t, x) = R(z_t(x)),   z_t(x) in R^h
    F(z) = tanh(D gelu(C (K * z + B z))),   G(z) = tanh(E z),   R = r_2 relu(r_1 .)

Everything acts pointwise in x except (K * z)(x) = Re sum_k K_k z^_k e^{2 pi i k.x}, summed over m centred wave numbers
along each axis. The paper has it in one dimension; two and three are ours.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from spdebench import accel
from spdebench.errors import UserError
from spdebench.models.base import Config, Features
from spdebench.models.layers.mlp import MLP
from spdebench.models.paths import DrivenModel, Map, Product, Solver, Weights, gathered, integrate
from spdebench.tasks import Setting


@dataclass(frozen=True, kw_only=True)
class NCDEFNOConfig(Config):
    hidden: int = 32  # h
    width: int = 128  # inside F and the readout
    space_modes: int = 16  # m along each axis, with both signs: k = -m/2 .. m/2 - 1; at most the number of grid points
    solver: Solver = "rk4"
    form: Literal["default", "published"] = "default"


class Convolution(nn.Module):
    """K * z on ``(B, X, h)``, X all grid points, by real matrix products: transform, one matrix per mode, inverse.

    With z^_k = a - ib (means of z cos and z sin) and the matrices of k and -k combined into P + iQ,

        K * z = sum_k (P a + Q b) cos(2 pi k.x) + (P b - Q a) sin(2 pi k.x),   |k_i| <= m/2, one k of each pair +-k.

    The default form stores P and Q for these k (k = 0..m/2 in one dimension). The published form, in one dimension,
    stores a matrix for each centred k, as reals (h, h, m, 2); for real z those of k and -k are redundant.

    The transform acts along one axis after the other. Its coefficients are those of the 2^d products of cos(2 pi k_i
    x_i) or sin(2 pi k_i x_i), k_i >= 0. One matrix maps those of all waves with the same |k_1|, .., |k_d| (a *mode*).
    """

    numbers: Tensor
    places: Tensor
    factors: Tensor

    def __init__(self, hidden: int, modes: int, published: bool, dim: int = 1) -> None:
        super().__init__()
        self.modes, self.published = modes, published
        numbers = _one_of_each_pair(modes // 2, dim)
        self.register_buffer("numbers", numbers, persistent=False)  # k, (waves, axes)
        self.register_buffer("places", _places(numbers), persistent=False)
        self.register_buffer("factors", _factors(dim), persistent=False)
        shape = (hidden, hidden, modes, 2) if published else (len(numbers), hidden, hidden, 2)
        self.weight = nn.Parameter(torch.randn(shape) / math.sqrt(2 * hidden))  # from, to

    def matrices(self, points: Sequence[int]) -> Tensor:
        """The matrix of every mode, ``(modes, 2^d, h, 2^d, h)``: the output, then the input.

        In one dimension it is ((P, Q), (-Q, P)): from (a, b) to the coefficients of cosine and sine.
        """
        p, q = self.parts(points)
        waves = torch.stack([torch.stack([p, q], dim=2), torch.stack([-q, p], dim=2)], dim=1)  # (k, 2, h, 2, h)
        if len(points) == 1:
            return waves
        with torch.autocast(waves.device.type, enabled=False):
            waves = functional.pad(waves, (0,) * 9 + (1,))[self.places]  # zeros for a k that is not stored
            factors = self.factors.to(waves)
            return torch.einsum("sap,qsahbg,sbr->qphrg", factors, waves, factors)

    def parts(self, points: Sequence[int]) -> tuple[Tensor, Tensor]:
        """P and Q for every k, ``(k, h, h)`` each; the first h is the output."""
        if min(points) < self.modes:
            raise UserError(
                f"model ncde-fno: {self.modes} modes need at least as many grid points, got {min(points)}; use a finer "
                "grid"
            )
        p, q = self._centred() if self.published else self._half(points)
        return p.mT, q.mT

    def waves(self, points: Sequence[int]) -> tuple[Tensor, ...]:
        """For every axis cos(2 pi k x) and sin(2 pi k x), k = 0..m/2, alternately, ``(2k, n)``."""
        k = torch.arange(self.modes // 2 + 1, device=self.weight.device)
        out = []
        for n in points:
            phase = k[:, None] * torch.arange(n, device=k.device) % n
            angle = phase.double() * (2 * math.pi / n)
            out.append(torch.stack([angle.cos(), angle.sin()], dim=1).flatten(0, 1).to(self.weight))
        return tuple(out)

    def _half(self, points: Sequence[int]) -> tuple[Tensor, Tensor]:
        """P and Q of the default form, in which k also represents -k.

        k counts 2^(1-s) times, and k = 0 once. Here s is the number of axes with k_i = +-n_i/2: these two are the same
        on the grid, so 2^s of the k and -k are the same wave. Then K = 1 gives K * z = z.
        """
        nyquist = sum(2 * k.abs() == n for k, n in zip(self.numbers.unbind(1), points, strict=True))
        count = torch.where(self.numbers.any(1), 2.0 ** (1 - nyquist), 1.0).to(self.weight)
        p, q = (self.weight * count[:, None, None, None]).unbind(-1)
        return p, q

    def _centred(self) -> tuple[Tensor, Tensor]:
        """P and Q of the published form: K_k + conj K_{-k} for k > 0, and K_0.

        This is because Re(K_{-k} conj(z^_k) e^{-ikx}) = Re(conj K_{-k} z^_k e^{ikx}).
        """
        half = self.modes // 2
        out = []
        for part, sign in zip(self.weight.permute(3, 2, 0, 1), (1, -1), strict=True):
            opposite = sign * part[:half].flip(0)  # -1 .. -m/2
            above = part[half + 1 :]  # 1 ..
            above = functional.pad(above, (0, 0, 0, 0, 0, half - len(above)))
            out.append(torch.cat([part[half : half + 1], opposite + above]))
        return out[0], out[1]


def _one_of_each_pair(top: int, dim: int) -> Tensor:
    """Wave numbers k with |k_i| <= top, one of each pair +-k, ``(modes, dim)``: 0..top in one dimension."""
    every = itertools.product(range(-top, top + 1), repeat=dim)
    return torch.tensor([k for k in every if k >= (0,) * dim])  # the first component that is not 0 is positive


def _places(numbers: Tensor) -> Tensor:
    """For every mode |k_1|, .., |k_d| the places of k = (|k_1|, +-|k_2|, .., +-|k_d|) in ``numbers``, -1 where k is not
    there or is listed already: ``(modes, 2^(d-1))``."""
    place = {tuple(k): i for i, k in enumerate(numbers.tolist())}
    top, dim = int(numbers.max()), numbers.shape[1]
    rows = []
    for mode in itertools.product(range(top + 1), repeat=dim):
        found = [tuple(s * k for s, k in zip(signs, mode, strict=True)) for signs in _signs(dim)]
        rows.append([place.get(k, -1) if k not in found[:i] else -1 for i, k in enumerate(found)])
    return torch.tensor(rows)


def _signs(dim: int) -> list[tuple[int, ...]]:
    """(1, +-1, .., +-1)."""
    return [(1, *others) for others in itertools.product((1, -1), repeat=dim - 1)]


def _factors(dim: int) -> Tensor:
    """Factors of products of cos(a_i) or sin(a_i), ``(2^(d-1), 2, 2^d)``: their sums are the cosine and the sine of
    a_1 +- a_2 .. +- a_d, the real and the imaginary part of prod_i (cos(a_i) + i s_i sin(a_i))."""
    out = torch.zeros(2 ** (dim - 1), 2, 2**dim)
    for row, signs in enumerate(_signs(dim)):
        for column, sines in enumerate(itertools.product((0, 1), repeat=dim)):
            power = sum(sines)  # i^power
            sign = math.prod(s for s, sine in zip(signs, sines, strict=True) if sine)
            out[row, power % 2, column] = sign * (-1) ** (power // 2)
    return out


def add_convolution(v: Tensor, z: Tensor, waves: Sequence[Tensor], mix: Map) -> Tensor:
    """v + K * z, in place, for v ``(B, X, w)``; ``mix`` maps ``(B, modes, 2^d h)`` to ``(B, modes, 2^d w)``."""
    c = z
    for axis, wave in enumerate(waves):  # the axes before are transformed
        c = c.reshape(len(z) * math.prod([len(other) for other in waves[:axis]]), wave.shape[1], -1)
        c = torch.bmm(wave.expand(len(c), -1, -1), c)
    c = _by_axis(mix(_by_mode(c.reshape(len(z), -1, z.shape[-1]), waves)), waves)
    first, *others = waves
    for axis in range(len(others), 0, -1):  # the axes after are points again
        c = c.reshape(len(z) * math.prod([len(other) for other in waves[:axis]]), len(waves[axis]), -1)
        c = torch.bmm(waves[axis].mT.expand(len(c), -1, -1), c)
    c, first = c.reshape(len(z), len(first), -1), first.mT.expand(len(z), -1, -1)
    return v.add_(torch.bmm(first, c).view_as(v)) if others else v.baddbmm_(first.to(v), c.to(v))


def _by_mode(c: Tensor, waves: Sequence[Tensor]) -> Tensor:
    """(B, (k_1, 2, k_2, 2, ..), h) -> (B, (k_1, k_2, ..), (2, 2, .., h))."""
    c = c.view(len(c), *[n for wave in waves for n in (len(wave) // 2, 2)], c.shape[-1])
    axes = range(1, 2 * len(waves) + 1)
    c = c.permute(0, *axes[::2], *axes[1::2], -1)
    return c.reshape(len(c), math.prod([len(wave) // 2 for wave in waves]), -1)


def _by_axis(c: Tensor, waves: Sequence[Tensor]) -> Tensor:
    """(B, (k_1, k_2, ..), (2, 2, .., w)) -> (B, k_1, 2, k_2, 2, .., w)."""
    c = c.unflatten(2, [*[2] * len(waves), -1]).unflatten(1, [len(wave) // 2 for wave in waves])
    return c.permute(0, *[axis for i in range(1, len(waves) + 1) for axis in (i, i + len(waves))], -1)


class Field(nn.Module):
    """F(z) dt + G(z) dW on z ``(B, X, h)``, dW ``(B, X)``, X all points of a grid; dt is the length of a step."""

    def __init__(self, config: NCDEFNOConfig, points: Sequence[int], step: float) -> None:
        super().__init__()
        h, published = config.hidden, config.form == "published"
        if published and len(points) > 1:
            raise UserError("model ncde-fno: form=published is for one space dimension; use form=default")
        self.step = step
        self.lift = nn.Linear(h, h) if published else nn.Identity()
        self.kernel = Convolution(h, min(config.space_modes, *points), published, len(points))
        self.skip = nn.Linear(h, h)
        self.inner, self.outer = nn.Linear(h, config.width), nn.Linear(config.width, h)
        self.noise = nn.Linear(h, h)
        self.norm = nn.BatchNorm1d(h) if published else nn.Identity()

    def solve(self, start: Tensor, increments: Tensor, points: Sequence[int], solver: Solver) -> Tensor:
        """z_1..z_N ``(B, N, X, h)`` from z_0 ``(B, X, h)`` and dW ``(B, N, X)`` on a grid of ``points``.

        On a GPU it is one kernel if possible.
        """
        if self._fits_a_kernel(start, increments, points, solver):
            layers = self._layers(points)
            keep = torch.is_grad_enabled() and any(t.requires_grad for t in (start, *layers))
            return _Solve.apply(start, increments, *layers, self.step, solver, keep)  # type: ignore[no-any-return,no-untyped-call]
        start, product = self.bind(start, points)
        return integrate(product, start, increments, solver)[:, 1:]

    def _fits_a_kernel(self, start: Tensor, increments: Tensor, points: Sequence[int], solver: Solver) -> bool:
        """Whether the GPU kernel can be used: in one dimension, not with a BatchNorm, and not if the noise needs a
        gradient."""
        plain = isinstance(self.norm, nn.Identity) and isinstance(self.lift, nn.Identity) and len(points) == 1
        if not plain or increments.requires_grad:
            return False
        sizes = start.shape[1], start.shape[2], self.inner.out_features, self.kernel.modes // 2 + 1
        cuda = accel.kernels("ncde_fno", (start, increments, self.inner.weight), *sizes)
        return cuda is not None and solver in cuda.STAGES

    def _layers(self, points: Sequence[int]) -> tuple[Tensor, ...]:
        """The fields of `accel.ncde_fno.Layers`. C and K stay separate, because every evaluation reads them and C K is
        four times as large as K."""
        mixing = torch.stack(self.kernel.parts(points)) / math.prod(points)  # a and b are means
        linear = self.skip, self.inner, self.outer, self.noise
        return *self.kernel.waves(points), mixing, *(t for layer in linear for t in (layer.weight, layer.bias))

    def bind(self, start: Tensor, points: Sequence[int]) -> tuple[Tensor, Product]:
        """z_0 and the function (z, dW) -> F(z) dt + G(z) dW for one solve; weight gradients are summed at the end."""
        waves = self.kernel.waves(points)
        before = self._combined(points) if len(points) == 1 else self._separate(points)
        layers = (*before, *((a.weight, a.bias) for a in (self.outer, self.noise)))
        start, (local, mix, *inner, outer, noise) = gathered(start, *layers)

        def product(z: Tensor, dw: Tensor) -> Tensor:
            v = add_convolution(local(z), z, waves, mix)
            for layer in inner:
                v = layer(v)
            drift = outer(functional.gelu(v)).tanh()
            spread = self.norm(noise(z).flatten(0, 1)).view_as(z).tanh()
            return torch.add(spread * dw[..., None], drift, alpha=self.step)

        return start, product

    def _separate(self, points: Sequence[int]) -> tuple[Weights, ...]:
        """B, K and C by themselves: with many modes C K is more work than K and C one after the other."""
        mixing = self.kernel.matrices(points) / math.prod(points)  # a and b are means
        local, inner = ((layer.weight, layer.bias) for layer in (self.skip, self.inner))
        return local, (mixing.flatten(3, 4).flatten(1, 2), None), inner

    def _combined(self, points: Sequence[int]) -> tuple[Weights, ...]:
        """The linear map z -> C (K * v + B v), v = z or a linear map of z: its local part, and one matrix per mode.

        The matrices are multiplied once per solve (in full precision), which saves products in every evaluation.
        """
        with torch.autocast(self.inner.weight.device.type, enabled=False):
            matrices = self.kernel.matrices(points)
            weight: Tensor = self.skip.weight
            bias: Tensor = self.skip.bias
            if isinstance(self.lift, nn.Linear):
                constant = (weight + matrices[0, 0, :, 0]) @ self.lift.bias  # a constant has only the mode k = 0
                weight, bias, matrices = weight @ self.lift.weight, bias + constant, matrices @ self.lift.weight
            mixing = torch.einsum("wh,kahbg->kawbg", self.inner.weight / math.prod(points), matrices)  # means a and b
            local = self.inner.weight @ weight, self.inner.weight @ bias + self.inner.bias
            return local, (mixing.flatten(3, 4).flatten(1, 2), None)


class _Solve(torch.autograd.Function):
    """z_1..z_N by `accel.ncde_fno`; the arguments after dW are the layers, dt, the solver and whether to keep what the
    backward pass needs."""

    @staticmethod
    def forward(ctx: Any, start: Tensor, increments: Tensor, *arguments: Any) -> Tensor:
        cuda = accel.module("ncde_fno")
        *layers, ctx.step, ctx.solver, keep = arguments
        start, increments, *layers = (t.contiguous() for t in (start, increments, *layers))
        out: Tensor
        out, kept = cuda.forward(start, increments, cuda.Layers(*layers), ctx.step, ctx.solver, keep=keep)
        ctx.save_for_backward(increments, *layers, *kept)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        cuda = accel.module("ncde_fno")
        increments, *saved = ctx.saved_tensors
        count = len(cuda.Layers._fields)
        layers, kept = cuda.Layers(*saved[:count]), cuda.SavedForBackward(*saved[count:])
        to_start, *to_layers = cuda.backward(grad.contiguous(), increments, layers, kept, ctx.step, ctx.solver)
        return to_start, None, None, *to_layers, None, None, None


class NCDEFNO(DrivenModel, name="ncde-fno"):
    """Neural CDE dz = F(z) dt + G(z) dW at every grid point, where F contains a Fourier layer in x.

    Time runs from 0 to sqrt(n) in n steps and W is divided by the root mean square of W_T over the training part, so
    that both change by 1/sqrt(n) per step. In the authors' code time counts steps and W is not scaled, so that the
    sizes of F and G depend on the units of the data. u0 and u are standardised by single numbers, so the network works
    on any grid. Frame 0 of the output is u0, which is given.

    ``form="published"`` has the paper's 48,769 parameters. In addition to the default form it has a linear map before
    the convolution, the redundant half of the convolution's matrices, and a BatchNorm in G. A BatchNorm is unsound
    inside an ODE solver: its statistics are shared by stages and steps at which z differs in size, and they differ
    between training and evaluation. `spdebench.models.paths.integrate` describes differences in steps and gradients.
    """

    title = "NCDE-FNO"
    config_class = NCDEFNOConfig
    dims = (1, 2, 3)
    any_grid = True
    any_horizon = True

    def __init__(self, setting: Setting, config: NCDEFNOConfig) -> None:
        super().__init__(setting, config)
        self.solver = config.solver
        self.lift = nn.Linear(1, config.hidden)
        self.field = Field(config, setting.grid.points, (setting.frames - 1) ** -0.5)
        self.readout = MLP(config.hidden, config.width, 1, "relu")

    def forward(self, features: Features) -> Tensor:
        u0 = features["u0"]
        points = u0.shape[1:]
        start = self.lift(self.initial(u0).flatten(1)[..., None])
        increments = self.noise(features["dw"][:, 1:]).flatten(2)
        states = self.field.solve(start, increments, points, self.solver)
        u = self.solution.inverse(self.readout(states).squeeze(-1)).unflatten(2, points)
        return torch.cat([u0[:, None], u], dim=1)
