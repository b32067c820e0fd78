"""How a run is carried out: options that change no number beyond rounding."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spdebench import spec
from spdebench.errors import UserError, unknown
from spdebench.training.options import TrainOptions


@dataclass(frozen=True, kw_only=True)
class ExecutionOptions:
    """How a run is carried out. Nothing here changes a number beyond rounding, so it is not part of a run's spec."""

    progress: bool | None = None  # show a progress bar; None: on a terminal
    graph: bool | None = None  # replay the steps as CUDA graphs; None: on CUDA
    memory: float = 0.5  # share of the device's free memory that the data may take; otherwise they stay on the host
    checkpoint: float = 30.0  # seconds between checkpoints; 0: after each epoch
    cache: str | None = None  # folder in which expensive features are kept between runs
    tensorboard: bool = False  # write logs for TensorBoard into the run's folder
    force: bool = False  # continue from a checkpoint of another version or device; the record states both

    def __post_init__(self) -> None:
        spec.check(self, "training")
        if self.checkpoint < 0:
            raise UserError(f"training: checkpoint is a time in seconds, at least 0, got {self.checkpoint:g}")


OPTIONS = {**spec.fields_of(ExecutionOptions), **spec.fields_of(TrainOptions)}
"""All options of `train`, with their types."""


def split_options(options: Mapping[str, Any]) -> tuple[ExecutionOptions, dict[str, Any]]:
    """Split options into those of `ExecutionOptions`, which change no number, and the others."""
    how, old = spec.fields_of(ExecutionOptions), spec.renamed(TrainOptions)
    for key in options:
        if key not in OPTIONS and key not in old:
            raise unknown("option", key, OPTIONS)
    chosen = {k: os.fspath(v) if isinstance(v, os.PathLike) else v for k, v in options.items() if k in how}
    return spec.build(ExecutionOptions, chosen, "training"), {k: v for k, v in options.items() if k not in how}
