"""The GPU kernels that each model uses, and their measured gain over ``torch.compile`` with CUDA graphs.

Which kernels a model uses is found by running it: in one training step on the processor every kernel is noted that
would accept these sizes on a GPU, and torch does its work.
"""

from __future__ import annotations

import csv
import functools
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from spdebench import accel
from spdebench.models import MODELS
from spdebench.models.base import build
from spdebench.tasks import Batch
from speed.models.base import phi41_setting

MEASURED = Path(__file__).parents[1] / "results" / "compile-h200.csv"


def table() -> list[dict[str, Any]]:
    """One row per trained model: ms per epoch compiled and with kernels, their ratio, and the kernels' names."""
    with MEASURED.open(newline="") as file:
        times = {row["model"]: (float(row["compiled_ms"]), float(row["kernels_ms"])) for row in csv.DictReader(file)}
    rows: list[dict[str, Any]] = []
    for name in (n for n in MODELS if MODELS[n].trainable):
        compiled, ours = times.get(name, (None, None))
        gain = compiled / ours if compiled and ours else None
        used = ", ".join(kernels_of(name)) or "none"
        rows.append({"model": name, "compiled_ms": compiled, "kernels_ms": ours, "gain": gain, "kernels": used})
    return rows


def kernels_of(model: str, batch: int = 20) -> list[str]:
    """The modules of `spdebench.accel` that a training step of a model uses at the paper's phi41 size."""
    used: set[str] = set()
    replaced: list[FrameType] = []  # calls of layers whose work a kernel would do, and what they call with it

    def noted(name: str, tensors: Sequence[Tensor], *sizes: Any) -> None:
        caller: FrameType | None = sys._getframe(1)
        if all(t.dtype == torch.float32 for t in tensors) and (not sizes or _supports(name)(*sizes)):
            frame = caller
            while frame is not None and frame not in replaced:
                frame = frame.f_back
            if frame is None and caller is not None:
                used.add(name)
                replaced.append(caller)

    setting = phi41_setting("u0+xi")
    generator = torch.Generator().manual_seed(0)
    u0, dw = (torch.randn((batch, *shape), generator=generator) for shape in (setting.grid.points, setting.shape))
    network = build(model, setting)
    features = network.prepare(Batch(u0, dw))
    with mock.patch.object(accel, "kernels", noted):
        network(features).square().mean().backward()
    return sorted(used)


@functools.cache
def _supports(name: str) -> Callable[..., bool]:
    """``supports`` of a module with kernels. It needs nothing of Triton; a stand-in lets it be imported without."""
    if (found := accel.module(name)) is None:
        triton, language = ModuleType("triton"), ModuleType("triton.language")
        vars(triton).update(jit=lambda function: function, language=language)
        with mock.patch.dict(sys.modules, {"triton": triton, "triton.language": language}):
            found = import_module(f"spdebench.accel.{name}")
    return found.supports
