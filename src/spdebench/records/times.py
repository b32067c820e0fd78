"""Inference times that can be compared: those measured while nothing else ran on the device.

Runs that share a device slow each other down. Therefore, after a campaign, one run of each kind (model, configuration,
equation, grid, frames, inputs, device) is timed again while nothing else runs, and this time is used for all runs of
its kind. A run that shared its device has no inference time before that. Where the time depends on what was fitted, as
for step, whose terms and stages are chosen on the data, every run is a kind of its own and is not timed again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from spdebench.models import MODELS
from spdebench.records.record import Record, Records
from spdebench.spec import canonical_json

DATA_FIELDS = ("edition", "boundary", "basis", "points", "frames", "steps", "solve_points", "substeps")
TASK_FIELDS = ("inputs", "every", "stride")


def kind(record: Record) -> str:
    """Everything that an inference time depends on, as text; runs with the same text have the same time."""
    fields = record.datasets[0].get("fields", {})
    data = {key: fields.get(key) for key in DATA_FIELDS}
    task = {key: record.task.get(key) for key in TASK_FIELDS}
    equation = record.datasets[0].get("equation")
    own = [record.digest] if depends_on_fit(record) else []
    return canonical_json([record.model, dict(record.config), equation, data, task, record.provenance.device, *own])


def depends_on_fit(record: Record) -> bool:
    """Whether the inference time of a run depends on what its model was fitted to."""
    return record.model in MODELS and MODELS[record.model].cost_depends_on_fit


def share_times(records: Records) -> dict[str, Record]:
    """The records, each with the exclusive time of its kind; otherwise its own, unless it shared a device."""
    exclusive = {kind(r): (r.inference_ms, r.inference_batch) for r in records.values() if r.exclusive_timing}
    return {digest: _timed(record, exclusive) for digest, record in records.items()}


def _timed(record: Record, exclusive: dict[str, tuple[float | None, int | None]]) -> Record:
    """The record with the time that is valid for it, and the batch at which it was measured."""
    own = None if record.shared_device else record.inference_ms
    ms, batch = exclusive.get(kind(record), (own, record.inference_batch))
    return dataclasses.replace(record, inference_ms=ms, inference_batch=batch)


def without_exclusive_time(records: Iterable[Record], known: Records) -> list[Record]:
    """One record of each kind that has no exclusive time."""
    have = {kind(r) for r in known.values() if r.exclusive_timing}
    return [record for k, record in {kind(r): r for r in records}.items() if k not in have]
