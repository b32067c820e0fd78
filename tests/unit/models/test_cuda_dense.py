"""Dense layers with kernels of their own on a GPU: the same numbers and gradients as torch's own operations there."""

from __future__ import annotations

import pytest
import torch
from on_cuda import close_and_again, normal
from torch import Tensor, nn

from spdebench.models.layers.attention import GalerkinAttention, GalerkinBlock
from spdebench.models.layers.gate import gate
from spdebench.models.layers.linear import TallLinear
from spdebench.models.layers.mlp import MLP, mlp
from spdebench.models.layers.norm import LayerNorm

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("kernels_are_there")]


def varied(layer: nn.Module, size: float = 0.3) -> nn.Module:
    with torch.no_grad():
        for p in layer.parameters():
            p.add_(size * torch.randn(p.shape, generator=torch.Generator().manual_seed(p.numel())))
    return layer.cuda()


@pytest.mark.parametrize(
    ("width", "hidden", "out"), [(32, 128, 1), (32, 128, 32), (10, 32, 1), (8, 20, 3), (20, 100, 5)]
)
@pytest.mark.parametrize(
    ("rows", "activation"), [(130560, "gelu"), (6477, "gelu"), (33, "gelu"), (997, "relu"), (33, "relu")]
)
def test_mlp(rows: int, width: int, hidden: int, out: int, activation: str) -> None:
    """Few rows with relu: where one of many hidden values is within rounding of 0, its slope may be either."""
    layer, x = MLP(width, hidden, out, activation).cuda(), normal(rows, width)  # type: ignore[arg-type]
    close_and_again(lambda: layer(x), [x, *layer.parameters()])


@pytest.mark.parametrize("out", [1, 12])
def test_mlp_added(out: int) -> None:
    layer, x, before = MLP(16, 64, out).cuda(), normal(5, 1111, 16), normal(5, 1111, out)
    close_and_again(lambda: mlp(x, layer[0], layer[2], before=before), [x, before, *layer.parameters()])  # type: ignore[arg-type]


def test_gelu_far_out() -> None:
    layer, x = MLP(16, 32, 16).cuda(), normal(999, 16)
    close_and_again(lambda: layer(30.0 * x), [x, *layer.parameters()])


@pytest.mark.parametrize(("inner", "outer"), [(32, 64), (32, 32), (4, 32), (20, 24), (64, 64), (1, 16), (80, 32)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(inner: int, outer: int, bias: bool) -> None:
    layer, x = TallLinear(inner, outer, bias=bias).cuda(), normal(51, 129, 20, inner)
    close_and_again(lambda: layer(x), [x, *layer.parameters()])
    close_and_again(lambda: layer(x), list(layer.parameters()))


@pytest.mark.parametrize("shape", [(20, 6528, 32), (3, 7, 20), (5, 1001, 128)])
def test_layer_norm(shape: tuple[int, ...]) -> None:
    layer, x = varied(LayerNorm(shape[-1])), normal(*shape)
    assert isinstance(layer, LayerNorm)
    close_and_again(lambda: layer(x), [x, *layer.parameters()])

    def with_it() -> Tensor:
        same, normalised = layer.with_input(x)
        return same.sin() + normalised

    close_and_again(with_it, [x, *layer.parameters()])


@pytest.mark.parametrize(("samples", "tokens", "width", "heads"), [(20, 6528, 32, 4), (3, 77, 12, 3), (1, 5000, 20, 5)])
def test_attention(samples: int, tokens: int, width: int, heads: int) -> None:
    layer, x = varied(GalerkinAttention(width, heads)), normal(samples, tokens, width)
    before = normal(samples, tokens, width)
    close_and_again(lambda: layer(x + 0.5, before), [x, before, *layer.parameters()], 1e-4)
    close_and_again(lambda: layer(x), [x, *layer.parameters()], 1e-4)


def test_galerkin_block() -> None:
    layer, x = varied(GalerkinBlock(32, 4, 128), 0.1), normal(4, 6528, 32)
    close_and_again(lambda: layer(x), [x, *layer.parameters()], 1e-4)


@pytest.mark.parametrize(("shape", "offset"), [((51, 128, 20, 32), 0.0), ((13, 77, 12), 10.0), ((40, 16), 0.0)])
@pytest.mark.parametrize("training", [True, False])
def test_gate(shape: tuple[int, ...], offset: float, training: bool) -> None:
    c = shape[-1]
    h, xi = normal(*shape[:-1], 2 * c), normal(*shape[:-1], 1)
    weight, bias = normal(2 * c), normal(2 * c + 1)[1:].detach().clone().requires_grad_()

    def work() -> Tensor:
        running = torch.full((2 * c,), offset, device="cuda"), torch.ones(2 * c, device="cuda")
        y = gate(h + offset, xi, weight, bias, *running, training=training, momentum=0.3)
        seen.append(torch.stack(running))
        return y

    seen: list[Tensor] = []
    close_and_again(work, [h, xi, weight, bias], 5e-5)
    ours, theirs, _ = seen
    assert float((ours - theirs).abs().max()) <= 1e-5 * float(theirs.abs().max())


def test_in_a_graph() -> None:
    """Layers are captured and replayed: no kernel waits for the host."""
    block, x = varied(GalerkinBlock(32, 4, 128), 0.1), normal(2, 4097, 32)
    linear, head = TallLinear(32, 64).cuda(), MLP(32, 128, 1, "relu").cuda()
    weight, bias, known = normal(64), normal(64), torch.stack([torch.zeros(64), torch.ones(64)]).cuda()
    inputs = [x, weight, *block.parameters(), *linear.parameters(), *head.parameters()]

    def work() -> list[Tensor]:
        z = gate(linear(block(x)), x[..., :1].detach(), weight, bias, *known, training=True, momentum=0.1)
        return evaluated_on(head(z))

    def evaluated_on(out: Tensor) -> list[Tensor]:
        return [out, *torch.autograd.grad(out.square().mean(), inputs)]

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        expected = [t.clone() for t in work()]
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = work()
    graph.replay()
    torch.cuda.synchronize()
    for ours, theirs in zip(captured, expected, strict=True):
        assert torch.equal(ours, theirs)
