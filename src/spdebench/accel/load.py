"""Triton kernels for NVIDIA GPUs. None is required: where Triton is missing, torch does the same work."""

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
    """The function ``name`` of a module of Triton kernels; None where Triton is missing or cannot be imported."""
    try:
        return getattr(import_module(module), name)  # type: ignore[no-any-return]
    except ImportError:
        return None
