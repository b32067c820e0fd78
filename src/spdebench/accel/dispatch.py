"""Decides whether the GPU kernels of this package or plain torch operations are used."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

_without_kernels = False


@contextmanager
def without_kernels() -> Iterator[None]:
    """A context in which layers use torch's own operations everywhere: the reference for tests and timings."""
    global _without_kernels
    before, _without_kernels = _without_kernels, True
    try:
        yield
    finally:
        _without_kernels = before


def on_gpu(x: Tensor) -> bool:
    """Whether x is on a GPU and layers may arrange their work for it.

    They may not under autocast, nor under torch.compile, which fuses operations itself.
    """
    other = torch.is_autocast_enabled("cuda") or torch.compiler.is_compiling()
    return x.is_cuda and not other and not _without_kernels


def can_use_kernels(*tensors: Tensor) -> bool:
    """Whether kernels can compute with these tensors: float32 on a CUDA device, and Triton is installed."""
    return on_gpu(tensors[0]) and all(t.dtype == torch.float32 for t in tensors) and module("triton_math") is not None


@functools.cache
def module(name: str) -> Any:
    """The module ``spdebench.accel.<name>``, or None where Triton is not installed."""
    try:
        return import_module(f"spdebench.accel.{name}")
    except ImportError:
        return None


def kernels(name: str, tensors: Sequence[Tensor], *sizes: Any) -> Any:
    """The module ``name`` if its kernels can compute with these tensors and it ``supports(*sizes)``, else None."""
    if not can_use_kernels(*tensors):
        return None
    found = module(name)
    return found if not sizes or found.supports(*sizes) else None


@functools.cache
def programs(device: int | None) -> int:
    """Number of programs for a kernel that loops over many blocks: two per multiprocessor, as many as run at once."""
    return 2 * torch.cuda.get_device_properties(device or 0).multi_processor_count
