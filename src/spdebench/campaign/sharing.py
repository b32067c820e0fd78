"""How many runs shared a GPU while a run was trained, from the start and the length of all recorded runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

import numpy as np

from spdebench.records import Record, Records

SHARING = 0.25  # of its time that a run takes longer for each further run on its GPU


def slowdown(runs: float, device: str = "cuda") -> float:
    """1 + 0.25 (k - 1): how much longer a run takes while k runs share its GPU.

    Fitted to all records of an H200 (`benchmarks/estimates.py`): twelve runs side by side take 3.75 times as long
    each, and are done in a third of the time that they take one after the other. On processors runs do not share a
    core.
    """
    return 1 + SHARING * (runs - 1) if device.startswith("cuda") else 1.0


def shared_by(records: Records) -> dict[str, float]:
    """Digest -> mean number of recorded runs on the same device while the run was made, itself included.

    A run that left no record, because it was paused or failed, is not seen; records without a start are left out.
    """
    found: dict[str, float] = {}
    for mine in _by_device(records.values()).values():
        begin, end = np.array([_interval(record) for record in mine]).T
        moments = np.concatenate([begin, end])
        change = np.concatenate([np.ones_like(begin), -np.ones_like(end)])
        order = np.argsort(moments, kind="stable")
        moments, running = moments[order], np.cumsum(change[order])
        total = np.concatenate([[0.0], np.cumsum(running[:-1] * np.diff(moments))])  # integral of the number of runs
        length = np.maximum(end - begin, 1e-9)
        mean = (np.interp(end, moments, total) - np.interp(begin, moments, total)) / length
        found |= {record.digest: max(1.0, float(k)) for record, k in zip(mine, mean, strict=True)}
    return found


def _by_device(records: Iterable[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record.provenance.started and record.provenance.device:
            found[record.provenance.device].append(record)
    return found


def _interval(record: Record) -> tuple[float, float]:
    """Start and end of the work that the record tells, in seconds."""
    start = datetime.fromisoformat(record.provenance.started or "").timestamp()
    return start, start + (record.training_seconds or 0.0) + (record.measuring_seconds or 0.0)
