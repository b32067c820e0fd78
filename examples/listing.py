"""Torch data loaders from a published file and from a generated one, and a model trained on each.

The paper's listing converts a flat Parquet file to .mat arrays and cuts them by hand. Here a published file is imported
once (`spdebench data import`), and `sb.Task` splits it and makes torch datasets.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch.utils.data import DataLoader

import spdebench as sb
from spdebench.data.published import export_published, import_published


def loaders(path: Path, batch: int = 20) -> tuple[sb.Task, DataLoader, DataLoader]:
    """Torch loaders of the training and test parts; an item is a dictionary u0 (X..), dw, xi, u (T X..)."""
    task = sb.Task(path)
    return task, DataLoader(task.train, batch, shuffle=True), DataLoader(task.test, batch)


def main() -> None:
    torch.set_num_threads(1)
    phi = sb.equation("phi42", points=16, truncation=8, frames=20, steps=20, horizon=0.002)
    ours = sb.generate(phi, n=40, seed=0, out="data")

    # A published file; here we export one ourselves instead of downloading "Phi42+_reno_xi_eps_8_40.parquet".
    published = export_published(sb.open_dataset(ours), Path("data"))
    imported = import_published(published, Path("data/imported"))

    for path in (imported, ours):
        task, train, test = loaders(path)
        item = next(iter(train))
        print(f"{Path(path).name}\n  a batch: " + ", ".join(f"{k} {tuple(v.shape)}" for k, v in item.items()))
        run = sb.train("fno", task, out="runs", epochs=2, config={"width": 8, "layers": 2, "modes": (4, 4, 6)})
        seen = sum(len(batch["u"]) for batch in test)
        print(f"  fno, 2 epochs, {seen} test samples: relative L2 {run.scores['rel_l2'].value:.3f}")


if __name__ == "__main__":
    main()
