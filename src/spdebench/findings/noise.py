"""Findings about the noise of the data: KdV's damping and blow-ups, the spectrum of NSE, aliasing."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from spdebench.data import Dataset
from spdebench.equations import NSE, KdV, Phi41
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.findings.base import Finding, FindingOnFile, FindingResult, Sources, check_equation, declare, printed
from spdebench.solvers import simulate

LARGE = 20.0
"""A path of KdV whose |u| exceeds this has diverged: |u_0| <= 1, and the noise adds about 1."""


# --- KdV ----------------------------------------------------------------------------------------------------------
def difference_symbols(n: int) -> tuple[Tensor, Tensor]:
    """D_1(k) = i n sin(2 pi k/n) and D_3 = D_1 D_2, D_2 = 2 n^2 (cos(2 pi k/n) - 1), on n points of [0,1]."""
    angle = 2 * math.pi * torch.arange(n // 2 + 1, dtype=torch.float64) / n
    first = 1j * n * torch.sin(angle)
    return first, first * 2 * n**2 * (torch.cos(angle) - 1)


def crank_nicolson_euler(u: Tensor, dw: Tensor, horizon: float, dispersion: float, sigma: float) -> Tensor:
    """(1 - dt L/2) w' = (1 + dt L/2) w + dt 3 D_1 F[u^2] + sigma F[dW], L = -dispersion D_3, u^2 cut at n/3: u at T.

    The step of the released code: Crank-Nicolson for the dispersion, explicit Euler for the product.
    """
    n, steps = u.shape[-1], dw.shape[1]
    dt = horizon / steps
    first, third = difference_symbols(n)
    linear = -dispersion * third * dt / 2
    kept = torch.arange(n // 2 + 1) <= n // 3
    for increment in dw.unbind(1):
        product = torch.where(kept, 3 * dt * first * torch.fft.rfft(u.square()), 0.0)
        spectrum = (1 + linear) * torch.fft.rfft(u) + product + sigma * torch.fft.rfft(increment)
        u = torch.fft.irfft(spectrum / (1 - linear), n)
    return u


def noise_left(n: int, dt: float, dispersion: float) -> Tensor:
    """1/(1 + (omega_k dt/2)^2), omega_k = dispersion |D_3(k)|, for k = 0..n/2: what that step leaves of the power of
    the noise; it only rotates existing energy."""
    return 1 / (1 + (dispersion * difference_symbols(n)[1].abs() * dt / 2) ** 2)


def kdv(sources: Sources) -> FindingResult:
    """E|u(T)|^2 = |u_0|^2 + sigma^2 Tr(Q) T; (1 - dt L/2)^-1 sigma dW has its power divided by 1 + (omega dt/2)^2."""
    sigma, horizon, steps, samples = 0.1, 0.5, 200, 200
    rows = []
    numbers: dict[str, float] = {}
    for j in (32, 64, 128, 256):
        eq = KdV(noise="cylindrical", truncation=j, sigma=sigma, horizon=horizon, steps=steps, frames=steps)
        with without_aliasing_warning():
            dw = eq.wiener().increments(0, range(samples), steps, horizon).double()[:, -steps:]
        u = crank_nicolson_euler(eq.initial(eq.grid, 0, range(samples)), dw, horizon, 0.1, sigma)
        lost = float((~(u.abs().amax(1) < LARGE)).double().mean())
        counts = 2.0 * (torch.arange(eq.points // 2 + 1) <= j // 2)
        counts[0] = 1
        left = float((noise_left(eq.points, horizon / steps, 0.1) * counts).sum() / counts.sum())
        rows.append({"J": j, "paths lost": lost, "power of the noise that is left": left if j <= eq.points else None})
        numbers |= {f"lost_{j}": lost, f"left_{j}": left}
    names = {f"published_{j}": printed("tab:wave_kpz_Periodic", "FNO", equation="kdv", noise="cylindrical", J=str(j))
             for j in (32, 256)}  # fmt: skip
    return FindingResult(numbers | names, rows)


def kdv_on_file(sources: Sources, data: Dataset) -> FindingResult:
    """Share of paths with max|u| > 20 or not finite; growth of E|u|^2 over that of the noise, sigma^2 sum_t E dW^2.

    A file of the published layout does not state sigma: it has the paper's.
    """
    check_equation(data, "kdv")
    _one_dimension(data)
    u, dw = (torch.from_numpy(data.read(c, 0, len(data))).double() for c in ("u", "dw"))
    lost = ~(u.abs().flatten(1).amax(1) < LARGE)
    sigma = 0.1 if data.imported else data.equation.sigma
    u, dw = u[~lost], dw[~lost]
    gain = float(u[:, -1].square().mean() - u[:, 0].square().mean())
    share = gain / (sigma**2 * float(dw.square().sum(1).mean()))
    return FindingResult({"lost": float(lost.double().mean()), "gain": share, "sigma": sigma})


declare(
    Finding(
        name="kdv",
        title="The released solver of KdV with cylindrical noise loses most of the noise and a quarter of the paths.",
        sentence="At J = 32, 64, 128 and 256, {lost_32:.0%}, {lost_64:.0%}, {lost_128:.0%} and {lost_256:.0%} of the "
        "paths are not finite or exceed 20 at T (200 steps, dispersion 0.1). The Crank-Nicolson step keeps "
        "only {left_32:.0%}, {left_64:.0%} and {left_128:.1%} of the power of the noise for J = 32, 64 and "
        "128.",
        follows="If J hardly changes the data (FNO: {published_32:g} at J = 32 and {published_256:g} at J = 256), "
        "they do not test how models deal with rough noise. Before training, check E|u(T)|^2 = |u_0|^2 + "
        "sigma^2 Tr(Q) T, which holds exactly for KdV, and count the paths that are dropped. Our edition "
        "`paper` adds the noise as an impulse, which preserves this law.",
        uses=("fresh data", "formulas", "published numbers"),
        compute=kdv,
        on_file=FindingOnFile(
            "In this file {lost:.1%} of the paths are lost, and E|u|^2 of the others grows by {gain:.3g} times what "
            "noise with sigma {sigma:g} brings in.",
            kdv_on_file,
        ),
    )
)


# --- NSE ----------------------------------------------------------------------------------------------------------
def nse(sources: Sources) -> FindingResult:
    """sum q_k over k_i = -J/2+1..J/2 with q_k = exp(-alpha |k|^2) (text) or exp(-alpha |2 pi k|^2) (code)."""
    rows = []
    numbers: dict[str, float] = {}
    for j in (32, 64, 128, 256):
        row: dict[str, float] = {"J": j}
        for name, scale in (("text", 1.0), ("code", 2 * math.pi)):
            k = torch.arange(-j // 2 + 1, j // 2 + 1, dtype=torch.float64)
            q = torch.exp(-NSE().alpha * scale**2 * k.square())
            total = float(q.sum() ** 2)
            hidden = 1 - float(q[k.abs() < 8].sum() ** 2) / total
            row |= {f"sum of eigenvalues, {name}": total, f"beyond 16 x 16 points, {name}": hidden}
            numbers |= {f"{name}_{j}": total, f"hidden_{name}_{j}": hidden}
        rows.append(row)
    last = {f"dlr_{j}": printed("tab:wave_kpz_Periodic", "DLR-Net", equation="nse", J=str(j)) for j in (32, 256)}
    return FindingResult(numbers | last, rows)


def nse_on_file(sources: Sources, data: Dataset) -> FindingResult:
    """alpha in E|dW_k|^2 = c exp(-alpha |k|^2), least squares of the logarithm over 0 < |k_i| <= 4."""
    check_equation(data, "nse")
    if data.grid.dim != 2:
        raise UserError(f"{data.path.name} has {data.grid.dim} space dimensions; this finding reads files of nse")
    dw = torch.from_numpy(data.read("dw", 0, min(len(data), 64))[:, 1:]).double()
    power = torch.fft.fft2(dw).abs().square().mean((0, 1))
    k = torch.fft.fftfreq(power.shape[0], 1 / power.shape[0], dtype=torch.float64)
    squares = k[:, None] ** 2 + k**2
    inside = (k.abs()[:, None] <= 4) & (k.abs() <= 4) & (squares > 0)
    x, y = squares[inside], power[inside].log()
    x = x - x.mean()
    return FindingResult({"alpha": -float((x * y).sum() / x.square().sum())})


declare(
    Finding(
        name="nse",
        title="The text and the code of NSE have different noise, and with the noise of the code the truncation J "
        "has no effect.",
        sentence="The eigenvalues of the text, exp(-alpha |k|^2), have the sum {text_64:.0f} at J = 64, and "
        "{hidden_text_64:.0%} of it lies in modes that the stored 16 x 16 points do not resolve. The "
        "eigenvalues of the code, exp(-alpha |2 pi k|^2), have the sum {code_64:.1f} at every J, and only a "
        "fraction of {hidden_code_64:.0e} is not resolved. (The noise is a sum of ten independent fields, so that "
        "Var dW/dt is about ten times these sums.)",
        follows="With the spectrum of the code all columns J = 32 to 256 are the same problem (DLR-Net: {dlr_32:g} "
        "and {dlr_256:g}). With the spectrum of the text, most of the noise is missing from the input on 16 "
        "x 16 points, and no error can be small. Choose `spectrum=reference` for a well-posed problem, or "
        "store the noise on the grid of the solver.",
        uses=("formulas", "published numbers"),
        compute=nse,
        on_file=FindingOnFile(
            "The power of the noise in this file falls like exp(-{alpha:.3g} |k|^2); the text has 0.005, the code "
            "0.197.",
            nse_on_file,
        ),
    )
)


# --- aliasing -----------------------------------------------------------------------------------------------------
def aliasing(sources: Sources) -> FindingResult:
    """Harmonic k falls on k mod N: for J = 2N every mode 0 < k < N/2 has twice its power, and k = 0 three times."""
    rows, numbers = [], {}
    for j in (128, 256):
        for edition in ("paper", "converged"):
            with without_aliasing_warning():
                eq = Phi41(sigma=1.0, truncation=j, edition=edition)
                u = simulate(eq, 0, range(120), every=eq.frames).u[:, -1]
            value = float(u.std(0).mean())
            rows.append({"J": j, "edition": edition, "s.d. of u(T)": value})
            numbers[f"{edition}_{j}"] = value
    return FindingResult(numbers, rows)


def aliasing_on_file(sources: Sources, data: Dataset) -> FindingResult:
    """mean over 0 < k < N/4 of E|dW_k|^2 / dt: 1 for cylindrical noise that the grid resolves, 2 for J = 2N."""
    _one_dimension(data)
    dw = torch.from_numpy(data.read("dw", 0, min(len(data), 200))[:, 1:]).double()
    n = dw.shape[-1]
    power = (torch.fft.rfft(dw).abs().square() / n**2).mean((0, 1))
    return FindingResult({"power": float(power[1 : n // 4].mean()) / float(data.times[1] - data.times[0])})


declare(
    Finding(
        name="aliasing",
        title="At J = 256 the noise is aliased on 128 points, which makes this column of the tables difficult.",
        sentence="From J = 128 to J = 256 the standard deviation of Phi41 at sigma 1 grows from {paper_128:.3f} to "
        "{paper_256:.3f} on 128 points. It does not grow if the grid resolves the noise "
        "({converged_128:.3f} and {converged_256:.3f}; 120 samples each).",
        follows="High harmonics alias onto low ones and double their power, so J = 256 is a different equation and "
        "not the same equation with finer noise. Keep J below the number of points, or use "
        "`edition=converged`. Do not read the column J = 256 as a test of rough noise.",
        uses=("fresh data",),
        compute=aliasing,
        on_file=FindingOnFile(
            "The low modes of the noise in this file have {power:.2f} times the power of cylindrical noise (1: "
            "resolved, 2: aliased once).",
            aliasing_on_file,
        ),
    )
)


def _one_dimension(data: Dataset) -> None:
    if data.grid.dim != 1:
        raise UserError(f"{data.path.name} has {data.grid.dim} space dimensions; this finding reads files with one")
