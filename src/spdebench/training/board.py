"""Logs for TensorBoard, on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spdebench.errors import UserError


def require_tensorboard() -> Any:
    """The writer's class, or one line that names the extra."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise UserError(
            "logs for TensorBoard need an extra: pip install 'spdebench[tensorboard]', or leave --tensorboard out"
        ) from None
    return SummaryWriter


class TensorBoardLog:
    """One event file each time training is started; on going on, later points of an earlier start are dropped."""

    def __init__(self, folder: Path, epoch: int) -> None:
        self._writer = require_tensorboard()(str(folder), purge_step=epoch + 1 if epoch else None)

    def add(self, entry: dict[str, Any]) -> None:
        for key in ("train", "val", "lr"):
            self._writer.add_scalar(key, entry[key], entry["epoch"])

    def close(self) -> None:
        self._writer.close()
