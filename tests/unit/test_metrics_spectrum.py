"""Spectrum, regularity, moments, boundary and causality by closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.metrics import causality_gap, evaluate, moment_maps
from spdebench.metrics.structure import StructureFunction


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def one(v, u, grid: Grid, name, **options):
    return next(iter(evaluate(v, u, grid, metrics=[name], **options).values()))


def powers(grid: Grid, amplitude, n: int = 4, frames: int = 3) -> np.ndarray:
    """Fields whose coefficients have modulus amplitude(|k|), random phases, on a 1-D periodic grid."""
    draw = torch.Generator().manual_seed(0)
    k = grid.mode_numbers(0).double()
    phase = torch.rand(n, frames, len(k), generator=draw, dtype=torch.float64) * 2 * math.pi
    size = torch.tensor([amplitude(float(x)) for x in k], dtype=torch.float64)
    size[-1] = 0  # Nyquist holds a cosine only
    return grid.inverse(torch.polar(size.expand_as(phase).contiguous(), phase)).numpy()


@pytest.mark.parametrize("grid", [Grid.unit(16), Grid.unit(9, 2), Grid.unit(16, boundary="dirichlet"), Grid.unit(6, 3)])
def test_spectrum_error_of_a_multiple(grid: Grid) -> None:
    u = noise(5, 4, *grid.points)
    score = one(10 * u, u, grid, "spectrum")
    assert score.value == pytest.approx(2.0, rel=1e-9)  # two decades of energy in every shell
    assert score.details["relative_l1"] == pytest.approx(99.0, rel=1e-9)


def test_the_spectrum_is_the_energy() -> None:
    """One sine of amplitude 3 at k = 2: energy 9/2 in shell 2; shells sum to the mean square."""
    x = np.arange(16) / 16
    u = np.broadcast_to(3 * np.sin(4 * math.pi * x), (3, 2, 16)).copy()
    u += np.array([1.0, -1.0, 1.0])[:, None, None]
    score = one(u, u, Grid.unit(16), "spectrum")
    assert score.details["truth"] == pytest.approx([1, 0, 4.5, 0, 0, 0, 0, 0], abs=1e-12)
    assert score.details["shells"] == 1


def test_a_box_that_is_not_a_cube_has_shells_of_true_wave_numbers() -> None:
    """On [0, 1] x [0, 2] the mode (1, 0) has twice the smallest wave number: shell 2."""
    grid = Grid((8, 16), (0.0, 0.0), (1.0, 2.0))
    u = np.zeros((3, 2, 8, 16)) + np.cos(2 * math.pi * np.arange(8) / 8)[:, None]
    assert int(np.argmax(one(u, u, grid, "spectrum").details["truth"])) == 2


def test_a_low_pass_prediction_is_found() -> None:
    u = powers(Grid.unit(64), lambda k: 1 / (1 + k**2))
    spectrum = np.fft.rfft(u)
    spectrum[..., 8:] *= 0.01
    v = np.fft.irfft(spectrum, n=64)
    assert one(v, u, Grid.unit(64), "rel_l2").value < 0.05
    assert one(v, u, Grid.unit(64), "spectrum").value == pytest.approx(4 * 24 / 31, rel=1e-6)


def test_littlewood_paley_reads_off_the_exponent() -> None:
    """Block energies 2^{-2 alpha j} exactly: the slope is alpha."""
    grid = Grid.unit(64)

    def besov(alpha: float):
        def amplitude(k: float) -> float:
            j = math.floor(math.log2(k)) if k >= 1 else 0
            return 2 ** (-alpha * j - j / 2)  # 2^j modes per block

        return powers(grid, amplitude)

    score = one(besov(1.7), besov(0.5), grid, "lp_slope")
    assert score.details["truth"] == pytest.approx(0.5, abs=1e-9)
    assert score.details["prediction"] == pytest.approx(1.7, abs=1e-9)
    assert score.value == pytest.approx(1.2, abs=1e-9)


def test_littlewood_paley_at_its_edges() -> None:
    u = noise(4, 3, 32)
    assert one(0 * u, u, Grid.unit(32), "lp_slope").value == math.inf
    assert math.isnan(one(u, 0 * u, Grid.unit(32), "lp_slope").value)
    with pytest.raises(UserError, match="2 dyadic blocks"):
        one(u[..., :8], u[..., :8], Grid.unit(8), "lp_slope")


def test_structure_function_of_a_wave_and_of_a_spike() -> None:
    """E |u(x+r) - u(x)|^2 = 1 - cos(2 pi r / N) for a sine; a spike has S(r) constant: H = 0."""
    lags = np.array([1, 2, 4, 8])
    wave = np.broadcast_to(np.sin(2 * math.pi * np.arange(64) / 64), (3, 2, 64)).copy()
    spike = np.zeros((3, 2, 64))
    spike[:, :, 5] = 1.0
    slope = np.polyfit(np.log2(lags), np.log2(1 - np.cos(2 * math.pi * lags / 64)), 1)[0] / 2
    score = one(spike, wave, Grid.unit(64), "structure")
    assert score.details["truth"] == pytest.approx(slope, rel=1e-9)
    assert score.details["prediction"] == pytest.approx(0, abs=1e-9)
    assert score.value == pytest.approx(slope, rel=1e-9)


def test_structure_function_on_a_dirichlet_grid_does_not_wrap() -> None:
    ramp = np.broadcast_to(np.arange(32.0), (3, 2, 32)).copy()
    for p in (1.0, 2.0):
        assert one(ramp, ramp, Grid.unit(32, boundary="dirichlet"), StructureFunction(p=p)).details["truth"] == 1.0


def test_structure_function_in_time_of_a_line_and_of_brownian_motion() -> None:
    """400 x 4 Brownian paths of 128 steps: H = 1/2 within 0.02 (its standard error is about 0.004)."""
    walk = np.cumsum(noise(400, 129, 4), axis=1)
    line = np.broadcast_to(np.arange(129.0)[:, None], walk.shape)
    score = one(line, walk, Grid.unit(4), "structure_time")
    assert score.details["prediction"] == pytest.approx(1.0, abs=1e-9)
    assert score.details["truth"] == pytest.approx(0.5, abs=0.02)
    assert score.interval.low < 0.5 < score.interval.high


def test_moment_maps_and_their_errors() -> None:
    u = noise(50, 3, 8)
    v = 2 * u + 3
    maps = moment_maps(v, u, Grid.unit(8))
    assert maps["mean"]["truth"] == pytest.approx(u[:, 1:].mean(0))
    assert maps["std"]["prediction"] == pytest.approx(2 * u[:, 1:].std(0))
    for shape in ("skewness", "kurtosis"):
        assert maps[shape]["prediction"] == pytest.approx(maps[shape]["truth"])
    names = ["moment_std", "std_ratio", "moment_skewness", "moment_kurtosis", "moment_mean"]
    found = evaluate(v, u, Grid.unit(8), metrics=names).summary()
    unit = np.sqrt(np.mean((u - u.mean(0))[:, 1:] ** 2))
    assert [found[n] for n in names[:4]] == pytest.approx([1.0, 2.0, 0.0, 0.0], abs=1e-9)
    assert found["moment_mean"] == pytest.approx(np.sqrt(np.mean((u[:, 1:].mean(0) + 3) ** 2)) / unit)


def test_skewness_and_kurtosis_by_value() -> None:
    """A sample of three 0s and one 4: skewness 2/sqrt(3), kurtosis 7/3; of +-1: 0 and 1."""
    u = np.broadcast_to(np.array([0.0, 0, 0, 4])[:, None, None], (4, 2, 4))
    v = np.broadcast_to(np.array([1.0, -1, 1, -1])[:, None, None], (4, 2, 4))
    found = evaluate(v, u, Grid.unit(4), metrics=["moment_skewness", "moment_kurtosis"]).summary()
    assert found == pytest.approx({"moment_skewness": 2 / math.sqrt(3), "moment_kurtosis": 7 / 3 - 1})


def test_the_mean_field_is_called_underdispersed() -> None:
    u = noise(40, 3, 8)
    mean = np.broadcast_to(u.mean(0), u.shape)
    found = evaluate(mean, u, Grid.unit(8), metrics=["std_ratio", "moment_std"]).summary()
    assert found == pytest.approx({"std_ratio": 0.0, "moment_std": 1.0}, abs=1e-12)


@pytest.mark.parametrize("dim", [1, 2])
def test_boundary_residual(dim: int) -> None:
    grid = Grid.unit(8, dim, "dirichlet")
    u = noise(4, 3, *grid.points)
    u[:, :, 0] = 0
    if dim == 2:
        u[..., 0] = 0
    u /= np.sqrt((u[:, 1:] ** 2).mean(axis=tuple(range(1, u.ndim)), keepdims=True))
    assert one(u, u, grid, "boundary").value == 0
    assert one(u + 0.3, u, grid, "boundary").value == pytest.approx(0.3)
    inside = u.copy()
    inside[..., 1:] += 5 if dim == 1 else 0
    assert one(inside, u, grid, "boundary").value == 0
    with pytest.raises(UserError, match="Dirichlet"):
        one(u, u, Grid.unit(8, dim), "boundary")


def causal(u0: torch.Tensor, dw: torch.Tensor) -> torch.Tensor:
    return u0[:, None] + dw.cumsum(1)


def test_a_solver_is_causal_to_the_last_bit() -> None:
    u0, dw = torch.ones(6, 8), torch.from_numpy(noise(6, 11, 8))
    found = causality_gap(causal, u0, dw, cuts=[1, 5, 9])
    assert found.value == 0 and found.cuts == (1, 5, 9)
    assert (found.response > 0).all()


def test_a_predictor_that_looks_ahead_is_found() -> None:
    """V(t) = W(t) + W(T) / 2: changing the last increment by d moves every earlier frame by d / 2."""
    u0, dw = torch.zeros(2, 4), torch.ones(2, 5, 4)
    dw[1, 4] = 3.0  # the two samples exchange their last increment: d = 2

    def ahead(u0: torch.Tensor, dw: torch.Tensor) -> torch.Tensor:
        return causal(u0, dw) + 0.5 * dw.sum(1, keepdim=True)

    found = causality_gap(ahead, u0, dw, cuts=[3])
    path = torch.tensor([1.0, 2, 3, 4])
    expected = np.mean([2 / float((path + total / 2).norm()) for total in (5.0, 7.0)])  # ||(1, 1, 1, 1)|| = 2
    assert found.value == pytest.approx(expected)


def test_a_predictor_that_ignores_the_noise_has_no_response() -> None:
    found = causality_gap(lambda u0, dw: u0[:, None].expand_as(dw), np.ones((3, 4)), noise(3, 6, 4), cuts=2)
    assert found.value == 0 and not found.response.any() and found.cuts == (1, 4)


@pytest.mark.parametrize(
    ("u0", "dw", "cuts", "line"),
    [
        ((3, 4), (3, 6, 5), 2, "expected u0"),
        ((1, 4), (1, 6, 4), 2, "at least 2 samples"),
        ((3, 4), (3, 2, 4), 2, "at least 3 frames"),
        ((3, 4), (3, 6, 4), [5], r"1\.\.4"),
        ((3, 4), (3, 6, 4), 0, "at least 1 cut"),
    ],
)
def test_causality_refuses_what_it_cannot_use(u0, dw, cuts, line: str) -> None:
    with pytest.raises(UserError, match=line):
        causality_gap(causal, np.ones(u0), np.ones(dw), cuts=cuts)


def test_causality_wants_all_frames() -> None:
    with pytest.raises(UserError, match="returned shape"):
        causality_gap(lambda u0, dw: dw[:, 1:], np.ones((3, 4)), np.ones((3, 6, 4)))
