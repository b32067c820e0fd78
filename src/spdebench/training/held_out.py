"""The samples of a file that a run has not been trained or validated on, and the part of a file that a user asks for.

`tasks.split.rows_in` finds these rows from the seeds of the files and the numbers of their samples.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spdebench.data import Dataset, open_dataset
from spdebench.data.identity import from_dict
from spdebench.errors import UserError, unknown
from spdebench.tasks import Part
from spdebench.tasks.split import PARTS
from spdebench.training.run import Run
from spdebench.training.scoring import part_for

CHOICES = (*PARTS, "unseen", "all")
"""Names of parts: those of the run's split, all samples that it neither trained nor validated on, and all samples."""


def run_part(run: Run, dataset: Dataset, name: str = "", within: tuple[int, int] | None = None) -> Part:
    """The part called ``name`` of a file, as inputs of a run; ``within`` keeps the rows START..STOP of the file only.

    Without a name it is a part that the run never saw: all of the file if it has other noise than the training data,
    ``test`` if the run's split gives it a test part, and otherwise the rows that the run did not train or validate on.
    """
    if name and name not in CHOICES:
        raise unknown("part", name, CHOICES)
    total, found = len(dataset), run.spec.task_spec.rows_in(dataset, run.spec.datasets)
    if not len(found.seen):
        name = name or "all"
        rows = found.parts[name] if name in PARTS else np.arange(total)
    else:
        name = name or ("test" if len(found.parts["test"]) and found.alike else "unseen")
        if name == "all":
            raise UserError(
                f"{len(found.seen)} of the {total} samples of {dataset.path.name} were used to train or validate "
                f"{run.name}; leave out --part for those that it never saw, or name one of {', '.join(CHOICES[:-1])}"
            )
        rows = np.setdiff1d(np.arange(total), found.seen) if name == "unseen" else found.parts[name]
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
    noise = task.noise_column(*datasets)
    return Part("test", datasets, rows, every=task.every, stride=task.stride, equations=equations, noise=noise)


def describe(part: Part) -> str:
    """A part in words: ``test part, 6 of 40 samples, which the run never saw``."""
    said = {"train": "on which the run was trained", "val": "by which the run's weights were chosen"}
    total = len(part.datasets[0])
    what = f"{len(part)} of {total} samples"
    if part.name != "all":
        what = f"{part.name} part, {what}"
    elif len(part) == total:
        what = f"all {total} samples"
    return f"{what}, {said.get(part.name, 'which the run never saw')}"
