"""Contractions and the ends of Fourier and wavelet layers on a GPU: the numbers and gradients of torch's operations."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from on_cuda import close, normal

from spdebench.models.layers.contract import contract
from spdebench.models.layers.fourier import FourierTrunk
from spdebench.models.layers.skip import skip
from spdebench.models.layers.wavelet import WaveletLayer

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("kernels_are_there")]


@pytest.mark.parametrize(
    ("m", "shape", "axis"),
    [
        (50, (57, 65, 20, 32), 0),
        (65, (9, 128, 20, 32), 1),
        (128, (9, 65, 20, 32), 1),
        (52, (1, 65, 20, 32), 0),
        (17, (3, 5, 16, 3, 11), 2),
        (1, (3, 1, 33), 1),
        (16, (107, 7, 13), 0),
        (33, (2, 300, 71), 1),
    ],
)
def test_contraction(m: int, shape: tuple[int, ...], axis: int) -> None:
    from spdebench.accel import contract as contract_cuda

    n, h = shape[axis], normal(*shape)
    whole = torch.randn(n + 3, m + 2, generator=torch.Generator().manual_seed(0)).cuda()
    for matrix in (whole[:n, :m].T, whole.T.contiguous()[:m, :n]):
        assert contract_cuda.supports(matrix, h.flatten(axis + 1).flatten(0, axis - 1) if axis else h.flatten(1)[None])
        close(lambda matrix=matrix: contract(matrix, h, axis), [h])


def test_contraction_is_as_exact_as_float32() -> None:
    h, matrix = normal(4, 128, 640).detach(), normal(65, 128).detach()
    exact = matrix.double() @ h.double()
    scale = matrix.double().abs() @ h.double().abs()
    assert float(((contract(matrix, h, 1) - exact).abs() / scale).max()) < 1e-6


@pytest.mark.parametrize(("c", "d"), [(32, 32), (8, 8), (20, 33), (64, 64)])
@pytest.mark.parametrize(("held", "frames"), [(57, 57), (51, 57), (57, 51)])
@pytest.mark.parametrize("activation", ["gelu", None])
def test_skip(c: int, d: int, held: int, frames: int, activation: Literal["gelu"] | None) -> None:
    x, far, weight, bias = normal(held, 37, 5, c), normal(frames, 37, 5, d), normal(d, c), normal(d)
    close(lambda: skip(x, weight, bias, far, activation), [x, weight, bias, far])


@pytest.mark.parametrize("padding", [0, 6])
def test_trunk(padding: int) -> None:
    torch.manual_seed(0)
    trunk = FourierTrunk(32, 3, (32, 25), padding=padding, lengths=(51, 128)).cuda()
    h = normal(5, 51, 128, 32)
    close(lambda: trunk(h), [h, *trunk.parameters()], 1e-4)


def test_wavelet_layer() -> None:
    torch.manual_seed(0)
    layer = WaveletLayer(32, (57, 128), "db6", 4).cuda()
    v = normal(5, 51, 128, 32)
    close(lambda: layer(v, 53, "gelu"), [v, *layer.parameters()])
