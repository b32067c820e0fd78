"""Hashes of specs stay what they are: committed records, file names and run folders depend on them."""

from __future__ import annotations

import pytest

import spdebench as sb
from spdebench import spec
from spdebench.data import DatasetSpec
from spdebench.paper.layout import has_kernel
from spdebench.tasks import TaskSpec
from spdebench.training.identity import plan
from spdebench.training.solver_row import SolverSpec

DATASETS = {
    "allen_cahn": ("85721113e2", "4f7b08ddf2"),
    "burgers": ("ffdb732251", "a206f8f0ef"),
    "heat": ("fac31b203b", "48a0e2805e"),
    "kdv": ("40a6ac6cf9", "35526af812"),
    "kpz": ("ea5fbab890", "c55f3ca31c"),
    "ks": ("d97bd1883b", "cc7e589ac5"),
    "nse": ("8cb5e5e912", "e451aa320b"),
    "phi41": ("e5334896aa", "b3b72f52e8"),
    "phi42": ("dc2de05555", "16038f59e3"),
    "phi43": ("116dc3ed09", "5e460faa23"),
    "wave": ("6c13063c40", "a80b62ba8a"),
}
"""Equation -> digest of 1200 samples with the fields of the paper's tables, editions paper and converged."""
RUNS = {
    "climatology": "ca3e368657",
    "deeponet": "7b85ce2989",
    "dlr-net": "3653650f61",
    "flow-fno": "2bda345d16",
    "fno": "127b23f158",
    "gt": "4751a304a3",
    "linear": "2fc0367cd5",
    "mean": "f85df5dd11",
    "ncde": "905004040a",
    "ncde-fno": "a092ccde65",
    "nors": "7bebb28f58",
    "nrde": "977ca620ec",
    "nspde": "573984e28b",
    "nspde-s": "44ac0c189a",
    "step": "501d438327",
    "trees": "9402a88855",
    "wno": "015a9a749a",
}
"""Model -> digest of its run on phi41, with the split and the kernel of the paper's tables."""
SPLIT, KERNEL = {"split": "70:15:15"}, {"kernel": "generator"}
PAPER = {"nse": {"spectrum": "paper"}, "kpz": {"renormalisation": "paper"}}
"""Fields that the committed runs name; the defaults are others."""


@pytest.mark.parametrize("name", DATASETS)
def test_the_hash_of_a_dataset_is_pinned(name: str) -> None:
    equation = sb.equation(name, **PAPER.get(name, {}))
    specs = [DatasetSpec(equation=e, n=1200) for e in (equation, equation.replace(edition="converged"))]
    assert tuple(spec.digest for spec in specs) == DATASETS[name]


@pytest.mark.parametrize("model", RUNS)
def test_the_hash_of_a_run_is_pinned(model: str) -> None:
    assert plan(model, sb.equation("phi41"), SPLIT, KERNEL if has_kernel(model) else {}).digest == RUNS[model]


def test_the_hash_of_the_solver_row_and_the_file_name_are_pinned() -> None:
    dataset = DatasetSpec(equation=sb.equation("phi41"), n=1200)
    assert SolverSpec(dataset, spec.to_dict(TaskSpec(**SPLIT))).digest == "3845aec5d0"
    assert dataset.file_name == "phi41-xi-periodic-cyl-fourier-J128-s0.1-paper-n1200-seed0-e5334896aa.parquet"


def test_every_built_in_equation_and_model_has_a_pinned_hash() -> None:
    ours = {name for name in sb.EQUATIONS if sb.EQUATIONS[name].__module__.startswith("spdebench.")}
    assert ours == set(DATASETS)
    assert {name for name in sb.MODELS if sb.MODELS[name].__module__.startswith("spdebench.")} == set(RUNS)
