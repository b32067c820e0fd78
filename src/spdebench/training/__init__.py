"""Training: the loop with its options and losses, runs as folders that can be resumed exactly, and sweeps."""

from spdebench.training.checkpoints import Paused
from spdebench.training.execution import ExecutionOptions
from spdebench.training.identity import RunSpec, plan
from spdebench.training.loop import Diverged, Fit
from spdebench.training.losses import RelativeLoss
from spdebench.training.options import TrainOptions, options_for
from spdebench.training.provenance import provenance
from spdebench.training.run import Run, open_run
from spdebench.training.scoring import part_for, score_on
from spdebench.training.share import load_model
from spdebench.training.sweep import sweep
from spdebench.training.train import train

__all__ = [
    "Diverged",
    "ExecutionOptions",
    "Fit",
    "Paused",
    "RelativeLoss",
    "Run",
    "RunSpec",
    "TrainOptions",
    "load_model",
    "open_run",
    "options_for",
    "part_for",
    "plan",
    "provenance",
    "score_on",
    "sweep",
    "train",
]
