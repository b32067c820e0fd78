"""Optional logs for TensorBoard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spdebench.errors import needs_extra


def require_tensorboard() -> Any:
    """The class of the writer; if it is not installed, a one-line error names the extra."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise needs_extra("--tensorboard", "tensorboard") from None
    return SummaryWriter


class TensorBoardLog:
    """One event file per start of the training; a resumed run replaces the points after its checkpoint."""

    def __init__(self, folder: Path, epoch: int) -> None:
        self._writer = require_tensorboard()(str(folder), purge_step=epoch + 1 if epoch else None)

    def add(self, entry: dict[str, Any]) -> None:
        for key in ("train", "val", "lr"):
            self._writer.add_scalar(key, entry[key], entry["epoch"])

    def close(self) -> None:
        self._writer.close()
