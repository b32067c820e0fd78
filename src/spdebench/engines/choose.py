"""One call for every engine: ``run(work, units, workers, engine="local")``."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from spdebench.engines import local, on_ray
from spdebench.engines.need import Needs, Pair, longest_first
from spdebench.errors import UserError, unknown

Unit = TypeVar("Unit")
Result = TypeVar("Result")
ResultOfLost = Callable[[Any, str], Any]
"""Returns a result for a unit whose workers died repeatedly, from the unit and the reason."""
NewUnits = Callable[[], Sequence[Pair]]
"""Returns the units that have become possible since the last call; an engine calls it after each result."""


class Engine(Protocol):
    """Yields results of ``work(unit)`` as they arrive; ``result_of_lost`` returns the result of a unit
    whose workers always die."""

    def __call__(
        self,
        work: Callable[[Any], Any],
        units: Sequence[Pair],
        workers: int | None,
        result_of_lost: ResultOfLost,
        new_units: NewUnits | None,
    ) -> Iterator[Any]: ...


ENGINES: dict[str, Engine] = {"local": local.run, "ray": on_ray.run}


def check_engine(name: str) -> Engine:
    """The engine of this name; a one-line error if there is none, or if its package is not installed."""
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    if name == "ray":
        on_ray.require()
    return ENGINES[name]


def check_workers(workers: int | None) -> None:
    if workers is not None and workers < 1:
        raise UserError(f"workers must be at least 1, got {workers}")


def run(
    work: Callable[[Unit], Result],
    units: Sequence[Unit],
    workers: int | None = None,
    *,
    engine: str = "local",
    needs: Needs = None,
    result_of_lost: Callable[[Unit, str], Result] | None = None,
    new_units: Callable[[], Sequence[Unit]] | None = None,
) -> Generator[Result, None, None]:
    """Yield results of ``work(unit)`` as they arrive, the longest units first; each worker computes with one thread.

    ``workers`` is the number of units at a time; by default one on this machine, and on a cluster as many as its
    resources allow. If a worker is killed, its unit is run again. If that happens several times, ``result_of_lost``
    makes the result of the unit; without it an error is raised when all other units are done. An error of ``work`` ends
    everything. ``new_units`` is called after each result and returns units that have become possible; they are sorted
    into the order.
    """
    chosen = check_engine(engine)
    check_workers(workers)
    pairs = longest_first(units, needs)
    return _collected(
        chosen, work, pairs, workers, result_of_lost, (lambda: longest_first(new_units(), needs)) if new_units else None
    )


class _NoResult:
    """Replaces the result of a unit whose workers always died; ``reason`` says why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def _collected(
    engine: Engine,
    work: Callable[[Any], Any],
    units: Sequence[Pair],
    workers: int | None,
    result_of_lost: ResultOfLost | None,
    new_units: NewUnits | None,
) -> Generator[Any, None, None]:
    """The results of an engine; if units have no result, an error is raised at the end."""
    reasons: list[str] = []
    if not units:
        return
    for result in engine(work, units, workers, result_of_lost or (lambda unit, reason: _NoResult(reason)), new_units):
        if isinstance(result, _NoResult):
            reasons.append(result.reason)
        else:
            yield result
    if reasons:
        others = f", and {len(reasons) - 1} more" if len(reasons) > 1 else ""
        raise UserError(f"{reasons[0]}{others}; the other units are finished and kept")
