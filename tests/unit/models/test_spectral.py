"""Truncated transforms against torch.fft, their adjoints, and the mixing of modes."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from spdebench.errors import UserError
from spdebench.models.layers.fourier import FourierTrunk
from spdebench.models.layers.mixing import mix
from spdebench.models.layers.spectral import FourierTransform, Modes, _order

CASES = [
    ((11, 16), Modes.half((8, 6))),
    ((12, 9), Modes.half((3, 7))),  # even number of frames, all of them
    ((7, 8, 5), Modes.half((4, 2, 3))),
    ((6, 5, 7, 6), Modes.half((2, 3, 3, 2))),
    ((9, 12), Modes.symmetric((5, 4))),
    ((9, 5, 7), Modes.symmetric((2, 3, 4))),
    ((4, 4, 4), Modes.half((1, 2, 1))),
    ((4, 4, 4), Modes.symmetric((0, 1, 0))),
]


def _places(modes: Modes) -> tuple[torch.Tensor, ...]:
    space = [torch.tensor(modes.numbers(a)) for a in range(len(modes.space))]
    return torch.meshgrid(torch.arange(modes.time), *space, indexing="ij")


@pytest.mark.parametrize(("lengths", "modes"), CASES)
def test_transforms_are_those_of_fft(lengths, modes):
    torch.manual_seed(0)
    fourier, axes = FourierTransform(modes), tuple(range(len(lengths)))
    h = torch.randn(*lengths, 2, 3)
    z = torch.complex(*fourier(h))
    torch.testing.assert_close(z, torch.fft.fftn(h, dim=axes)[_places(modes)], rtol=1e-5, atol=1e-4)

    z = torch.randn(2, *modes.shape, 2, 3)  # any spectrum, not only that of a real field: the real part is taken
    half = torch.zeros(lengths[0] // 2 + 1, *lengths[1:], 2, 3, dtype=torch.complex64)
    half[_places(modes)] = torch.complex(*z)
    expected = torch.fft.irfftn(half, s=(*lengths[1:], lengths[0]), dim=(*axes[1:], 0))
    torch.testing.assert_close(fourier.inverse(z, lengths), expected, rtol=1e-5, atol=1e-5)


def test_frames_left_out_are_zeros():
    torch.manual_seed(0)
    fourier = FourierTransform(Modes.half((3, 4)))
    h = torch.randn(5, 8, 2, 3)
    padded = torch.cat([h, torch.zeros(4, 8, 2, 3)])
    torch.testing.assert_close(fourier(h, 9), fourier(padded))
    z = fourier(padded)
    torch.testing.assert_close(fourier.inverse(z, (9, 8), 5), fourier.inverse(z, (9, 8))[:5])


@pytest.mark.parametrize(("lengths", "modes"), [CASES[0], CASES[3], CASES[5]])
def test_gradients(lengths, modes):
    torch.manual_seed(0)
    fourier = FourierTransform(modes)
    h = torch.randn(*lengths, 1, 1, dtype=torch.float64, requires_grad=True)
    z = torch.randn(2, *modes.shape, 1, 1, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(fourier, h, fast_mode=True)
    assert torch.autograd.gradcheck(lambda s: fourier.inverse(s, lengths, 3), z, fast_mode=True)


def test_mixing_is_a_complex_product():
    torch.manual_seed(0)
    z = torch.randn(2, 4, 3, 5, 2, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(2, 4, 3, 2, 6, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(torch.complex(*mix(z, weight)), torch.complex(*z) @ torch.complex(*weight))
    assert torch.autograd.gradcheck(mix, (z, weight), fast_mode=True)


def test_axes_are_contracted_in_the_cheapest_order():
    for shapes in (((50, 57), (65, 128)), ((16, 106), (17, 16), (17, 16)), ((50, 51), (9, 32), (31, 32), (3, 5))):
        matrices = [torch.empty(s) for s in shapes]

        def cost(order, shapes=shapes):
            left, total = [s[1] for s in shapes], 0
            for axis in order:
                total += shapes[axis][0] * math.prod(left)
                left[axis] = shapes[axis][0]
            return total

        assert cost(_order(matrices)) == min(map(cost, itertools.permutations(range(len(shapes)))))


def test_matrices_follow_the_grid_and_survive_inference_mode():
    torch.manual_seed(0)
    trunk = FourierTrunk(3, 2, (3, 4), padding=2, lengths=(9, 8))
    assert not [k for k in trunk.state_dict() if "ahead" in k or "back" in k]
    with torch.inference_mode():
        trunk(torch.randn(2, 9, 12, 3))
    trunk(torch.randn(2, 9, 12, 3)).sum().backward()
    trunk(torch.randn(2, 9, 8, 3)).sum().backward()
    with pytest.raises(UserError, match="do not fit"):
        trunk(torch.randn(2, 9, 5, 3))


@pytest.mark.slow  # the compiler takes seconds to come up
def test_trunk_is_one_graph_for_the_compiler():
    torch.manual_seed(0)
    trunk = FourierTrunk(3, 2, (3, 4), lengths=(9, 8))
    h = torch.randn(2, 9, 8, 3, requires_grad=True)
    compiled = torch.compile(trunk, backend="aot_eager", fullgraph=True)
    (expected,) = torch.autograd.grad(trunk(h).square().sum(), h)
    (found,) = torch.autograd.grad(compiled(h).square().sum(), h)
    torch.testing.assert_close(found, expected)
