"""Where layers take a kernel of their own for NVIDIA GPUs (Triton, which CUDA builds of torch bring)."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from spdebench.accel.load import triton_there

_plain = False


@contextmanager
def plainly() -> Iterator[None]:
    """Within it layers use torch's own operations everywhere, to compare with."""
    global _plain
    before, _plain = _plain, True
    try:
        yield
    finally:
        _plain = before


def ours(x: Tensor) -> bool:
    """Whether layers arrange the work on x for a GPU themselves: not under autocast or torch.compile, which fuses."""
    other = torch.is_autocast_enabled("cuda") or torch.compiler.is_compiling()
    return x.is_cuda and not other and not _plain


def fusable(*tensors: Tensor) -> bool:
    """Whether kernels may take these: float32 on CUDA."""
    return ours(tensors[0]) and all(t.dtype == torch.float32 for t in tensors) and triton_there()


@functools.cache
def programs(device: int | None) -> int:
    """Programs of a kernel that walk over many blocks: two a processor, as many as run at once."""
    return 2 * torch.cuda.get_device_properties(device or 0).multi_processor_count
