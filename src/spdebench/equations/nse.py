"""Navier-Stokes, vorticity:  d omega = (viscosity Laplacian omega - u.grad omega + f) dt + sigma dW   on [0,1]^2."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from spdebench.equations.base import Equation, Map
from spdebench.equations.initial import gaussian_field
from spdebench.equations.rule import Monomial, Rule
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.noise import Lattice, Seed, make_basis, spectra

Spectrum = Literal["paper", "reference"]
NEGLIGIBLE = 1e-7
"""Modes whose amplitude sqrt(lambda) is below this fraction of the largest are not drawn."""


@dataclass(frozen=True, kw_only=True)
class NSE(Equation, name="nse"):
    """d omega = (viscosity Laplacian omega - u.grad omega + f) dt + sigma dW,  omega = curl u,  div u = 0.

    u = (psi_y, -psi_x), -Laplacian psi = omega; f = forcing (sin + cos)(2 pi (x+y)); t in [0, 1]. Paper, Tables 1 and
    2: viscosity 1e-4, forcing 0.1, sigma 0.005, J = 32..256, 64 x 64 points of which 16 x 16 are stored, 1000 steps of
    which every tenth is stored. J = 64 here by default, the largest J that does not alias on the grid.

    Noise: the sum of ``fields`` independent copies of W = sum sqrt(lambda_k) beta_k e_k, which has the law of one copy
    times sqrt(fields) and is drawn in this way. lambda_k = exp(-alpha |2 pi k|^2) (``spectrum`` reference: the authors'
    code) or exp(-alpha |k|^2) (``spectrum`` paper: its text). With the first, the amplitude at |k| = 8, the highest
    mode that the 16 x 16 stored points resolve, is 0.002 of the largest, and modes beyond |k| = 12 are negligible for
    any J; with the second, most of the noise is in modes that the stored points do not resolve. The paper's
    k_i = -J/2+1..J/2 leave an edge vector k without its partner -k; the real part of that sum, which we use, gives such
    a k half its eigenvalue and (J/2, -J/2) none, so that Var dW/dt is the paper's sum of lambda_k over k != 0. With
    Dirichlet data sin(pi k x), k_i = 1..J, has the eigenvalue of its wave number, that is of k/2: the same function of
    the Laplacian.

    Initial vorticity: with kappa = 0 all samples and seeds start from omega*, one draw of
    N(0, scale (-Laplacian + 9)^-3); with kappa > 0 from omega* + kappa omega_0 with another draw omega_0 for each
    sample (kappa = 1: the paper's). The vorticity on the torus is a curl and has mean 0: neither the noise nor the
    initial datum contains the zero mode.

    Space: Fourier modes, the product on modes 3|k_i| < N only (two thirds rule), so that it is the Galerkin product of
    these and conserves energy and enstrophy; higher modes have only viscosity and noise. Dirichlet data mean free slip,
    omega = psi = 0 on the boundary: sine modes, and the flow is that of their odd extension to [0,2]^2. Edition
    ``paper``: Crank-Nicolson for viscosity, explicit Euler for the rest; strong order 1, the noise being smooth.
    Edition ``converged``: ETDRK4, noise constant on stored intervals, a grid whose product takes in all of the noise.
    """

    noise: Literal["q_wiener"] = "q_wiener"
    truncation: int = 64
    sigma: float = 0.005
    points: int = 16
    frames: int = 100
    steps: int = 1000
    viscosity: float = 1e-4
    forcing: float = 0.1
    alpha: float = 0.005
    spectrum: Spectrum = "reference"
    fields: int = 10
    scale: float = 3**1.5  # the paper also prints 3^2; the authors' code has 162
    storage: Literal["stride", "spectral"] = "stride"  # every fourth point, or the modes that the stored grid resolves

    formula: ClassVar[str] = "omega_t = viscosity Laplacian omega - u.grad omega + f + sigma xi"
    title: ClassVar[str] = "Navier-Stokes (vorticity)"
    dim: ClassVar[int] = 2
    boundaries: ClassVar = ("periodic", "dirichlet")
    bases: ClassVar = ("fourier", "sine")
    noises: ClassVar = ("q_wiener",)
    coarsens: ClassVar[bool] = True
    refinement: ClassVar[int] = 0  # halving the step once more moves the solution by 2e-4
    schemes: ClassVar = {"paper": "crank_nicolson", "converged": "etdrk4"}
    remarks: ClassVar[str] = (
        "Every tenth frame is stored with the noise of its ten steps summed, aligned so that dw[k] ends at frame k; "
        "storage=stride keeps every fourth point as it is, as in the paper. The spectrum of the noise, "
        "exp(-alpha |2 pi k|^2), is that of the authors' code; spectrum=paper is the text's exp(-alpha |k|^2), most of "
        "which the stored points do not resolve. The authors' code also has an initial variance 31 times that of the "
        "text (scale=162), a noise with a mean, forcing that runs nine steps ahead of the solution, and no Dirichlet "
        "data."
    )

    def _auto(self) -> dict[str, Any]:
        auto = super()._auto()
        if self.edition == "paper":
            auto["solve_points"] = 4 * self.points
        return auto

    def _validate(self) -> None:
        if self.fields < 1:
            raise UserError(f"nse: fields must be at least 1, got {self.fields}")
        for key in ("viscosity", "alpha", "scale"):
            if getattr(self, key) < 0:
                raise UserError(f"nse: {key} must not be negative, got {getattr(self, key)}")
        super()._validate()
        if self.strided and self.solve_points % self.points:
            raise UserError(
                f"nse: storage=stride stores a subset of the points, but solve_points={self.solve_points} is not a "
                f"multiple of points={self.points}; use storage=spectral"
            )

    @property
    def strided(self) -> bool:
        return self.storage == "stride"

    @property
    def differences(self) -> bool:
        return False

    def resolved_points(self) -> int:
        """Twice the points of edition paper, or more if the two thirds rule needs more to keep every noise mode."""
        top = int(self.series().function_wavevectors.abs().max())
        waves = top if self.boundary == "periodic" else -(-top // 2)
        return self.points * -(-max(8 * self.points, 3 * waves + 1) // self.points)

    def resolved_substeps(self) -> int:
        return 2

    # --- noise ----------------------------------------------------------------------------------------------------
    def series(self) -> Lattice:
        return self._modes()[0]

    def eigenvalue_roots(self) -> Tensor:
        return self._modes()[1] * math.sqrt(self.fields)

    def _modes(self) -> tuple[Lattice, Tensor]:
        """The modes of one copy of W and the square roots of their eigenvalues."""
        basis = {"periodic": "fourier", "dirichlet": "sine"}[self.boundary] if self.basis == "auto" else self.basis
        try:
            return drawn_modes(basis, self.truncation, self.alpha, self.spectrum)
        except UserError as error:
            raise UserError(f"nse: {error}") from None

    # --- mathematics ----------------------------------------------------------------------------------------------
    def symbol(self, grid: Grid, device: torch.device | str = "cpu") -> Tensor:
        return self.viscosity * grid.laplacian(device=device)

    def nonlinear(self, grid: Grid, device: torch.device | str = "cpu") -> Map:
        """omega -> f - u.grad omega on coefficients."""
        x, y = grid.mesh(device)
        phase = 2 * math.pi * (x + y)
        force = grid.transform(self.forcing * (torch.sin(phase) + torch.cos(phase)))
        transport = advection(grid, device) if grid.periodic else sine_advection(grid, device)
        if self.forcing == 0:
            return transport
        return lambda c: transport(c).add_(force)

    def initial(self, grid: Grid, seed: Seed, samples: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        def eigenvalue(square: Tensor) -> Tensor:
            return self.scale * (square + 9) ** -3

        fixed = gaussian_field(grid, eigenvalue, 0, [0], "fixed", device)
        if self.kappa == 0:
            return fixed.repeat(len(samples), 1, 1)
        return fixed + self.kappa * gaussian_field(grid, eigenvalue, seed, samples, "initial", device)

    @property
    def rule(self) -> Rule:
        """u.grad omega counts as one product, its components summed; u gains the derivative that grad loses."""
        terms = (Monomial(-1.0, (1, 1), form="transport"), Monomial(self.forcing, (0,), form="force"))
        return Rule(2.0, -1.0, (*terms, Monomial(self.sigma, (0,), noise=True)))


@functools.lru_cache(maxsize=32)
def drawn_modes(basis: str, truncation: int, alpha: float, spectrum: Spectrum) -> tuple[Lattice, Tensor]:
    """The modes of W with more than `NEGLIGIBLE` amplitude and the square roots of their eigenvalues (see `NSE`)."""
    full = make_basis(basis, truncation, 2)
    assert isinstance(full, Lattice)
    k = full.function_wavevectors.to(torch.float64)
    if basis == "fourier":
        low, high = 1 - truncation // 2, truncation // 2
        present = [((low <= s * k) & (s * k <= high)).all(-1) for s in (1, -1)]  # k, and its partner -k
        factor = (present[0].to(torch.float64) + present[1].to(torch.float64)) / 2
    else:
        k, factor = k / 2, torch.ones(k.shape[:-1], dtype=torch.float64)
    roots = (spectra.gaussian(k * (2 * math.pi if spectrum == "reference" else 1.0), alpha) * factor).sqrt()
    roots[(k == 0).all(-1)] = 0  # the mean, and the second function of pairs that have only one
    keep = roots.amax(1) >= NEGLIGIBLE * roots.max()
    return full.keeping(keep), roots[keep]


def streams(grid: Grid, device: torch.device | str = "cpu") -> Tensor:
    """i (kappa_y, -kappa_x)/|kappa|^2 on modes 3|k_i| < N, else 0: the symbol that maps omega to u; (2, spectrum)."""
    kept = torch.ones(grid.spectral_shape, dtype=torch.bool, device=device)
    for axis in range(grid.dim):
        kept &= grid._along(3 * grid.mode_numbers(axis, device).abs() < grid.points[axis], axis)
    square = -grid.laplacian(device=device)
    inverse = torch.where(kept & (square > 0), 1 / square, torch.zeros_like(square))
    along_x, along_y = (grid.derivative(axis, device=device) for axis in range(2))
    return torch.stack((along_y * inverse, -along_x * inverse))


def advection(grid: Grid, device: torch.device | str = "cpu") -> Map:
    """-u.grad omega = (d_yy - d_xx)(u v) - d_xy (v^2 - u^2) for divergence-free (u, v), on Fourier coefficients.

    This form (Basdevant 1983) needs only two inverse and two forward transforms, done as one batch each.
    """
    stream = streams(grid, device)
    kx, ky = (k.expand(grid.spectral_shape) for k in grid.wavenumbers(device))
    symbol = torch.stack((kx**2 - ky**2, kx * ky)) * (stream != 0).any(0)
    symbol = symbol[..., None].contiguous()  # acts on real and imaginary parts

    def transport(c: Tensor) -> Tensor:
        flow = grid.inverse(c.unsqueeze(-3) * stream)
        u, v = flow.unbind(-3)
        products = torch.empty_like(flow)
        torch.mul(u, v, out=products.select(-3, 0))
        torch.mul(v - u, u.add_(v), out=products.select(-3, 1))
        terms = grid.transform(products)
        torch.view_as_real(terms).mul_(symbol)
        first, second = terms.unbind(-3)
        return first + second

    return transport


def sine_advection(grid: Grid, device: torch.device | str = "cpu") -> Map:
    """-u.grad omega by the formula of `advection` on sine coefficients (free slip), with the modes 3 k_i < 2N.

    u = psi_y is a series of sin cos, v = -psi_x of cos sin, u v of sin sin and v^2 - u^2 of cos cos. With
    theta = pi j/N, the sums of a_k cos(k theta) and a_k sin(k theta) for j = 0..N are real transforms of length 2N of
    a_k/2 and -i a_k/2; their inverses are the same transforms times 2/N.
    """
    (n, m), (rows, columns) = grid.points, ((2 * p - 1) // 3 + 1 for p in grid.points)
    kx, ky = grid.wavenumbers(device)
    kx, ky = kx[:rows], ky[:, :columns]
    square = kx**2 + ky**2
    inverse = torch.where(square > 0, 1 / square, torch.zeros_like(square))
    along_y = torch.stack((torch.complex(ky * inverse, 0 * square), torch.complex(0 * square, kx * inverse))) / 2
    parity = torch.tensor([-1j, 1], dtype=torch.complex128, device=device).reshape(2, 1, 1)  # sines, cosines
    symbol = torch.stack((kx**2 - ky**2, -kx * ky))
    symbol[:, 0], symbol[:, :, 0] = 0, 0

    def sums(terms: Tensor, axis: int, kept: int) -> Tensor:
        """The first ``kept`` values of the real transform along ``axis``."""
        length = 2 * grid.points[axis]
        values: Tensor = torch.fft.irfft(terms, n=length, dim=axis, norm="forward")
        return values.narrow(axis, 0, kept)

    def transport(b: Tensor) -> Tensor:
        low = b[..., :rows, :columns].unsqueeze(-3)
        u, v = sums(sums(low * along_y, -1, m + 1) * (parity / 2), -2, n + 1).unbind(-3)
        products = torch.stack((u * v, (v - u) * (v + u)), dim=-3)
        terms = sums(sums(products * (parity / m), -1, columns) * (parity / n), -2, rows) * symbol
        out = torch.zeros_like(b)
        out[..., :rows, :columns] = terms.sum(-3)
        return out

    return transport
