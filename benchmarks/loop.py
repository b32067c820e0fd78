"""Compare the time of our training loop with a hand-written one: the same steps of one model at the paper's phi41 size.

python benchmarks/loop.py [MODEL] [--device cpu] [--samples 80] [--rounds 3]

Both loops compute the same: Adam on the relative L2 loss in batches of 20, then a validation. The hand-written one
selects rows by indexing and reads its loss after every step. Epochs of the two alternate, and the smallest time of each
is used (on the CPU the processor time of one thread, so that other programs do not affect it).
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable

import torch

import spdebench as sb
from spdebench.cli.output import print_table
from spdebench.models import OperatorModel
from spdebench.models.features import Prepared, prepare_part
from spdebench.training import Fit, options_for
from spdebench.training.identity import identify

BATCH = 20


def bare_epoch(model: OperatorModel, train: Prepared, val: Prepared) -> Callable[[], None]:
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)

    def relative(v: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        v, u = v[:, 1:].flatten(1), u[:, 1:].flatten(1)
        return ((v - u).norm(dim=1) / u.norm(dim=1)).mean()

    def epoch() -> None:
        model.train()
        for rows in torch.randperm(len(train), device=train.device).split(BATCH):
            loss = relative(model({k: f[rows] for k, f in train.features.items()}), train.target[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            loss.item()
        model.eval()
        with torch.no_grad():
            relative(model(val.features), val.target).item()

    return epoch


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", default="fno")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--samples", type=int, default=80, help="samples to train on")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    clock = time.perf_counter
    if given.device == "cpu":
        torch.set_num_threads(1)
        clock = time.process_time
    with tempfile.TemporaryDirectory() as folder:
        path = sb.generate(sb.equation("phi41"), n=given.samples + 2 * BATCH, out=folder, device=given.device)
        task = sb.Task(path, split=f"{given.samples}:{BATCH}:{BATCH}")
        options = options_for(given.model, task.setting, batch_size=BATCH, epochs=10**6, early_stop_patience=0)
        rows = []
        epochs: dict[str, Callable[[], object]] = {}
        for name, graph in (("bare", None), ("ours, eager", False), ("ours, graphs", True)):
            if graph and not given.device.startswith("cuda"):
                continue
            model = identify(given.model, task, {}, {}).build().to(given.device)
            train, val = (prepare_part(model, part) for part in (task.train, task.val))
            model.calibrate(train.features, train.target)
            fit = Fit(model, train, val, options, graph=graph)
            epochs[name] = bare_epoch(model, train, val) if graph is None else fit.run_epoch
        least = dict.fromkeys(epochs, math.inf)
        for _ in range(given.rounds + 1):  # the first round is the warm-up
            for name, work in epochs.items():
                start = clock()
                work()  # both end by reading a number, that is, when the device is done
                least[name] = min(least[name], clock() - start)
        for name, seconds in least.items():
            rows.append({"loop": name, "ms per epoch": 1e3 * seconds, "of bare": seconds / least["bare"]})
    print(f"{given.model}, {given.samples} samples, batch {BATCH}, {given.device}")
    print_table(rows)


if __name__ == "__main__":
    main()
