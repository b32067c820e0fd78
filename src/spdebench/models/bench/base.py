"""A speed case: one training step (forward and backward) of ours beside a plain formulation of the same mathematics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spdebench.equations import equation
from spdebench.tasks import Inputs, Setting


@dataclass(frozen=True)
class Case:
    """``ours()`` and ``plain()`` run one forward and backward; ``target`` is the ratio of their times to be reached."""

    name: str
    target: float
    ours: Callable[[], object]
    plain: Callable[[], object]
    note: str


def phi41_setting(inputs: Inputs = "xi") -> Setting:
    """The paper's phi41: 128 points, 51 frames."""
    phi = equation("phi41", kappa=0.0 if inputs == "xi" else 0.1)
    return Setting(phi.grid, tuple(phi.times.tolist()), inputs, phi)
