"""A table small enough to be run in a test, the folders and jobs of a campaign, and made-up records."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from spdebench.campaign import plan
from spdebench.campaign.unit import Places
from spdebench.paper.base import Cell, Table, data
from spdebench.paper.layout import by_truncation, want, with_reference_rows
from spdebench.records import Record, store

OWN = data("phi41", points=16, frames=10, steps=10, n=40)
FIXED = OWN.having(truncation=4, kappa=0.0)


def tiny_table() -> Table:
    """DeepONet at two truncations and its reference rows; on another truncation and on fresh samples."""
    small: dict[str, Any] = {"config": {"width": 8}, "options": {"epochs": 3}, "published": None}
    main = [dataclasses.replace(w, **small) for w in by_truncation(OWN, {"xi": ("deeponet",)}, columns=(4, 8))]
    other = FIXED.having(truncation=8)
    fresh = dataclasses.replace(FIXED, seed=1, n=20)
    moved = [
        want("deeponet", FIXED, "xi", group="moved", column="J=8", part="truncation=8", test=other, **small),
        want("deeponet", FIXED, "xi", group="moved", column="fresh", part="fresh", test=fresh, **small),
    ]
    return Table(name="tiny", title="A tiny table", source="tab:none", wants=(*with_reference_rows(main), *moved))


def places(folder: Path) -> Places:
    """Data, runs and results within one folder."""
    return Places(str(folder / "data"), str(folder / "runs"), str(folder / "results"))


def todo(cells: Iterable[Cell], where: Places) -> list[plan.Job]:
    """The jobs of cells, as far as the records and runs of these folders go."""
    return plan.jobs(cells, store.read(where.results), where.runs)


def made_up(run: Any, error: float, spread: float = 0.1, **changes: Any) -> Record:
    """A record for a run with a given relative L2, its samples around it; ``changes`` are of its written form."""
    rng = np.random.default_rng(int(run.digest, 16))
    samples = error * (1 + spread * rng.standard_normal(40))
    values = {
        "version": 2,
        "digest": run.digest,
        "name": run.name,
        "model": run.model,
        "config": getattr(run, "config", {}),
        "parameters": 1234,
        "real_parameters": 1234,
        "datasets": list(run.datasets),
        "task": run.task,
        "options": getattr(run, "options", {}),
        "epochs": 2,
        "val": 2 * error,
        "scores": {"rel_l2": {"value": error}},
        "samples": {"rel_l2": samples.tolist()},
        "shifts": {},
        "inference_ms": 0.5,
        "training_seconds": 10.0,
        "provenance": {"device": "cpu: test"},
        **changes,
    }
    return Record.from_dict(values)
