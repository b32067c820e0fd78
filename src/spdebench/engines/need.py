"""What a unit of work asks for. An estimate: it orders and places work, and never changes a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Unit = TypeVar("Unit")


@dataclass(frozen=True)
class Need:
    """``memory`` in bytes, ``gpus`` as a share of one GPU, ``seconds`` as estimated.

    ``rank`` orders units: smaller ones start first, and of one rank the longest. ``place`` names the GPU that a unit of
    this machine has chosen; on a cluster the engine chooses.
    """

    memory: int = 0
    gpus: float = 0.0
    seconds: float = 0.0
    rank: tuple[float, ...] = ()
    place: str = ""


Needs = Need | Callable[[Any], Need] | None
"""One for all units, a function of the unit, or nothing known."""


def longest_first(units: Sequence[Unit], needs: Needs) -> list[tuple[Unit, Need]]:
    """Units with their needs, in the order in which they are to start; equal ones as they came."""
    pairs = [(unit, needs(unit) if callable(needs) else needs or Need()) for unit in units]
    return sorted(pairs, key=lambda pair: (pair[1].rank, -pair[1].seconds))
