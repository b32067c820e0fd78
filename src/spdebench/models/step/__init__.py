"""Step: the regression that finds the step."""

from spdebench.models.step.model import StepConfig, StepModel

__all__ = ["StepConfig", "StepModel"]
