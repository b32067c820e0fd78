"""Tasks: xi -> u and (u0, xi) -> u on datasets, split, sub-sampled, and the paper's settings for them."""

from spdebench.tasks.defaults import recommended, subsampling
from spdebench.tasks.parts import Part
from spdebench.tasks.setting import Batch, Inputs, Setting
from spdebench.tasks.task import Task, TaskSpec, default_setting

__all__ = ["Batch", "Inputs", "Part", "Setting", "Task", "TaskSpec", "default_setting", "recommended", "subsampling"]
