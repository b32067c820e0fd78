"""Step: the regression that finds the step."""

from spdebench.models.step.model import Step, StepConfig

__all__ = ["Step", "StepConfig"]
