"""The base class of metrics: a frozen dataclass of options with ``measure``. Declaring a subclass registers it."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from abc import abstractmethod
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


SYMBOLS = """\
U: the truth, V: the prediction, e = V - U. n = 1..N counts samples, i = 1..D points of space, j = 1..T the times
t_1..t_T; u^_k is the Fourier coefficient of mode k and kappa_k its wave number. mean_n and std_n are over samples, rms
is a root mean square, d the number of space dimensions."""
"""The symbols in the formulas of metrics."""

METRICS: Registry[Metric] = Registry("metric", "metrics", _builtin)


@dataclass(frozen=True)
class Measurement:
    """The result of `Metric.measure`.

    If the value is not a mean of per-sample values (``samples``), ``resample`` computes it for given sample weights.
    """

    value: float
    samples: np.ndarray | None = None
    reduction: Reduction = "mean"
    curve: np.ndarray | None = None
    details: dict[str, Any] = field(default_factory=dict)
    resample: Statistic | None = None


class Metric:
    """A number that measures the distance between a prediction V and the truth U.

    A subclass is a frozen dataclass whose fields are its options. Its docstring starts with its formula and source.
    ``kind="samplewise"``: the value is computed from one value per sample, and a NaN affects only its own sample.
    ``kind="law"``: the value compares distributions, and a NaN makes it infinite. ``ideal`` is the value of a perfect
    prediction. ``title`` names the metric in figures; without it the name does.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    kind: ClassVar[Kind] = "samplewise"
    ideal: ClassVar[float] = 0.0

    def __init_subclass__(cls, *, name: str | None = None, title: str = "", **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if name is not None:
            cls.name, cls.title = name, title or name
            METRICS.add(name, cls)

    def refuses(self, pair: Pair) -> str | None:
        """None if this metric can score such arrays; otherwise the reason, as text that is printed after its name."""
        return None

    @abstractmethod
    def measure(self, pair: Pair, *, samples: bool = True) -> Measurement | float:
        """The value and, if ``samples``, the per-sample values that confidence intervals need; or just the value."""

    @property
    def label(self) -> str:
        """The name, with the options that differ from their defaults: ``sigw1(depth=3)``."""
        changed = [f"{f.name}={getattr(self, f.name)}" for f in _options(self) if getattr(self, f.name) != f.default]
        return f"{self.name}({','.join(changed)})" if changed else self.name

    @classmethod
    def formula(cls) -> str:
        """The docstring without indentation: formula, source, remarks."""
        return inspect.cleandoc(cls.__doc__ or "")


def _options(metric: Metric) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(metric) if dataclasses.is_dataclass(metric) else ()


def require(condition: bool, message: str) -> None:
    """Raise a `UserError` with this message if an option is out of range."""
    if not condition:
        raise UserError(message)
