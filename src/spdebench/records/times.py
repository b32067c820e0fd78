"""Inference times that can be compared: taken while nothing else runs on the device.

Runs made side by side disturb each other's clocks. So one run of each kind (model, configuration, equation, grid,
frames, inputs, device) is timed again when the others have ended, ``alone``; when records are read its time stands for
all of its kind. A run that was made beside others has no time before that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import torch

from spdebench.data.identity import from_dict
from spdebench.errors import folding_known
from spdebench.solvers import simulate
from spdebench.spec import canonical_json
from spdebench.tasks import Batch, Part
from spdebench.training import RunSpec
from spdebench.training.provenance import device_name
from spdebench.training.scoring import inference_time
from spdebench.training.solver_row import BATCH, SOLVER, solver_time

FIELDS = ("edition", "boundary", "basis", "points", "frames", "steps", "solve_points", "substeps")


def kind(record: Mapping[str, Any]) -> str:
    """What an inference time depends on."""
    first = record["datasets"][0]
    data = {key: first.get("fields", {}).get(key) for key in FIELDS}
    task = {key: record["task"].get(key) for key in ("inputs", "every", "stride")}
    device = record.get("provenance", {}).get("device")
    return canonical_json([record["model"], record["config"], first.get("equation"), data, task, device])


def spread(records: Mapping[str, dict[str, Any]]) -> None:
    """Give every record the time of its kind that was taken alone; its own where it was not made beside others."""
    whole = [r for r in records.values() if "datasets" in r]
    alone = {kind(r): r["inference_ms"] for r in whole if r.get("alone")}
    for record in whole:
        own = None if record.get("beside") else record.get("inference_ms")
        record["inference_ms"] = alone.get(kind(record), own)


def untimed(records: Iterable[Mapping[str, Any]], known: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """One of the records for each kind of which no time was taken alone."""
    have = {kind(r) for r in known.values() if "datasets" in r and r.get("alone")}
    return [r for k, r in {kind(r): dict(r) for r in records}.items() if k not in have]


def retime(record: Mapping[str, Any], device: str) -> dict[str, Any] | None:
    """The short record with the time taken anew; None on another device than the run's."""
    if record.get("provenance", {}).get("device") != device_name(device):
        return None
    ms = _solver(record, device) if record["model"] == SOLVER else _network(record, device)
    short = {key: record[key] for key in ("version", "digest", "name", "model", "datasets")}
    return short | {"alone": True, "inference_ms": float(f"{ms:.4g}")}


def _network(record: Mapping[str, Any], device: str) -> float:
    """Weights and inputs do not change a time: fresh ones serve."""
    keys = ("model", "config", "datasets", "task", "options")
    spec = RunSpec(**{key: record[key] for key in keys})
    return inference_time(spec.build().to(device), cast(Part, _Sample(spec)))[0]


class _Sample:
    """A part of random noise, as far as timing looks at one."""

    def __init__(self, spec: RunSpec) -> None:
        self.setting = spec.setting
        self.shape = self.setting.shape

    def __len__(self) -> int:
        return BATCH

    def batch(self, rows: slice) -> Batch:
        count = len(range(BATCH)[rows])
        dw = torch.randn((count, *self.shape), generator=torch.Generator().manual_seed(0)) * self.setting.dt**0.5
        dw[:, 0] = 0
        known = (self.setting.equation,) if self.setting.equation else ()
        return Batch(torch.zeros_like(dw[:, 0]), dw, known, torch.zeros(count, dtype=torch.long))


def _solver(record: Mapping[str, Any], device: str) -> float:
    spec = from_dict(record["datasets"][0])
    with folding_known():
        paths = simulate(spec.equation, spec.seed, range(min(BATCH, spec.n)), device=device)
        return solver_time(spec.equation, paths.u0, paths.dw)
