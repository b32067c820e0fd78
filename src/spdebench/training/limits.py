"""Limits on the size of a model that is built for stored weights: a forged spec could describe a huge model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from spdebench.models import OperatorModel

LARGEST_TENSOR = 1 << 24
"""The number of values that a tensor may always have while a model is built, such as the matrices of a transform."""
_MAKERS = {"empty", "empty_strided", "zeros", "ones", "full", "rand", "randn", "normal", "eye"}
_REFUSED = "its spec asks for many more weights than the file has"


@contextmanager
def parameters_at_most(count: int) -> Iterator[None]:
    """A context that raises RuntimeError if a model registers more parameters or allocates a much larger tensor."""
    left = count

    def registered(module: torch.nn.Module, name: str, parameter: torch.nn.Parameter | None) -> None:
        nonlocal left
        left -= 0 if parameter is None else parameter.numel()
        if left < 0:
            raise RuntimeError(_REFUSED)

    hook = register_module_parameter_registration_hook(registered)
    try:
        with _NoLargeTensors(max(count, LARGEST_TENSOR)):
            yield
    finally:
        hook.remove()


class _NoLargeTensors(TorchFunctionMode):
    """Checks the size of a tensor before torch allocates it."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = dict(kwargs or {})
        if getattr(func, "__name__", "") in _MAKERS and _values(args, given) > self.most:
            raise RuntimeError(_REFUSED)
        return func(*args, **given)


def _values(args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
    """The product of the sizes, which are a sequence or several numbers."""
    found = [kwargs["size"]] if "size" in kwargs else list(args)
    sizes = next((each for each in found if isinstance(each, list | tuple)), found)
    return math.prod(size for size in sizes if isinstance(size, int))


def check_types(model: OperatorModel, weights: Mapping[str, torch.Tensor]) -> None:
    """Raise TypeError unless the weights have the types of the model; torch would convert other types silently."""
    for name, value in model.state_dict().items():
        if name in weights and weights[name].dtype != value.dtype:
            raise TypeError(f"{name} is {weights[name].dtype}, the model has {value.dtype}")
