"""Step: a regression of the map from one frame to the next."""

from spdebench.models.step.model import StepConfig, StepModel

__all__ = ["StepConfig", "StepModel"]
