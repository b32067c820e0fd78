"""torch.compile of whole models: the numbers and gradients of eager mode, without any autograd function of ours."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from overfit import calibrated
from torch import Tensor

from spdebench.models import MODELS, Features, OperatorModel


def functions() -> list[type[torch.autograd.Function]]:
    """All autograd functions of the project."""
    return [f for f in torch.autograd.Function.__subclasses__() if f.__module__.startswith("spdebench.")]


def gradients(network: Any, model: OperatorModel, features: Features) -> list[Tensor]:
    """The prediction and the gradients of a random functional of it."""
    out = network(features)
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
    return [out.detach(), *torch.autograd.grad(out, list(model.parameters()), weights.to(out))]


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("fno", {"width": 4, "layers": 1, "modes": (3, 3)}),
        *(
            pytest.param(n, {}, marks=pytest.mark.slow)
            for n in MODELS
            if MODELS[n].trainable and MODELS[n].law_loss != "flow"
        ),
    ],
)
def test_compiled_models_are_plain_operations(
    name: str, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some versions of torch.compile fail on autograd functions, so layers give it plain operations.

    One graph (``fullgraph``), because torch runs what it cannot compile in eager mode, where the functions are used."""
    model, features, _ = calibrated(name, inputs="xi", **config)
    expected = gradients(model, model, features)

    def refuse(*_: Any) -> None:
        raise AssertionError("an autograd function is called in compiled code")

    assert functions()
    for function in functions():
        for part in ("apply", "forward"):  # torch.compile does not call the first, but traces the second
            monkeypatch.setattr(function, part, staticmethod(refuse))
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    found = gradients(compiled, model, features)
    for got, right in zip(found, expected, strict=True):
        assert float((got - right).abs().max()) <= 1e-5 * float(right.abs().max())
