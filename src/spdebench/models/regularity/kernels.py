"""I, the inverse of d_t - L, on the frames of a setting: one matrix over time for each mode.

    I[p]_n = sum_{m <= n} K_{n-m} p_m,    I_c = A^n u0,    both by the steps of `schemes`

xi_n is the rate of the noise on the interval that ends at frame n. The product of xi and a field tau is xi_n tau_{n-1}
at the left end of this interval and xi_n tau_n at its right end.

The authors' code multiplies by one dense matrix over all (t, x), has the heat equation by implicit Euler only, and
propagates u0 with the Dirichlet matrix on a periodic box; here boundary, step and scheme are those of the setting.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from spdebench.models.regularity.schemes import Kind, linear_part, propagator
from spdebench.tasks import Setting


def _matrix(lags: Tensor, delay: int = 0) -> Tensor:
    """(K, T, T) from lags (T-1, K..): entry (n, m) is lag n-m-delay, for sources at frames 1-delay <= m <= n-delay."""
    frames = len(lags) + 1
    n, m = torch.arange(frames)[:, None], torch.arange(frames)
    lag = n - m - delay
    kept = (lag >= 0) & (m >= 1 - delay)
    return (lags.flatten(1)[lag.clamp(0, frames - 2)] * kept[..., None]).permute(2, 0, 1)


class Kernel(nn.Module):
    """I for one setting, on fields (..., T, X..). The matrices over (n, m) of all modes are applied as one batched
    product, so that neither the value nor the gradient loops over time."""

    velocity: Tensor

    def __init__(self, setting: Setting, kind: Kind = "generator") -> None:
        super().__init__()
        equation = setting.equation
        assert equation is not None, "a kernel belongs to an equation"
        self.equation, self.grid, self.frames, self.dt = equation, setting.grid, setting.frames, setting.dt
        self.step, noise = linear_part(equation, self.grid, self.dt, kind)
        drift, count = self.step, self.frames - 1
        self._keep("drift", _matrix(drift.powers(drift.left, count), 1) + _matrix(drift.powers(drift.right, count)))
        left, right = (noise.powers(v, count) for v in (noise.left, noise.right))
        self._keep("noise", _matrix(left + right))
        self.implicit = bool((right != 0).any())
        if equation.multiplicative:
            self._keep("noise_left", _matrix(left))
            self._keep("noise_right", _matrix(right))
        unit = torch.eye(drift.a.shape[-1], dtype=drift.a.dtype).expand(drift.a.shape)
        self._keep("carry", drift.powers(unit[..., 0], self.frames).flatten(1).T[..., None])
        moving = torch.zeros(self.frames, *self.grid.points, dtype=torch.float64)
        if equation.order == 2:
            source = max(equation.solving_grid, self.grid, key=lambda g: g.points)  # the grid whose modes the data have
            start = source.resize(source.transform(equation.velocity(source)), self.grid)
            moving = self.grid.inverse(drift.powers(unit[..., 1], self.frames) * start)
        self.register_buffer("velocity", moving.float(), persistent=False)

    def _keep(self, name: str, matrix: Tensor) -> None:
        """Register real and imaginary parts as float32 buffers (K, T, T); the latter is None for a real matrix."""
        for part in ("real", "imag"):
            values = getattr(matrix, part).float().contiguous() if part == "real" or matrix.is_complex() else None
            self.register_buffer(f"{name}_{part}", values, persistent=False)

    # --- the integrals --------------------------------------------------------------------------------------------
    def datum(self, u0: Tensor) -> Tensor:
        """I_c: u0 (B X..) propagated by the linear part, with the equation's initial velocity if its order is 2."""
        return self._along_time("carry", u0.unsqueeze(-self.grid.dim - 1)) + self.velocity

    def noise(self, xi: Tensor) -> Tensor:
        """I[xi], xi (..., T, X..) the rate dW/dt of the interval that ends at its frame."""
        return self._along_time("noise", xi)

    def multiplied(self, tau: Tensor, xi: Tensor) -> Tensor:
        """I[tau xi]."""
        frames = -self.grid.dim - 1
        before = torch.cat((torch.zeros_like(tau.narrow(frames, 0, 1)), tau.narrow(frames, 0, self.frames - 1)), frames)
        out = self._along_time("noise_left", before * xi)
        return out + self._along_time("noise_right", tau * xi) if self.implicit else out

    def drift(self, source: Tensor) -> Tensor:
        """I[p], p (..., T, X..) at the frames."""
        return self._along_time("drift", source)

    def _along_time(self, name: str, source: Tensor) -> Tensor:
        """The matrices (K, T, T') called ``name``, applied along the frames of every mode of source (..., T', X..)."""
        grid = self.grid
        c = grid.transform(source)
        lead = c.shape[: -grid.dim - 1]
        c = c.reshape(-1, c.shape[-grid.dim - 1], math.prod(grid.spectral_shape))
        parts = torch.view_as_real(c) if grid.periodic else c.unsqueeze(-1)
        columns = parts.permute(2, 1, 0, 3)  # (K, T', N, 2 or 1)
        out = _times(getattr(self, f"{name}_real"), columns)
        imaginary = getattr(self, f"{name}_imag")
        if imaginary is not None:
            out = out + _times(imaginary, torch.stack((-columns[..., 1], columns[..., 0]), -1))
        out = out.permute(2, 1, 0, 3).contiguous()
        c = torch.view_as_complex(out) if grid.periodic else out.squeeze(-1)
        return grid.inverse(c.reshape(*lead, c.shape[1], *grid.spectral_shape))


def _times(matrix: Tensor, columns: Tensor) -> Tensor:
    """matrix (K, T, T') times columns (K, T', ..): (K, T, ..)."""
    return torch.unflatten(torch.bmm(matrix, columns.flatten(2)), 2, columns.shape[2:])


class DispersiveKernel(Kernel):
    """I for u_t = -c u_xxx + p. Products oscillate too fast for the frames; the normal form integrates them exactly.

    For a and b that the flow S_h propagates over the interval, A and B their primitives without the means a', b':

        int_0^h S_{h-s} d(a b) ds = (A B - S_h[(S_-h A)(S_-h B)])/(3 c) + h (a' d b + b' d a)      at the end of it,

    as in `solvers/dispersive.py`; I[d a] of one factor gains h d a in each interval, because the flow commutes with d.
    """

    symbols: Tensor

    def __init__(self, setting: Setting, kind: Kind = "generator") -> None:
        super().__init__(setting, kind)
        known = self.equation.quadratic_dispersion()
        assert known is not None
        flow = self.step.a[..., 0, 0]
        self._keep("flow", _matrix(self.step.powers(torch.ones_like(self.step.left), self.frames - 1)))
        slope = self.grid.derivative(0)
        nonzero = slope.abs() > 0
        primitive = torch.where(nonzero, 1 / torch.where(nonzero, slope, 1.0), 0.0)
        scale = torch.where(nonzero, 1 / (3 * known[0]), 0.0)
        symbols = (self.dt * slope, primitive, primitive / flow, scale + 0j, scale * flow)
        self.register_buffer("symbols", torch.stack(symbols).to(torch.complex64), persistent=False)

    def flux(self, *factors: Tensor) -> Tensor:
        """I[d a] or I[d(a b)]."""
        grid, (slope, primitive, back, scale, ahead) = self.grid, self.symbols.unbind(0)
        c = [grid.transform(f) for f in factors]
        if len(c) == 1:
            return self._along_time("flow", grid.inverse(c[0] * slope))
        a, b = c
        ends, starts = (grid.inverse(a * s) * grid.inverse(b * s) for s in (primitive, back))
        total = grid.transform(ends) * scale - grid.transform(starts) * ahead
        total = total + (a[..., :1].real * b + b[..., :1].real * a) * slope
        return self._along_time("flow", grid.inverse(total))


def make_kernel(setting: Setting, kind: Kind = "generator") -> Kernel:
    """I for a setting whose equation is known; with the normal form where the flow between frames is exact."""
    equation = setting.equation
    assert equation is not None
    dispersive = equation.quadratic_dispersion() is not None and propagator(equation, kind).resolves_interval
    return (DispersiveKernel if dispersive else Kernel)(setting, kind)
