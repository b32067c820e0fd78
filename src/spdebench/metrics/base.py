"""What a metric is: a frozen dataclass of options with ``measure``. Declaring it with a name registers it."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from spdebench.errors import UserError
from spdebench.metrics.bootstrap import Statistic
from spdebench.metrics.fields import Pair
from spdebench.metrics.scores import Kind, Reduction
from spdebench.registry import Registry

MODULES = ("boundary", "correlation", "moments", "pointwise", "signature", "sobolev", "spectrum", "structure")


def _builtin() -> None:
    for module in MODULES:
        importlib.import_module(f"spdebench.metrics.{module}")


METRICS: Registry[Metric] = Registry("metric", "metrics", _builtin)


@dataclass(frozen=True)
class Measurement:
    """What `Metric.measure` finds. ``resample`` gives the value under sample weights where ``samples`` cannot."""

    value: float
    samples: np.ndarray | None = None
    reduction: Reduction = "mean"
    curve: np.ndarray | None = None
    details: dict[str, Any] = field(default_factory=dict)
    resample: Statistic | None = None


class Metric:
    """A number that says how far a prediction V is from the truth U.

    A subclass is a frozen dataclass whose fields are its options, and its docstring opens with its formula and source.
    ``kind`` is ``samplewise`` when the value is made of one value a sample (then a NaN spoils its sample only), ``law``
    when it compares distributions (then a NaN makes it inf). ``ideal`` is the value of a perfect prediction.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind] = "samplewise"
    ideal: ClassVar[float] = 0.0

    def __init_subclass__(cls, *, name: str | None = None, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if name is not None:
            cls.name = name
            METRICS.add(name, cls)

    def refuses(self, pair: Pair) -> str | None:
        """Why this metric cannot score such arrays, in words that follow its name; None when it can."""
        return None

    def measure(self, pair: Pair, *, samples: bool = True) -> Measurement:
        """The value, and with ``samples`` what intervals need (some metrics save work without)."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """The name, with the options that differ from their defaults: ``sigw1(depth=3)``."""
        changed = [f"{f.name}={getattr(self, f.name)}" for f in _options(self) if getattr(self, f.name) != f.default]
        return f"{self.name}({','.join(changed)})" if changed else self.name

    @classmethod
    def formula(cls) -> str:
        """The docstring, unindented: formula, source, remarks."""
        return inspect.cleandoc(cls.__doc__ or "")


def _options(metric: Metric) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(metric) if dataclasses.is_dataclass(metric) else ()


def require(condition: bool, message: str) -> None:
    """An option outside its range is one clear line."""
    if not condition:
        raise UserError(message)
