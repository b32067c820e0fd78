"""Layers that have kernels of their own on a GPU: the same numbers and gradients as torch's own operations there."""

from __future__ import annotations

import pytest
import torch
from on_cuda import close, normal

from spdebench.models.layers import attention, linear, spectral
from spdebench.models.layers.mixing import mix
from spdebench.models.layers.mlp import MLP
from spdebench.models.layers.norm import LayerNorm

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("kernels_are_there")]


@pytest.mark.parametrize(("width", "hidden", "out"), [(32, 128, 1), (10, 32, 1), (32, 128, 32), (8, 20, 3)])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_mlp(width: int, hidden: int, out: int, activation: str) -> None:
    layer = MLP(width, hidden, out, activation).cuda()  # type: ignore[arg-type]
    x = normal(51, 127, width)
    close(lambda: layer(x), [x, *layer.parameters()])


@pytest.mark.parametrize("shape", [(20, 6528, 32), (3, 7, 20)])
def test_layer_norm(shape: tuple[int, ...]) -> None:
    layer, x = LayerNorm(shape[-1]).cuda(), normal(*shape)
    with torch.no_grad():
        layer.weight.normal_()
        layer.bias.normal_()
    close(lambda: layer(x), [x, layer.weight, layer.bias])


@pytest.mark.parametrize("rows", [(51, 128, 20), (13, 7)])
def test_tall_linear(rows: tuple[int, ...]) -> None:
    layer, x = linear.TallLinear(32, 24).cuda(), normal(*rows, 32)
    close(lambda: layer(x), [x, *layer.parameters()])


def test_attention() -> None:
    layer, x = attention.GalerkinBlock(32, 4, 128).cuda(), normal(4, 6528, 32)
    close(lambda: layer(x), [x, *layer.parameters()], 1e-4)


@pytest.mark.parametrize(
    ("modes", "lengths"), [((32, 25), (57, 128)), ((5, 4, 6), (20, 16, 12)), ((3, 2, 4, 3), (9, 8, 8, 8))]
)
def test_fourier_layer(modes: tuple[int, ...], lengths: tuple[int, ...]) -> None:
    kept = spectral.Modes.half(modes)
    transform = spectral.FourierTransform(kept, lengths).cuda()
    h, weight = normal(*lengths, 20, 8), normal(2, *kept.shape, 8, 8)
    close(lambda: transform.inverse(mix(transform(h), weight), lengths), [h, weight])


@pytest.mark.parametrize(("batch", "c", "d"), [(20, 32, 32), (100, 8, 8), (5, 20, 12)])
def test_mixing(batch: int, c: int, d: int) -> None:
    z, weight = normal(2, 40, batch, c), normal(2, 39, c, d)
    close(lambda: mix(z[:, 1:], weight), [z, weight])
