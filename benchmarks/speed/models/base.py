"""A speed case: one training step of a model of ours and of a plain formulation of the same mathematics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from spdebench.equations import equation
from spdebench.tasks import Inputs, Setting


@dataclass(frozen=True)
class Case:
    """``ours()`` and ``plain()`` run one training step; ``target`` is the ratio of their times that is demanded.

    What takes long is timed once, without a warm-up.
    """

    name: str
    target: float | None
    ours: Callable[[], object]
    plain: Callable[[], object]
    note: str
    threads: int = 1
    once: bool = False


def training_step(model: nn.Module, *inputs: Any) -> Callable[[], None]:
    """Forward and backward pass of mean(u^2), u = model(*inputs)."""

    def step() -> None:
        model.zero_grad()
        model(*inputs).square().mean().backward()

    return step


def phi41_setting(inputs: Inputs = "xi") -> Setting:
    """The paper's phi41: 128 points, 51 frames."""
    phi = equation("phi41", kappa=0.0 if inputs == "xi" else 0.1)
    return Setting(phi.grid, tuple(phi.times.tolist()), inputs, phi)
