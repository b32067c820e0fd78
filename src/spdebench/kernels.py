"""Kernels of our own for NVIDIA GPUs: they are written in Triton, which CUDA builds of torch bring."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any


@functools.cache
def triton_there() -> bool:
    return find_spec("triton") is not None


@functools.cache
def kernel(module: str, name: str) -> Callable[..., Any] | None:
    """The function of a ``*_cuda`` module; None where Triton is not there or cannot be imported."""
    try:
        return getattr(import_module(module), name)  # type: ignore[no-any-return]
    except ImportError:
        return None
