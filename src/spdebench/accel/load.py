"""Kernels of our own for NVIDIA GPUs: in Triton, which CUDA builds of torch bring, or in CUDA C++, which torch builds.

Neither is needed: where a kernel is not to be had, its caller does the same in torch.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module, resources
from typing import Any, TypeAlias

import torch
from torch import Tensor

Launch: TypeAlias = Callable[[int, int, Sequence[Tensor | int]], None]
"""(thread blocks, threads of each, arguments) -> the kernel runs on the current stream of its device."""


@functools.cache
def kernel(module: str, name: str) -> Callable[..., Any] | None:
    """A function of a module with kernels; None where Triton is not installed."""
    try:
        return getattr(import_module(module), name)  # type: ignore[no-any-return]
    except ImportError:
        return None


def source(file: str, defines: tuple[tuple[str, str], ...]) -> str:
    """The text of a CUDA C++ file of this package, named as ``folder/file``, the definitions before it."""
    text = resources.files("spdebench").joinpath(f"{file}.cu").read_text(encoding="utf-8")
    return "".join(f"#define {name} {value}\n" for name, value in defines) + text


def compiled(
    file: str, name: str, defines: tuple[tuple[str, str], ...], shared: int, device: torch.device | str
) -> Launch | None:
    """The kernel ``name`` of a CUDA C++ file, with ``shared`` bytes of shared memory a thread block.

    None where the device is no CUDA device or has less shared memory, or where this torch cannot compile it.
    """
    where = torch.device(device)
    if where.type != "cuda" or torch.version.cuda is None or not hasattr(torch.cuda, "_compile_kernel"):
        return None
    index = torch.cuda.current_device() if where.index is None else where.index
    if shared > getattr(torch.cuda.get_device_properties(index), "shared_memory_per_block_optin", 48 << 10):
        return None
    return _compiled(file, name, defines, shared, index)


@contextmanager
def _no_toolkit_needed() -> Iterator[None]:
    """Torch looks for the headers of a CUDA toolkit, of which our files include none: any folder will do."""
    from torch.utils import cpp_extension

    home = cpp_extension.CUDA_HOME
    cpp_extension.CUDA_HOME = home or sys.prefix
    try:
        yield
    finally:
        cpp_extension.CUDA_HOME = home


@functools.cache
def _compiled(file: str, name: str, defines: tuple[tuple[str, str], ...], shared: int, index: int) -> Launch | None:
    try:
        with torch.cuda.device(index), _no_toolkit_needed():
            function = torch.cuda._compile_kernel(source(file, defines), name)
            function.set_shared_memory_config(shared)
    except Exception as error:  # a private function of torch, a compiler and a driver: whatever they say, torch will do
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        warnings.warn(f"the kernel {name} cannot be compiled ({reason}); torch does its work", stacklevel=3)
        return None

    def launch(blocks: int, threads: int, arguments: Sequence[Tensor | int]) -> None:
        with torch.cuda.device(index):
            function((blocks, 1, 1), (threads, 1, 1), list(arguments), shared)

    return launch
