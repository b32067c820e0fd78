"""The two learning tasks, by the input of a model: xi -> u (one fixed initial datum) and (u0, xi) -> u."""

from __future__ import annotations

from typing import Literal

Inputs = Literal["xi", "u0+xi"]
"""A task as code, hashes and ``--inputs`` spell it."""
TASK_TEXT: dict[Inputs, str] = {"xi": "xi -> u", "u0+xi": "(u0, xi) -> u"}
"""A task as people read it."""
TASK_IN_FILE_NAMES: dict[Inputs, str] = {"xi": "xi", "u0+xi": "u0_xi"}
"""A task as the names of files spell it."""
