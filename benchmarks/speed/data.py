"""Speed of the solver as a ratio, against a lower bound (floor) of its work:

floor = drawing as many float64 normals as the noise has (by the faster of numpy and torch)
      + the transforms of the scheme (recorded from a run, then timed alone on arrays of the same shapes).

Solver, normals and transforms are timed in turn for each chunk, in one process; the ratio is that of their medians.
"""

from __future__ import annotations

import contextlib
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import torch

from spdebench.data.identity import DatasetSpec
from spdebench.equations import Equation
from spdebench.errors import without_aliasing_warning
from spdebench.solvers import simulate
from spdebench.timing import best_of, timed

_TRANSFORMS = ("fft", "rfft", "irfft", "rfftn", "irfftn")
Call = tuple[str, tuple[int, ...], torch.dtype, tuple[tuple[str, Any], ...]]


@dataclass(frozen=True)
class Timing:
    """Milliseconds per sample."""

    label: str
    samples: int
    solver: float
    normals: float
    transforms: float
    functions: int  # of the noise, each drawn once per step
    steps: int

    @property
    def floor(self) -> float:
        return self.normals + self.transforms

    @property
    def ratio(self) -> float:
        return self.solver / self.floor

    @property
    def normals_per_second(self) -> float:
        """Normals that the whole solver draws and uses per second."""
        return 1e3 * self.functions * self.steps / self.solver


def samples_for(equation: Equation, device: str) -> int:
    """Enough samples for a steady rate: on the processor 1200 (60 in 2-D and 3-D), on a GPU as many as fill it."""
    if torch.device(device).type == "cpu":
        return 1200 if equation.dim == 1 else 60
    return max(64, min(100000, (24 << 30) // DatasetSpec(equation=equation, n=1).sample_bytes))


def bench_equation(equation: Equation, n: int = 0, device: str = "cpu", label: str = "") -> Timing:
    """Time ``n`` samples (0: `samples_for`) in chunks: the dataset's own on the processor, two halves on a GPU."""
    n = n or samples_for(equation, device)
    on_gpu = torch.device(device).type == "cuda"
    identity = DatasetSpec(equation=equation, n=n, chunk=-(-n // 2) if on_gpu else 0)
    with without_aliasing_warning():
        simulate(equation, 0, range(2), device=device)  # libraries are loaded on first use
        size = min(identity.chunk, n)
        calls = record_transforms(lambda: simulate(equation, 0, range(size), device=device))
        rows = [identity.rows(i) for i in range(identity.chunks)]
        solver, normals, transforms = [], [], []
        for chunk in rows:
            solver.append(timed(partial(simulate, equation, 0, chunk, device=device), device)[1] / len(chunk))
            count = len(chunk) * equation.steps * equation.series().functions
            normals.append(_draw_seconds(count, device) / len(chunk))
            transforms.append(_replay_seconds(calls, device) / size)
    ours, drawn, turned = (1e3 * statistics.median(x) for x in (solver, normals, transforms))
    return Timing(label or equation.name, n, ours, drawn, turned, equation.series().functions, equation.steps)


def record_transforms(work: Callable[[], object]) -> Counter[Call]:
    """Every call of torch.fft that ``work`` makes: name, shape, dtype and keywords, with its count."""
    calls: Counter[Call] = Counter()
    with contextlib.ExitStack() as stack:
        for name in _TRANSFORMS:
            stack.enter_context(mock.patch.object(torch.fft, name, _recorder(name, getattr(torch.fft, name), calls)))
        work()
    return calls


def _recorder(name: str, original: Callable[..., torch.Tensor], calls: Counter[Call]) -> Callable[..., torch.Tensor]:
    def recorded(values: torch.Tensor, **keywords: Any) -> torch.Tensor:
        calls[name, tuple(values.shape), values.dtype, tuple(sorted(keywords.items()))] += 1
        return original(values, **keywords)

    return recorded


def _replay_seconds(calls: Counter[Call], device: str) -> float:
    total = 0.0
    for (name, shape, dtype, keywords), count in calls.items():
        values = torch.ones(shape, dtype=dtype, device=device)
        function, options = getattr(torch.fft, name), dict(keywords)
        repeats = min(count, 20)

        def replay(f: Any = function, v: torch.Tensor = values, o: Any = options, r: int = repeats) -> None:
            for _ in range(r):
                f(v, **o)

        replay()
        total += timed(replay, device)[1] / repeats * count
    return total


def _draw_seconds(count: int, device: str) -> float:
    block = min(count, 1 << 20)
    generator = np.random.default_rng(0)

    def by_torch() -> torch.Tensor:
        return torch.randn(block, dtype=torch.float64, device=device)

    ways: list[Callable[[], object]] = [by_torch]
    if torch.device(device).type == "cpu":
        ways.append(lambda: generator.standard_normal(block))
    best = min(best_of(way, 2, device)[1] for way in ways)
    return best * count / block


def standard_cases() -> Iterator[tuple[str, Equation]]:
    """The configurations that the benchmark reports: each equation at its defaults, and its main variants."""
    from spdebench.equations import EQUATIONS

    for name in EQUATIONS:
        cls = EQUATIONS[name]
        yield name, cls()
        if "dirichlet" in cls.boundaries:
            yield f"{name} dirichlet", cls(boundary="dirichlet")
        if "haar" in cls.bases:
            yield f"{name} haar", cls(basis="haar")
        if name == "kdv":
            yield "kdv cylindrical", cls(noise="cylindrical")
