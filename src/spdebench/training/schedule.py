"""The learning rate as a function of the epoch, or of the validation errors so far."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from spdebench.training.options import TrainOptions

THRESHOLD = 1e-6  # relative; a validation error that falls by less counts as a plateau
SMALLEST = 1e-8  # the learning rate is not changed by less than this


@dataclass
class Schedule:
    """``lr`` is the rate of the next epoch; `advance` is called with the validation error after each epoch."""

    options: TrainOptions
    lr: float = field(init=False)
    epoch: int = 0
    best: float = math.inf
    bad: int = 0

    def __post_init__(self) -> None:
        self.lr = self.options.learning_rate

    def advance(self, val: float) -> None:
        """Choose the rate of the next epoch, after an epoch with the validation error ``val``."""
        o = self.options
        self.epoch += 1
        if o.scheduler == "step":
            self.lr = o.learning_rate * o.decay_factor ** (self.epoch // o.decay_every)
        elif o.scheduler == "cosine":
            fraction = (1 + math.cos(math.pi * self.epoch / o.epochs)) / 2
            self.lr = o.min_learning_rate + (o.learning_rate - o.min_learning_rate) * fraction
        elif o.scheduler == "plateau":
            self._plateau(val)

    def _plateau(self, val: float) -> None:
        """Multiply the rate by ``decay_factor`` after more than ``plateau_patience`` epochs without a better error."""
        if val < self.best * (1 - THRESHOLD):
            self.best, self.bad = val, 0
        else:
            self.bad += 1
        if self.bad > self.options.plateau_patience:
            lower = max(self.lr * self.options.decay_factor, self.options.min_learning_rate)
            if self.lr - lower > SMALLEST:
                self.lr = lower
            self.bad = 0

    def state(self) -> dict[str, Any]:
        return {"lr": self.lr, "epoch": self.epoch, "best": self.best, "bad": self.bad}

    def load(self, state: dict[str, Any]) -> None:
        self.lr, self.epoch = float(state["lr"]), int(state["epoch"])
        self.best, self.bad = float(state["best"]), int(state["bad"])
