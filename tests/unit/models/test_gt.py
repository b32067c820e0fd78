"""Attention against its definition, its symmetries, counts, mixing in time, other grids, learning."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from overfit import calibrated, overfit, tiny, used

from spdebench import UserError, build, equation
from spdebench.models.layers.attention import EPS, GalerkinAttention
from spdebench.tasks import Batch, TaskSpec
from speed.models.base import phi41_setting


def by_definition(layer: GalerkinAttention, x: torch.Tensor, heads: int) -> torch.Tensor:
    """Queries, keys and values of every token; instance norm over the tokens; per head Q (K'V) / n."""
    q, k, v = layer.query(x), layer.key(x), layer.value(x)
    k, v = (F.instance_norm(a.transpose(1, 2), eps=EPS).transpose(1, 2) for a in (k, v))
    q, k, v = (a.unflatten(2, (heads, -1)).transpose(1, 2) for a in (q, k, v))
    return layer.out((q @ (k.transpose(2, 3) @ v) / x.shape[1]).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("dead_biases", [False, True])
def test_attention_is_its_definition(dead_biases):
    torch.manual_seed(0)
    layer = GalerkinAttention(12, 3, dead_biases=dead_biases).double()
    for p in layer.parameters():
        torch.nn.init.normal_(p)
    x = 2 + torch.randn(2, 50, 12, dtype=torch.float64)
    torch.testing.assert_close(layer(x), by_definition(layer, x, 3))
    single = by_definition(layer, x, 3).float()
    torch.testing.assert_close(layer.float()(x.float()), single, atol=1e-4, rtol=1e-4)


def test_attention_does_not_know_order_or_number_of_tokens():
    torch.manual_seed(0)
    layer = GalerkinAttention(8, 2)
    for p in layer.parameters():
        torch.nn.init.normal_(p)
    x, order = torch.randn(1, 30, 8), torch.randperm(30)
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(layer(x.repeat(1, 3, 1)), layer(x).repeat(1, 3, 1), atol=1e-4, rtol=1e-4)


def test_heads_must_divide_the_width():
    with pytest.raises(UserError, match="width 32 must be a multiple of heads, got 5"):
        build("gt", phi41_setting(), heads=5)


def test_the_papers_count():
    for inputs, count in (("xi", 39_329), ("u0+xi", 39_361)):
        setting = phi41_setting(inputs)
        assert build("gt", setting, form="published").counts()["parameters"] == count
        assert build("gt", setting).counts()["parameters"] == count - 3 * 2 * 32  # no biases of keys and values
    setting = TaskSpec().setting(equation("nse"))
    assert build("gt", setting, form="published").counts()["parameters"] == 77_473


@pytest.mark.parametrize("inputs", ["xi", "u0+xi"])
def test_every_parameter_of_the_default_form_is_used(inputs):
    model, features, _ = calibrated("gt", inputs=inputs, width=8, hidden=16)
    assert all(used(model, features).values())
    assert torch.allclose(features["w"], tiny(inputs=inputs)[1].dw.cumsum(1))
    model, features, _ = calibrated("gt", inputs=inputs, width=8, hidden=16, form="published")
    for name, grad in ((n, p.grad) for n, p in model.named_parameters() if used(model, features)):
        dead = name.endswith(("key.bias", "value.bias"))
        assert (grad is None) == dead


@pytest.mark.parametrize("form", ["default", "published"])
@pytest.mark.parametrize("dim", [1, 2])
def test_every_frame_hears_of_every_other(form, dim):
    model, features, _ = calibrated("gt", dim, form=form, layers=1, width=8, hidden=16)
    for layer in model.blocks:
        for p in layer.attention.parameters():
            torch.nn.init.normal_(p)
    w = features["w"].clone()
    w[:, 6] += w.std() * torch.randn_like(w[:, 6])
    moved = (model({**features, "w": w}) - model(features)).abs().flatten(2).amax(2)
    assert (moved > 1e-5 * moved.max()).all()
    alone = model({name: values[2:3] for name, values in features.items()})
    torch.testing.assert_close(alone, model(features)[2:3], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("form", ["default", "published"])
def test_finer_grids_give_one_field_in_the_limit(form):
    model, _, _ = calibrated("gt", 2, form=form, width=8, hidden=16)
    for layer in model.blocks:
        for p in layer.attention.parameters():
            torch.nn.init.normal_(p, std=0.3)
    sizes = (8, 16, 32, 64)
    fields = [model(model.prepare(Batch(_smooth(n)[:, 0], _smooth(n))))[..., :: n // 8, :: n // 8] for n in sizes]
    first, second, third = ((field - fields[-1]).norm() for field in fields[:-1])
    assert second < 0.6 * first and third < 0.6 * second  # averages over j/n, n points: first order in 1/n
    assert third < 0.15 * (fields[-1] - fields[-1].mean()).norm()


def _smooth(n: int) -> torch.Tensor:
    """Increments of a smooth path on n x n points of the unit square."""
    x = torch.arange(n) / n * 2 * torch.pi
    dw = 1e-2 * torch.sin(x)[:, None] * torch.cos(2 * x + 1) * torch.linspace(1, 2, 11)[:, None, None]
    dw[0] = 0
    return dw[None]


@pytest.mark.parametrize(
    ("dim", "inputs", "config", "steps"),
    [
        (1, "u0+xi", {}, 220),
        (2, "u0+xi", {"width": 16, "layers": 2, "hidden": 32}, 100),
        (2, "u0+xi", {"width": 16, "layers": 1, "hidden": 32, "form": "published"}, 100),
    ],
)
def test_it_fits_one_batch(dim, inputs, config, steps):
    model, features, u = calibrated("gt", dim, inputs, **config)
    assert overfit(model, features, u, steps, 1e-2 if dim == 1 else 2e-2) < 0.05
