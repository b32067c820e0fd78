"""A small complete example: generate data, check and draw them, train models and baselines, score them, write a page.

``make demo`` runs it. It writes to the folder ``demo``, and a second call continues from the files there.
"""

from __future__ import annotations

from pathlib import Path

import torch

import spdebench as sb
from spdebench import report
from spdebench.cli.output import print_table
from spdebench.engines import keep_freed_memory
from spdebench.metrics import PAPER
from spdebench.records import store as records
from spdebench.report.card import card
from spdebench.report.site import build_site

OUT = Path("demo")
MODELS = {
    "mean": ({}, {}),
    "linear": ({"kernel": "exact"}, {}),
    "trees": ({"kernel": "exact"}, {}),
    "step": ({}, {}),
    "fno": ({"width": 16, "layers": 2, "modes": (16, 9)}, {"epochs": 15, "learning_rate": 4e-3}),
    "nspde": ({"hidden": 16, "modes": (32, 25)}, {"epochs": 25, "learning_rate": 5e-3}),
    "dlr-net": ({"kernel": "exact"}, {"epochs": 15, "learning_rate": 1e-2, "batch_size": 20}),
}


def main() -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    phi = sb.equation("phi41", sigma=1.0, points=64, truncation=64, frames=25, steps=25)
    print("1. generate: 400 samples of phi41 (sigma=1, J=64) on 64 points")
    path = sb.generate(phi, n=400, seed=0, out=OUT / "data")
    data = sb.open_dataset(path)

    print("2. verify: solve samples again from their seeds and compare the bits")
    result = sb.verify(data)
    print(f"   {result.chunks} checksums match; {result.identical} of {result.solved} samples have the same bits")

    print("3. card and pictures: describe the data and measure the error of the solver")
    path.with_suffix(".md").write_text(card(data, samples=8))
    for kind in ("solution", "statistics"):
        report.save(report.KINDS[kind][0](data), OUT / f"{kind}.png")

    print("4. train: three networks and four baselines; 280 training, 60 validation and 60 test samples")
    task = sb.Task(data)
    rows = []
    for name, (config, options) in MODELS.items():
        run = sb.train(name, task, config=config, out=OUT / "runs", **options)
        records.add(OUT / "results", run.record)
        seconds = run.record.training_seconds
        print(f"   {name:<8} {run.record.real_parameters:>9} parameters  {seconds:6.1f} s", flush=True)
        rows.append({"model": name, **{m: run.scores[m].value for m in PAPER}})

    print("\n5. evaluate: the paper's metrics on the test samples; smaller is better")
    print_table(rows)
    print("\n6. report: a web site with a leaderboard, the dataset and the runs")
    index = build_site(OUT / "results", OUT / "site", runs=OUT / "runs", data=OUT / "data")
    print("\nWhat to look at:")
    print(f"   {index}: the leaderboard, and a page for each run with its learning curve and errors")
    print(f"   {OUT}/solution.png and {OUT}/statistics.png: samples of the data, and their moments in space and time")
    print(f"   {path.with_suffix('.md')}: what the data are, and the error of the solver that made them")
    print("A network that does not beat 'mean' and 'linear' in the table above has learned nothing useful.")
    print("Next: source .venv/bin/activate, then spdebench list, spdebench show nspde, spdebench table phi41-periodic")


if __name__ == "__main__":
    main()
