"""Full precision for sums over whole axes, whatever the precision of the layers around them."""

from __future__ import annotations

import torch
from torch import Tensor


def full_precision(like: Tensor) -> torch.autocast:
    """A context without autocast on the device of ``like``: sums over whole axes lose too much in half precision."""
    return torch.autocast(like.device.type, enabled=False)


def wide(values: Tensor) -> Tensor:
    """The values as float32 if they are bfloat16 or float16, else unchanged."""
    return values.float() if values.dtype.itemsize < 4 else values
