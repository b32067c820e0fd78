"""Filters, transforms by matrices, and the layer, against the definition written plainly and against PyWavelets."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from spdebench.errors import UserError
from spdebench.models.layers.wavelet import WaveletLayer, analysis, coarse, largest_level, synthesis
from spdebench.models.layers.wavelet_filters import scaling_filter

ORTHOGONAL = [f"db{n}" for n in range(1, 9)]


@pytest.mark.parametrize("name", ORTHOGONAL)
def test_a_filter_is_orthonormal_with_its_vanishing_moments(name):
    h = np.array(scaling_filter(name))
    order = int(name[2:])
    assert len(h) == 2 * order
    assert abs(h.sum() - np.sqrt(2)) < 1e-12
    for m in range(order):
        assert abs(h[2 * m :] @ h[: len(h) - 2 * m] - (m == 0)) < 1e-12
    k = np.arange(len(h))
    for p in range(order):
        assert abs(((-1.0) ** k * (k / len(h)) ** p) @ h) < 1e-12


@pytest.mark.parametrize("name", ORTHOGONAL)
def test_a_filter_is_the_minimum_phase_factor(name):
    order = int(name[2:])
    binomials = [1.0]
    for k in range(1, order):
        binomials.append(binomials[-1] * (order - 1 + k) / k)
    h = np.poly(-np.ones(order))
    for y in np.roots(binomials[::-1]):
        z = np.roots([1, 4 * y - 2, 1])
        h = np.convolve(h, [1, -z[np.abs(z).argmin()]])
    np.testing.assert_allclose(scaling_filter(name), np.sqrt(2) * h.real / h.real.sum(), atol=1e-9)


def test_haar_is_db1_and_names_are_checked():
    assert scaling_filter("haar") == scaling_filter("db1")
    with pytest.raises(UserError, match=f"choose from {', '.join([*ORTHOGONAL, 'haar'])}$"):
        scaling_filter("zzz")
    with pytest.raises(UserError, match="unknown wavelet 'bd6'"):
        scaling_filter("bd6")


def step(x: np.ndarray, wavelet: str) -> tuple[np.ndarray, np.ndarray]:
    """One step along the first axis, by its definition on the reflected signal."""
    h = np.array(scaling_filter(wavelet))
    n, length = len(x), len(h)
    filters = h[::-1], (-1.0) ** (np.arange(length) + 1) * h
    long = np.concatenate([x, x[::-1]])
    return tuple(  # type: ignore[return-value]
        np.stack(
            [sum(f[j] * long[(2 * i + 1 - j) % (2 * n)] for j in range(length)) for i in range((n + length - 1) // 2)]
        )
        for f in filters
    )


def unstep(low: np.ndarray, high: np.ndarray, n: int, wavelet: str) -> np.ndarray:
    """One step back along the first axis: the adjoint of filtering without ends, cut to n samples."""
    h = np.array(scaling_filter(wavelet))
    length = len(h)
    e = ((-1.0) ** (np.arange(length) + 1) * h)[::-1]
    out = np.zeros((2 * len(low) + length, *low.shape[1:]))
    for i in range(len(low)):
        for j in range(length):
            out[2 * i + j] += h[j] * low[i] + e[j] * high[i]
    return out[length - 2 : length - 2 + n]


def split(v: np.ndarray, wavelet: str) -> list[list[np.ndarray]]:
    """One step over the first two axes: bands[t][x]."""
    return [[b.swapaxes(0, 1) for b in step(half.swapaxes(0, 1), wavelet)] for half in step(v, wavelet)]


def join(bands: list[list[np.ndarray]], shape: tuple[int, int], wavelet: str) -> np.ndarray:
    halves = [unstep(lo.swapaxes(0, 1), hi.swapaxes(0, 1), shape[1], wavelet).swapaxes(0, 1) for lo, hi in bands]
    return unstep(*halves, shape[0], wavelet)


@pytest.mark.parametrize("wavelet", ["haar", "db2", "db6"])
@pytest.mark.parametrize("n", [4, 5, 16, 57])
def test_one_step_and_back(wavelet, n):
    x = np.random.default_rng(n).normal(size=n)
    plain = step(x, wavelet)
    for matrix, expected in zip(analysis(n, wavelet), plain, strict=True):
        np.testing.assert_allclose(matrix @ x, expected, atol=1e-13)
    low, high = synthesis(n, wavelet)
    np.testing.assert_allclose(low @ plain[0] + high @ plain[1], x, atol=1e-13)
    np.testing.assert_allclose(unstep(*plain, n, wavelet), x, atol=1e-13)


def test_constants_and_lines():
    low = coarse(64, "db3", 2)[0]
    k = len(low) // 2
    np.testing.assert_allclose(low[:k] @ np.ones(64), 2.0, atol=1e-12)  # sqrt 2 per step
    np.testing.assert_allclose(low[k:] @ np.ones(64), 0.0, atol=1e-12)
    inner = (low[k:] @ np.arange(64.0) ** 2)[3:-3]  # three vanishing moments, away from the reflected ends
    np.testing.assert_allclose(inner, 0.0, atol=1e-9)


def test_levels_that_fit():
    assert largest_level(57, "db6") >= 4 and largest_level(128, "db6") >= 4  # the paper's
    assert largest_level(16, "db6") == 3 and largest_level(8, "db6") == 0
    with pytest.raises(UserError, match="16 points carry levels 1 to 3, got 4"):
        coarse(16, "db6", 4)


def transformed(v: np.ndarray, weight: np.ndarray, wavelet: str, level: int) -> np.ndarray:
    """Forth, ``weight`` (2, t, 2, x, C, C) on the coarsest bands, back."""
    bands = split(v, wavelet)
    if level > 1:
        bands[0][0] = transformed(bands[0][0], weight, wavelet, level - 1)
    else:
        bands = [[np.einsum("txc,txcd->txd", bands[i][j], weight[i, :, j]) for j in (0, 1)] for i in (0, 1)]
    return join(bands, v.shape[:2], wavelet)


@pytest.mark.parametrize(
    ("shape", "wavelet", "level"), [((21, 16), "db2", 3), ((17, 16), "db6", 2), ((9, 8), "haar", 2)]
)
def test_the_layer_is_the_whole_transform_with_matrices_on_the_coarsest_bands(shape, wavelet, level):
    torch.manual_seed(0)
    layer = WaveletLayer(3, shape, wavelet, level)
    torch.nn.init.normal_(layer.weight)
    v = torch.randn(2, *shape, 3)
    sizes = [len(coarse(n, wavelet, level)[0]) // 2 for n in shape]
    weight = layer.weight.detach().double().numpy().reshape(2, sizes[0], 2, sizes[1], 3, 3)
    for one, out in zip(v, layer(v).detach(), strict=True):
        whole = torch.from_numpy(transformed(one.double().numpy(), weight, wavelet, level))
        torch.testing.assert_close(out, whole.float() + layer.pointwise(one), atol=2e-5, rtol=1e-5)


def test_unit_matrices_leave_the_field_as_it_is():
    torch.manual_seed(0)
    layer = WaveletLayer(4, (17, 32), "db4", 2)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(4))
    v = torch.randn(2, 17, 32, 4)
    torch.testing.assert_close(layer(v), v + layer.pointwise(v), atol=1e-6, rtol=1e-6)


# --- PyWavelets -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["haar", *ORTHOGONAL])
def test_filters_are_those_of_pywavelets(name):
    pywt = pytest.importorskip("pywt")
    np.testing.assert_allclose(scaling_filter(name), pywt.Wavelet(name).rec_lo, atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "wavelet", "level"), [((57, 128), "db6", 4), ((57, 128), "db6", 3), ((13, 10), "haar", 2)]
)
def test_bands_and_inverse_are_those_of_pywavelets(shape, wavelet, level):
    pywt = pytest.importorskip("pywt")
    v = np.random.default_rng(0).normal(size=shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it advises a lower level
        low, details, *fine = pywt.wavedec2(v, wavelet, "symmetric", level=level)
    (forth_t, back_t), (forth_x, back_x) = (coarse(n, wavelet, level) for n in shape)
    bands = forth_t @ v @ forth_x.T
    theirs = np.block([[low, details[1]], [details[0], details[2]]])  # details: high in t, high in x, high in both
    np.testing.assert_allclose(bands, theirs, atol=1e-12)
    change = np.random.default_rng(1).normal(size=bands.shape)
    a, b = (np.split(half, 2, axis=1) for half in np.split(bands + change, 2))
    whole = pywt.waverec2([a[0], (b[0], a[1], b[1]), *fine], wavelet, "symmetric")[: shape[0], : shape[1]]
    np.testing.assert_allclose(v + back_t @ change @ back_x.T, whole, atol=1e-12)
