"""The samples of a file that a run has never seen, and the part of a file that a command asks for.

The noise is a function of the seed and of the sample's number. Row i of a file with the seed of the training data
therefore has the noise of row i of the training data, also with another J, sigma, edition, grid or number of samples.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spdebench.data import Dataset, open_dataset
from spdebench.data.identity import from_dict
from spdebench.errors import UserError, unknown
from spdebench.tasks import Part
from spdebench.tasks.task import PARTS
from spdebench.training.run import Run
from spdebench.training.scoring import part_for

CHOICES = (*PARTS, "unseen", "all")
"""Names of parts: those of the run's split, all samples that it neither trained nor validated on, and all samples."""


def run_part(run: Run, dataset: Dataset, name: str = "", within: tuple[int, int] | None = None) -> Part:
    """The part called ``name`` of a file, as inputs of a run; ``within`` keeps the rows START..STOP of the file only.

    Without a name it is a part that the run never saw: ``test`` if the file is split like the training data, all of the
    file if it has other noise, and otherwise the rows outside of the run's training and validation parts.
    """
    if name and name not in CHOICES:
        raise unknown("part", name, CHOICES)
    total, split = len(dataset), _split(run, dataset)
    seen = np.union1d(split["train"], split["val"])
    if not len(seen):
        name = name or "all"
        rows = run.spec.task_spec.rows(total)[name] if name in PARTS else np.arange(total)
    else:
        name = name or ("test" if len(split["test"]) and _split_alike(run, dataset) else "unseen")
        if name == "all":
            raise UserError(
                f"{len(seen)} of the {total} samples of {dataset.path.name} were used to train or validate "
                f"{run.name}; leave out --part for those that it never saw, or name one of {', '.join(CHOICES[:-1])}"
            )
        rows = np.setdiff1d(np.arange(total), seen) if name == "unseen" else split[name]
    if within is not None:
        rows = rows[(within[0] <= rows) & (rows < within[1])]
    if not len(rows):
        where = f"rows {within[0]}:{within[1]} of " if within else ""
        raise UserError(f"{where}{dataset.path.name} have no sample of the part '{name}' of {run.name}")
    return part_for(run, dataset, name, rows=rows)


def own_test_part(run: Run, file: Path | None, needed_for: str) -> Part:
    """The test part of the run's own task, from its dataset ``file``; other files of a mixture are expected next to it.

    Without ``file`` the datasets are looked for in the folder ``data``; ``needed_for`` says in an error what for.
    """
    identities, task = run.spec.datasets, run.spec.task_spec
    folder = file.parent if file else Path("data")
    names = [None if "published" in each else from_dict(each).file_name for each in identities]
    files = [file] if file and len(names) == 1 else [folder / name if name else None for name in names]
    datasets = []
    for identity, path, name in zip(identities, files, names, strict=True):
        if path is None or not path.is_file():
            raise UserError(f"{needed_for} needs the run's dataset; give it with --truth {name or 'FILE'}")
        datasets.append(open_dataset(path))
        if datasets[-1].identity != identity:
            raise UserError(f"{path} is not the dataset of {run.name}; give that one with --truth {name or 'FILE'}")
    known = () if run.task_setting.equation is None else (run.task_setting.equation,)
    equations = known if datasets[0].imported else tuple(d.equation for d in datasets)
    rows = [task.rows(len(d))["test"] for d in datasets]
    return Part("test", datasets, rows, every=task.every, stride=task.stride, equations=equations)


def describe(part: Part) -> str:
    """``test part, 6 of 40 samples, which the run never saw``."""
    said = {"train": "on which the run was trained", "val": "by which the run's weights were chosen"}
    total = len(part.datasets[0])
    what = f"all {total} samples" if part.name == "all" else f"{part.name} part, {len(part)} of {total} samples"
    return f"{what}, {said.get(part.name, 'which the run never saw')}"


def _related(run: Run, dataset: Dataset) -> list[int]:
    """The numbers of samples of those training datasets that have the noise of this file."""
    known = run.spec.datasets
    if dataset.imported:
        return [len(dataset) for each in known if each == dataset.identity]
    return [int(each["n"]) for each in known if "published" not in each and each["seed"] == dataset.spec.seed]


def _split_alike(run: Run, dataset: Dataset) -> bool:
    return all(n == len(dataset) for n in _related(run, dataset))


def _split(run: Run, dataset: Dataset) -> dict[str, np.ndarray]:
    """Rows of this file in each part of the run; empty if the file has other noise. No row is in two parts."""
    out = {name: np.array([], dtype=np.int64) for name in PARTS}
    for n in _related(run, dataset):
        for name, rows in run.spec.task_spec.rows(n).items():
            out[name] = np.union1d(out[name], rows[rows < len(dataset)])
    out["val"] = np.setdiff1d(out["val"], out["train"])
    out["test"] = np.setdiff1d(out["test"], np.union1d(out["train"], out["val"]))
    return out
