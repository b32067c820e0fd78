"""How runs share a GPU: what share of it each would use alone, and how long it takes while others run there.

A step takes v + l: the GPU computes during v, the time of the numbers that pass the network, and waits during l, in
which small kernels are started one after the other. Alone a run uses the share v / (v + l) of the GPU. Runs whose
shares have the sum L > 1 take L times as long.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

import numpy as np

from spdebench.campaign.effort import space_dimensions, step_numbers
from spdebench.errors import UserError
from spdebench.paper.base import AnySpec
from spdebench.records import Record, Records
from spdebench.training.provenance import device_type

MEASURED_STEP = 0.13056  # million numbers of a step of `bench train`: 20 samples x 51 frames x 128 points
MEASURED_SHARES: Mapping[str, float] = {
    "deeponet": 0.58,
    "dlr-net": 0.67,
    "fno": 0.82,
    "flow-fno": 0.82,
    "gt": 0.69,
    "ncde": 0.25,
    "ncde-fno": 0.24,
    "nors": 0.86,
    "nrde": 0.42,
    "nspde": 0.73,
    "nspde-s": 0.56,
    "wno": 0.75,
}
"""Share of an H200 that a run of each model uses in such steps: the columns together / alone of `bench train`, the time
per epoch and run of eight simultaneous runs over that of a run alone. (flow-fno has the layers of fno.)"""
SHARES_IN_SPACE: Mapping[str, float] = {"ncde-fno": 1.0}
"""The same in two and three space dimensions, for models that use other kernels there. One run of ncde-fno on nse of
the core suite took 1.55 s per epoch alone, and 4.7 s while another one and a run of gt or dlr-net shared its GPU."""
UNMEASURED_SHARE = 0.7  # share of models that were not measured
FULL_LOAD = 2.5  # sum of shares up to which runs start on a GPU: more gain nothing, and all take longer
SMALL_KERNELS = 0.45  # a run with a smaller share waits most of the time for small kernels to start


def gpu_share(run: AnySpec | Record) -> float:
    """Share of a GPU that the training of a run uses while it is alone there; 0 for runs that are not trained."""
    options: Mapping[str, object] = getattr(run, "options", {})
    if not options.get("epochs"):
        return 0.0
    measured = MEASURED_SHARES.get(run.model, UNMEASURED_SHARE)
    try:
        if run.model in SHARES_IN_SPACE and space_dimensions(run.datasets) > 1:
            return SHARES_IN_SPACE[run.model]
        numbers = step_numbers(run.datasets, run.task, options)
    except UserError:  # of an equation that is not declared here
        return measured
    latency = MEASURED_STEP * (1 / measured - 1)
    return numbers / (numbers + latency) if numbers else measured


def kernel_kind(share: float) -> str:
    """The kind of a run that uses this share of a GPU. Runs of different kinds do not share one: small kernels would
    wait behind the large ones of others.

    A step of ncde has thousands of small kernels. Among large runs of fno and nspde each kernel waits for theirs: on an
    H200 with 20 such runs an epoch of ncde took 15 s instead of 0.13 s.
    """
    return "" if not share else "small kernels" if share < SMALL_KERNELS else "large kernels"


def slowdown(load: float, device: str = "cuda") -> float:
    """max(1, L): how much longer a run takes while the shares of all runs on its GPU have the sum L.

    `benchmarks/estimates.py` compares it with all records of an H200. On processors runs do not share a core.
    """
    return max(1.0, load) if device_type(device) == "cuda" else 1.0


def loads(records: Records) -> dict[str, float]:
    """Digest -> mean sum of the shares of recorded runs on the same device while the run was made, itself included.

    A run that left no record, because it was paused or failed, is not seen; records whose start or time is not known
    are left out.
    """
    found: dict[str, float] = {}
    for on_this_device in _by_device(records.values()).values():
        begin, end = np.array([interval for _, interval in on_this_device]).T
        shares = np.array([gpu_share(record) for record, _ in on_this_device])
        moments = np.concatenate([begin, end])
        change = np.concatenate([shares, -shares])
        order = np.argsort(moments, kind="stable")
        moments, load = moments[order], np.cumsum(change[order])
        total = np.concatenate([[0.0], np.cumsum(load[:-1] * np.diff(moments))])  # integral of the load
        length = np.maximum(end - begin, 1e-9)
        mean = (np.interp(end, moments, total) - np.interp(begin, moments, total)) / length
        found |= {record.digest: float(value) for (record, _), value in zip(on_this_device, mean, strict=True)}
    return found


def _by_device(records: Iterable[Record]) -> dict[str, list[tuple[Record, tuple[float, float]]]]:
    """Records with their `_interval`, by device; those without one are left out."""
    found: dict[str, list[tuple[Record, tuple[float, float]]]] = defaultdict(list)
    for record in records:
        if record.provenance.device and (interval := _interval(record)):
            found[record.provenance.device].append((record, interval))
    return found


def _interval(record: Record) -> tuple[float, float] | None:
    """Start and end of a run, in seconds since 1970, from the times in its record; None if they are not known."""
    try:
        start = datetime.fromisoformat(record.provenance.started or "").timestamp()
    except (ValueError, OverflowError, OSError):  # records of other people may hold any text
        return None
    seconds = (record.training_seconds or 0.0) + (record.measuring_seconds or 0.0)
    return (start, start + seconds) if 0 <= seconds < math.inf else None
