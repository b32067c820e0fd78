"""The tasks xi -> u and (u0, xi) -> u on datasets: split, sub-sampling, and the paper's settings for them."""

from spdebench.equations.inputs import TASK_TEXT, Inputs
from spdebench.tasks.defaults import recommended, subsampling
from spdebench.tasks.parts import Part
from spdebench.tasks.setting import Batch, Setting
from spdebench.tasks.task import Task, TaskSpec, default_setting

__all__ = [
    "TASK_TEXT",
    "Batch",
    "Inputs",
    "Part",
    "Setting",
    "Task",
    "TaskSpec",
    "default_setting",
    "recommended",
    "subsampling",
]
