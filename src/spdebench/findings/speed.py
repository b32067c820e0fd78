"""Finding about speed: the solver and the networks, timed on one device, at batch 100 and at a large batch."""

from __future__ import annotations

import statistics

from spdebench.equations import Phi41
from spdebench.findings.base import Finding, FindingResult, Sources, declare
from spdebench.models import MODELS, model
from spdebench.records.solver_times import large_batches, networks_over_solver
from spdebench.solvers import simulate
from spdebench.tasks import Batch, default_setting
from spdebench.timing import best_of
from spdebench.training.provenance import device_type
from spdebench.training.scoring import BATCH
from spdebench.training.solver_row import SOLVER, solver_time

LARGE = {"cpu": 2000, "cuda": 100_000}
"""Samples that the solver takes at once; a network takes them in parts."""
PART = {"cpu": 20, "cuda": 2000}
NETWORKS = ("deeponet", "fno", "nspde", "wno", "dlr-net", "gt", "ncde")


def speed(sources: Sources) -> FindingResult:
    """ms per sample of the solver over that of a network: at batch 100 from records, at a large batch, and here."""
    rows = []
    numbers: dict[str, float] = {}
    for equation, large in large_batches().items():
        solver, networks = _recorded(sources, equation, large.device)
        rows.append(
            {
                "equation": equation,
                "solver, batch 100": solver,
                "networks, batch 100": f"{min(networks):.2g} to {max(networks):.2g}",
                "solver, large batch": large.ms,
                "samples in it": large.samples,
                "solver / fastest network, batch 100": solver / min(networks),
                "large batch / slowest network": large.ms / max(networks),
            }
        )
        numbers |= {f"{equation}_small": solver, f"{equation}_large": large.ms}
        numbers |= {f"{equation}_low": min(networks), f"{equation}_high": max(networks)}
    recorded = networks_over_solver().values()
    numbers |= {"gpu_low": min(recorded), "gpu_high": max(recorded)}
    here = networks_here(sources.device)
    return FindingResult(numbers | {"here_low": min(here.values()), "here_high": max(here.values())}, rows)


def _recorded(sources: Sources, equation: str, device: str) -> tuple[float, list[float]]:
    """Time of the solver and of each network on a device: medians over the records of the equation, edition paper."""
    times: dict[str, list[float]] = {}
    for record in sources.records.values():
        data = record.datasets[0]
        of_it = data.get("equation") == equation and data.get("fields", {}).get("edition") == "paper"
        if of_it and device in (record.provenance.device or "") and record.inference_ms:
            times.setdefault(record.model, []).append(record.inference_ms)
    medians = {name: statistics.median(values) for name, values in times.items()}
    return medians[SOLVER], [ms for name, ms in medians.items() if name in MODELS and MODELS[name].trainable]


def networks_here(device: str) -> dict[str, float]:
    """Time of a network over that of the solver for phi41 at a large batch, u0 and dw on the device, no training."""
    kind = device_type(device)
    eq = Phi41(sigma=0.1, truncation=128, edition="paper")
    paths = simulate(eq, 0, range(BATCH), device=device)

    def repeated(count: int) -> tuple[Batch, int]:
        copies = -(-count // BATCH)
        u0, dw = paths.u0.repeat(copies, 1)[:count], paths.dw.repeat(copies, 1, 1)[:count]
        return Batch(u0, dw, (eq,)), count

    whole, _ = repeated(LARGE[kind])
    solver = solver_time(eq, whole.u0, whole.dw)
    part, count = repeated(PART[kind])
    found = {}
    for name in NETWORKS:
        net = model(name, default_setting(eq)).to(device)
        net.predict(part)
        _, seconds = best_of(lambda net=net: net.predict(part), 2, device)  # type: ignore[misc]
        found[net.title] = 1e3 * seconds / count / solver
    return found


declare(
    Finding(
        name="speed",
        title="On a GPU the solver with a large batch is about as fast as the networks at batch 100, except for NSE; "
        "at batch 100 it is slower.",
        sentence="On an H200 at batch 100, one sample of Phi41 takes {phi41_small:.2g} ms with the solver and "
        "{phi41_low:.2g} to {phi41_high:.2g} ms with the networks. With 100,000 samples at once the solver "
        "takes {phi41_large:.1g} ms per sample, including the noise, which is less than any network at "
        "batch 100. For NSE the solver takes {nse_large:.2g} ms with 20,000 samples at once, and the "
        "networks take {nse_low:.2g} to {nse_high:.2g} ms at batch 100. With 100,000 samples of Phi41 the "
        "networks take {gpu_low:.1f} to {gpu_high:.0f} times as long as the solver on the same H200, and "
        "{here_low:.0f} to {here_high:.0f} times as long on one CPU core (this varies with the machine and "
        "its load).",
        follows="The published speed-ups of 22 (Phi41) and 270 (Phi42) compare a solver that runs sample by sample "
        "on a CPU with a network that runs in batches on a GPU. Time both on one device at the same batch "
        "size. At batch 100 the time of the solver is dominated by kernel launches and does not grow with "
        "the batch. `spdebench findings speed --device cuda` measures networks and solver at 100,000 "
        "samples.",
        uses=("run records", "times measured here"),
        compute=speed,
        quick=False,
    )
)
