"""The losses are the metrics, differentiable."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import spdebench as sb
from spdebench.training import RelativeLoss


def fields(shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)


@pytest.mark.parametrize("kind", ["rel_l2", "w12"])
@pytest.mark.parametrize(
    ("grid", "shape"),
    [
        (sb.Grid.unit(12), (5, 4, 12)),
        (sb.Grid((9,), (0.0,), (2.5,)), (5, 4, 9)),
        (sb.Grid.unit(12, boundary="dirichlet"), (5, 4, 12)),
        (sb.Grid.unit(6, dim=2), (5, 3, 6, 6)),
        (sb.Grid.unit(5, dim=3), (4, 3, 5, 5, 5)),
    ],
)
def test_a_loss_is_its_metric(kind, grid, shape):
    v, u = fields(shape)
    if not grid.periodic:  # the stored left end is 0
        v[..., 0] = u[..., 0] = 0
    loss = RelativeLoss(kind, grid)
    score = sb.evaluate(v, u, grid, metrics=[kind], resamples=0)[kind]
    assert float(loss(v, u, loss.scale(u))) == pytest.approx(score.value, rel=1e-5)
    np.testing.assert_allclose((loss.errors(v, u) * loss.scale(u)).numpy(), score.samples, rtol=1e-5)


@pytest.mark.parametrize("kind", ["rel_l2", "w12"])
def test_the_first_frame_does_not_count(kind):
    v, u = fields((4, 5, 8))
    loss = RelativeLoss(kind, sb.Grid.unit(8))
    scale = loss.scale(u)
    other = v.clone()
    other[:, 0] += 100
    assert torch.equal(loss(v, u, scale), loss(other, u, scale))


def test_a_sample_without_a_relative_error_is_left_out():
    v, u = fields((3, 4, 8))
    u[1] = 0
    loss = RelativeLoss("rel_l2", sb.Grid.unit(8))
    kept = loss.errors(v, u)[[0, 2]] * loss.scale(u)[[0, 2]]
    assert float(loss(v, u, loss.scale(u))) == pytest.approx(float(kept.mean()))


@pytest.mark.parametrize("kind", ["rel_l2", "w12"])
@pytest.mark.parametrize("boundary", ["periodic", "dirichlet"])
def test_gradients(kind, boundary):
    loss = RelativeLoss(kind, sb.Grid.unit(6, boundary=boundary))
    x = fields((2, 3, 6))[0].double().requires_grad_()
    assert torch.autograd.gradcheck(loss.norm, (x,), atol=1e-6)
    u = fields((2, 3, 6))[1]
    exact = u.clone().requires_grad_()
    loss(exact, u, loss.scale(u)).backward()
    assert torch.equal(exact.grad, torch.zeros_like(u))  # at a perfect prediction, not NaN
