"""Rows of a table without a trained model (the solver, the true law): their specs and their records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from spdebench import spec
from spdebench.data import DatasetSpec
from spdebench.records import PartScores, Provenance, Record
from spdebench.training.provenance import provenance


@dataclass(frozen=True)
class ReferenceSpec(ABC):
    """Everything that the record of a reference row depends on: the dataset, and the task that selects the samples."""

    model: ClassVar[str]
    dataset: DatasetSpec
    task: dict[str, Any]

    @property
    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Everything on which the numbers depend, with the version of the measurement."""

    @cached_property
    def digest(self) -> str:
        return spec.digest(self.identity)

    @property
    def datasets(self) -> tuple[dict[str, Any], ...]:
        return (self.dataset.to_dict(),)

    @property
    def name(self) -> str:
        return f"{self.model}-{self.dataset.equation.name}-{self.digest}"

    def record(
        self,
        own: PartScores,
        shifts: Mapping[str, PartScores],
        seconds: float,
        device: str,
        inference_ms: float | None = None,
        inference_batch: int | None = None,
    ) -> Record:
        """The record of these scores, which took ``seconds`` to measure on the device."""
        return Record(
            digest=self.digest,
            name=self.name,
            model=self.model,
            config={},
            datasets=self.datasets,
            task=self.task,
            parameters=0,
            real_parameters=0,
            scores=own.scores,
            samples=own.samples,
            shifts=dict(shifts),
            inference_ms=inference_ms,
            inference_batch=inference_batch,
            training_seconds=0.0,
            measuring_seconds=round(seconds, 3),
            provenance=Provenance(**provenance(device)),
        )
