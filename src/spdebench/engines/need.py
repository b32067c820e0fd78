"""The resources that a unit of work needs: estimates that order and place the work and never change a result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Unit = TypeVar("Unit")


@dataclass(frozen=True)
class Need:
    """``memory`` in bytes, ``gpus`` as a fraction of one GPU, ``seconds`` as estimated.

    Units of smaller ``rank`` start first, and among equal ranks the longest. ``place`` names the GPU of a unit on this
    machine; on a cluster the engine chooses it. Units of different ``kind`` do not share a GPU of this machine; those
    without a kind share it with all. A unit that has not started at ``start_by``, a time of this machine's monotonic
    clock, is of no use any more, and others do not wait for it.
    """

    memory: int = 0
    gpus: float = 0.0
    seconds: float = 0.0
    rank: tuple[float, ...] = ()
    place: str = ""
    kind: str = ""
    start_by: float = math.inf

    def disturbs(self, other: Need) -> bool:
        """Whether both are for one GPU and of different kinds."""
        return self.place == other.place and "" not in (self.kind, other.kind) and self.kind != other.kind


Needs = Need | Callable[[Any], Need] | None
"""The same need for all units, a function of the unit, or None if nothing is known."""


Pair = tuple[Any, Need]


def in_order(pairs: Sequence[Pair]) -> list[Pair]:
    """Units with their needs in the order in which they start; equal ones keep their order."""
    return sorted(pairs, key=lambda pair: (pair[1].rank, -pair[1].seconds))


def longest_first(units: Sequence[Unit], needs: Needs) -> list[tuple[Unit, Need]]:
    """The units with their needs, in the order in which they start."""
    return in_order([(unit, needs(unit) if callable(needs) else needs or Need()) for unit in units])
