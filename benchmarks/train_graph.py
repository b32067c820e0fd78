"""Training steps replayed as CUDA graphs against the same steps launched one by one, at the paper's phi41 size.

python benchmarks/train_graph.py [MODEL ...] [--samples 840] [--epochs 3] [--memory 0.5]

For each model (by default all that take phi41 and are trained): ms an epoch of both, after a first epoch that compiles,
warms up and captures; the largest difference of weights after all epochs, relative to the largest weight, between
eager and graph, and between eager and eager again, which is what the device's own sums in changing order leave.
`--memory 0` keeps the data on the host, so that batches are copied at every step.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import warnings

import torch

import spdebench as sb
from spdebench.cli.output import print_table
from spdebench.models.features import fits, prepare_part
from spdebench.training import Fit
from spdebench.training.identity import identify
from spdebench.training.train import calibrate


def trained(name: str, task: sb.Task, epochs: int, *, graph: bool, memory: float) -> Fit:
    """The model after its first and ``epochs`` more epochs."""
    spec = identify(name, task, {}, {"epochs": epochs + 1, "stop": 0})
    model = spec.build().to("cuda")
    place = model.device if fits(model, (task.train, task.val), memory) else "cpu"
    train, val = (prepare_part(model, part, place=place) for part in (task.train, task.val))
    calibrate(model, train)
    fit = Fit(model, train, val, spec.train_options, graph=graph)
    while not fit.finished:
        fit.run_epoch()
    return fit


def difference(a: Fit, b: Fit) -> float:
    """max |a - b| / max |a| over parameters and buffers, the worst of all tensors."""
    worst = 0.0
    for key, value in a.model.state_dict().items():
        top = float(value.abs().max()) if value.numel() else 0.0
        if top:
            worst = max(worst, float((value - b.model.state_dict()[key]).abs().max()) / top)
    return worst


def row(name: str, task: sb.Task, epochs: int, memory: float) -> dict[str, object]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        eager, again = (trained(name, task, epochs, graph=False, memory=memory) for _ in range(2))
        graphed = trained(name, task, epochs, graph=True, memory=memory)
    ms = [1e3 * statistics.median(e["seconds"] for e in fit.log[1:]) for fit in (eager, graphed)]
    notes = [str(w.message) for w in said if "CUDA graph" in str(w.message)]
    return {
        "model": name,
        "eager ms": ms[0],
        "graph ms": ms[1],
        "ratio": ms[0] / ms[1],
        "weights": difference(eager, graphed),
        "eager again": difference(eager, again),
        "val eager": eager.log[-1]["val"],
        "val graph": graphed.log[-1]["val"],
        "captured": "yes" if graphed.graph else f"no: {notes[0] if notes else '?'}",
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*")
    parser.add_argument("--samples", type=int, default=840, help="samples to train on")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--memory", type=float, default=0.5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = sb.generate(sb.equation("phi41"), n=given.samples * 10 // 7, out=folder, device="cuda")
        task = sb.Task(path)
        for name in given.models or [n for n in sb.MODELS if sb.MODELS[n].trainable]:
            try:
                sb.MODELS[name].supports(task.setting)
                print_table([row(name, task, given.epochs, given.memory)])
            except (sb.UserError, RuntimeError) as error:  # the rest of the table is worth having
                print(f"{name}: {error}")
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
