"""Files written with pandas as the published ones are, from arrays as the authors' generators save them.

Nothing of our own writer takes part. Facts: 1D generators store x = linspace(0, 1, N+1) with both ends, W (n, X, T) as
a path in float64 and sol (n, X, T) in float32; KdV's sol lacks the right end, and the file pads it. Phi42 stores
(n, T, X, Y) and the truncation eps. NSE stores sol (n, X, Y, T) and the noise of each interval, one frame less, padded.
Every array is flattened in C order into a column, and coordinate columns hold every coordinate and no NaN.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import spdebench as sb

RNG = np.random.default_rng(7)


def flat_file(path: Path, axes: dict[str, np.ndarray], order: str, columns: dict[str, np.ndarray], **constants) -> Path:
    """One column per array: coordinates of the axes (``order`` after the samples), then the arrays, then constants."""
    shape = next(iter(columns.values())).shape
    table = {}
    for name, values in axes.items():
        along = [1] + [-1 if axis == name else 1 for axis in order]
        table[name] = np.broadcast_to(values.reshape(along), shape).flatten()
    table |= {name: array.flatten() for name, array in columns.items()}
    table |= {name: np.full(int(np.prod(shape)), value) for name, value in constants.items()}
    pd.DataFrame(table).to_parquet(path)
    return path


def brownian(points: np.ndarray, functions: int, steps: int, dt: float, n: int) -> np.ndarray:
    """W (n, X, T) = sum_q beta_q(t) phi_q(x) with phi = 1, sqrt2 cos 2 pi x, sqrt2 sin 2 pi x, ..; W(0) = 0."""
    waves = [np.ones_like(points)]
    for k in range(1, functions // 2 + 1):
        waves += [np.sqrt(2) * np.cos(2 * np.pi * k * points), np.sqrt(2) * np.sin(2 * np.pi * k * points)]
    increments = np.sqrt(dt) * RNG.standard_normal((n, functions, steps))
    paths = np.concatenate([np.zeros((n, functions, 1)), np.cumsum(increments, axis=2)], axis=2)
    return np.einsum("nqt,qx->nxt", paths, np.stack(waves)[:functions])


def phi41_of_the_authors(w: np.ndarray, x: np.ndarray, dt: float, sigma: float) -> np.ndarray:
    """u' = (I - dt A / dx^2)^-1 (u + dt (3u - u^3) + sigma dW) on the closed grid: both ends have neighbours 1, N-1."""
    size, dx = len(x), x[1] - x[0]
    a = -2 * np.eye(size) + np.eye(size, k=1) + np.eye(size, k=-1)
    a[0, -2] = a[-1, 1] = 1
    inverse = np.linalg.inv(np.eye(size) - dt * a / dx**2)
    u = np.broadcast_to(x * (1 - x), w.shape[:2])
    frames = [u]
    for k in range(1, w.shape[2]):
        u = (u + dt * (3 * u - u**3) + sigma * (w[:, :, k] - w[:, :, k - 1])) @ inverse.T
        frames.append(u)
    return np.stack(frames, axis=2).astype(np.float32)


def test_phi41_is_imported_as_the_equation_that_was_solved(tmp_path):
    """From the imported u0 and dw our solver (with the drift of the authors' code) gives the imported u."""
    x, t = np.linspace(0, 1, 33), np.linspace(0, 0.01, 11)
    w = brownian(x, 9, 10, 1e-3, n=4)
    sol = phi41_of_the_authors(w, x, 1e-3, sigma=1.0)
    file = flat_file(tmp_path / "Phi41-1_xi-8-4.parquet", {"T": t, "X": x}, "XT", {"W": w, "sol": sol})
    ds = sb.open_dataset(sb.import_published(file, tmp_path))
    np.testing.assert_array_equal(ds.u, sol[:, :-1].transpose(0, 2, 1))
    np.testing.assert_allclose(ds.times, t, rtol=1e-12)
    assert ds.grid.points == (32,) and ds.grid.periodic and ds.identity["published"]["tags"]["sigma"] == 1.0
    eq = sb.equation("phi41", points=32, truncation=8, steps=10, frames=10, horizon=0.01, sigma=1.0, mass=3.0)
    np.testing.assert_allclose(sb.solve(eq, ds.u0, ds.dw), ds.u, atol=2e-6)


@pytest.mark.parametrize("filler", [np.nan, 0.0])
def test_kdv_has_one_row_of_x_less_in_sol(tmp_path, filler):
    """Toy dynamics u' = 0.9 u + dW, which the imported arrays must obey frame by frame."""
    x, t = np.linspace(0, 1, 17), np.linspace(0, 0.5, 6)
    w = brownian(x, 5, 5, 0.1, n=3)
    sol = decaying(np.diff(w, axis=2), w[:, :, 0] + np.sin(2 * np.pi * x)[:, None].T)[:, :-1]
    padded = np.concatenate([sol, np.full_like(sol[:, :1], filler)], axis=1)
    file = flat_file(tmp_path / "KdVcyl_xi_trc4_3.parquet", {"T": t, "X": x}, "XT", {"W": w, "sol": padded})
    ds = sb.open_dataset(sb.import_published(file, tmp_path))
    assert ds.identity["published"]["variant"] == "kdv" and ds.u.shape == (3, 6, 16)
    obeys_the_toy_dynamics(ds)


def test_phi42_has_time_first(tmp_path):
    x, t = np.linspace(0, 1, 8), np.linspace(0, 0.025, 6)
    dw = RNG.standard_normal((3, 5, 8, 8))
    w = np.concatenate([np.zeros((3, 1, 8, 8)), np.cumsum(dw, axis=1)], axis=1)
    sol = np.moveaxis(decaying(np.moveaxis(dw, 1, -1), RNG.standard_normal((3, 8, 8))), -1, 1)
    name = "Phi42+_expl_xi_eps_2_3.parquet"
    file = flat_file(tmp_path / name, {"T": t, "X": x, "Y": x}, "TXY", {"W": w, "sol": sol}, eps=2)
    ds = sb.open_dataset(sb.import_published(file, tmp_path))
    assert ds.identity["published"]["variant"] == "phi42" and ds.identity["published"]["eps"] == 2
    obeys_the_toy_dynamics(ds)


def test_ns_stores_the_noise_of_the_interval_that_begins_at_the_frame(tmp_path):
    t = np.linspace(0, 1, 6)
    dw = RNG.standard_normal((2, 16, 16, 5)).astype(np.float32)
    sol = decaying(dw, RNG.standard_normal((2, 16, 16))).astype(np.float32)
    padded = np.concatenate([dw, np.full_like(dw[..., :1], np.nan)], axis=-1)
    file = flat_file(tmp_path / "NS_xi_trc64_2.parquet", {"T": t}, "XYT", {"W": padded, "sol": sol})
    ds = sb.open_dataset(sb.import_published(file, tmp_path))
    assert ds.identity["published"]["variant"] == "ns" and ds.u.shape == (2, 6, 16, 16)
    obeys_the_toy_dynamics(ds)


def decaying(dw: np.ndarray, start: np.ndarray) -> np.ndarray:
    """u (.., T) with u_0 = start and u_k = 0.9 u_(k-1) + dW_k, in float32."""
    frames = [start]
    for k in range(dw.shape[-1]):
        frames.append(0.9 * frames[-1] + dw[..., k])
    return np.stack(frames, axis=-1).astype(np.float32)


def obeys_the_toy_dynamics(ds: sb.Dataset) -> None:
    np.testing.assert_allclose(ds.u[:, 1:], 0.9 * ds.u[:, :-1] + ds.dw[:, 1:], atol=5e-6)
    np.testing.assert_array_equal(ds.u0, ds.u[:, 0])
    np.testing.assert_array_equal(ds.dw[:, 0], 0)
