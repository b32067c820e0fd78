"""The main job, small: make data, check it against its seed, say how far it is from the truth, draw it, score it.

Run by ``make demo``; writes into the folder ``demo``.
"""

from __future__ import annotations

from pathlib import Path

import torch

import spdebench as sb
from spdebench import report
from spdebench.cli.output import print_table
from spdebench.data.card import card

OUT = Path("demo")


def main() -> None:
    torch.set_num_threads(1)
    phi = sb.equation("phi41", truncation=128, sigma=1.0)
    print("1. generate: 300 samples of phi41 (sigma=1, J=128), paper edition and converged edition, on the same noise")
    paper = sb.open_dataset(sb.generate(phi, n=300, seed=0, out=OUT))
    converged = sb.open_dataset(sb.generate(phi.replace(edition="converged"), n=300, seed=0, out=OUT))

    print("2. verify: solve samples again from their seeds")
    result = sb.verify(paper)
    print(f"   {result.chunks} checksums match; {result.identical} of {result.solved} samples have the same bits")

    print("3. card: how far is the data from the truth?")
    (OUT / "card.md").write_text(card(paper, samples=8))

    print("4. plot: solution, noise, spectrum, statistics, and the paper's figure on J with the noise coupled across J")
    for kind in ("solution", "noise", "spectrum", "statistics"):
        report.save(report.KINDS[kind][0](paper), OUT / f"{kind}.png")
    report.save(report.plot_truncation(phi, n=100), OUT / "truncation.png")
    print_table(report.truncation_table(phi, n=100).to_dict("records"))

    print("\n5. evaluate: the paper's scheme as a 'prediction' of the converged solution, beside the mean predictor")
    scores = sb.evaluate(paper.u, converged.u, paper.grid, times=paper.times, metrics="paper")
    mean = converged.u.mean(0, keepdims=True).repeat(len(converged), 0)
    trivial = sb.evaluate(mean, converged.u, paper.grid, times=paper.times, metrics="paper")
    print_table([{"metric": m, "paper scheme": scores[m].value, "mean predictor": trivial[m].value} for m in scores])
    print(f"\nopen {OUT}/solution.png, {OUT}/truncation.png and {OUT}/card.md")
    print("next: .venv/bin/spdebench list    .venv/bin/spdebench show kpz    .venv/bin/spdebench generate wave -n 100")


if __name__ == "__main__":
    main()
