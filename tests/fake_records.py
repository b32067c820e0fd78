"""Run records as training writes them, made up: four models by three seeds, two baselines and the solver, on phi41."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from spdebench import spec
from spdebench.data import DatasetSpec
from spdebench.equations import equation
from spdebench.errors import UserError
from spdebench.records import Record
from spdebench.tasks import TaskSpec

SIZES = {"points": 16, "frames": 10, "steps": 10}
ERRORS = {"fno": 0.03, "nspde": 0.012, "wno": 0.045, "deeponet": 0.16, "mean": 0.6, "linear": 0.11}
TIMES = {"fno": 0.2, "nspde": 0.5, "wno": 0.31, "deeponet": 0.05, "mean": 0.002, "linear": 0.01, "solver": 0.8}
BASELINES = ("mean", "linear")
PROVENANCE = {
    "spdebench": "0.1.0",
    "torch": "2.13.0",
    "python": "3.12.3",
    "device": "cpu",
    "machine": "x86_64",
    "commit": "0123abc",
    "started": "2026-01-02T03:04:05",
}


def dataset(truncation: int, kappa: float, n: int = 40, **fields: Any) -> DatasetSpec:
    return DatasetSpec(equation=equation("phi41", truncation=truncation, kappa=kappa, **SIZES, **fields), n=n)


def scores(error: float, rng: np.random.Generator) -> dict[str, Any]:
    def score(value: float) -> dict[str, float]:
        return {"value": value, "low": 0.95 * value, "high": 1.06 * value}

    found = {"rel_l2": error, "mse": error**2, "w12_paper": 3 * error, "corr": 0.4 * error, "sigw1": 0.2 * error}
    each = [float(f"{x:.4g}") for x in error * np.exp(0.2 * rng.standard_normal(6))]
    metrics = {name: score(value * float(np.exp(0.01 * rng.standard_normal()))) for name, value in found.items()}
    return {"scores": {**metrics, "std_ratio": score(1 - error)}, "samples": {"rel_l2": each}}


def record(model: str, data: DatasetSpec, seed: int = 0, /, **changes: Any) -> Record:
    """One record; ``changes`` replace fields of its written form."""
    return Record.from_dict(written(model, data, seed, **changes))


def written(model: str, data: DatasetSpec, seed: int = 0, /, **changes: Any) -> dict[str, Any]:
    """What version 1 wrote of such a record."""
    baseline = model in BASELINES
    task = dataclasses.asdict(TaskSpec(inputs="u0+xi" if data.equation.kappa else "xi"))
    options = {"epochs": 0 if baseline else 50, "batch": 20, "lr": 0.001, "seed": seed}
    config = {} if baseline else {"width": 32, "modes": [8, 6], "form": "default"}
    identity = {"model": model, "config": config, "datasets": [data.to_dict()], "task": task, "options": options}
    digest = spec.digest(identity | {"version": 1})
    rng = np.random.default_rng(int(digest, 16))
    error = ERRORS.get(model, 0.1) * (1 + 0.2 * (data.equation.truncation == 16)) * np.exp(0.05 * rng.standard_normal())
    return {
        "version": 1,
        "digest": digest,
        "name": f"{model}-phi41-{digest}",
        **identity,
        "counts": {"parameters": 0 if baseline else 1234567, "real": 0 if baseline else 2345678},
        "val": None if baseline else 0.9 * float(error),
        "best_epoch": 0 if baseline else 41,
        "epochs": 0 if baseline else 50,
        **scores(float(error), rng),
        "shifts": {},
        "inference_ms": TIMES.get(model, 0.1),
        "inference_batch": 6,
        "training_seconds": 0.0 if baseline else 93.5,
        "peak_memory_mb": 210.0,
        "provenance": PROVENANCE,
        **changes,
    }


def solver_record(data: DatasetSpec, **changes: Any) -> Record:
    task = dataclasses.asdict(TaskSpec(inputs="u0+xi" if data.equation.kappa else "xi"))
    digest = spec.digest({"solver": 1, "dataset": data.to_dict(), "task": task})
    rng = np.random.default_rng(int(digest, 16))
    own = {
        "digest": digest,
        "name": f"solver-phi41-{digest}",
        "model": "solver",
        "options": {},
        **scores(1e-7, rng),
        "shifts": {"finer": scores(0.02, rng), "independent": scores(1.4, rng)},
        "inference_ms": TIMES["solver"],
    }
    return record("mean", data, **own | changes)


def fake_records() -> dict[str, Record]:
    """By digest: 60 records on four problems; one of them carries a shift to the other J."""
    found = []
    for kappa in (0.0, 0.1):
        for truncation in (8, 16):
            data = dataset(truncation, kappa)
            models = [model for model in ERRORS if model not in BASELINES]
            found += [record(model, data, seed) for model in models for seed in range(3)]
            found += [record(model, data) for model in BASELINES]
            found.append(solver_record(data))
    other = dataset(16, 0.0).to_dict()
    shift = {"dataset": other, "part": "test", "n": 6, **scores(0.2, np.random.default_rng(0))}
    first = record(found[0].model, dataset(8, 0.0), shifts={"J=16": shift})
    return {entry.digest: entry for entry in (first, *found[1:])}


EVIL = "<script>alert('x')</script>\"'><img src=x onerror=alert(1)> & ../../evil ${7*7} {{7*7}} $\\frac{"


def hostile_records() -> dict[str, Record]:
    """Records whose words try to become markup or paths; those that are no records are refused in one line."""
    found: dict[str, Record] = {}
    for digest, values in _hostile().items():
        try:
            found[digest] = Record.from_dict(values)
        except UserError as error:
            assert len(str(error)) < 200 and str(error).isprintable()
    return found


def _hostile() -> dict[str, Any]:
    data = dataset(8, 0.0)
    identity = {**data.to_dict(), "equation": EVIL, "fields": {"boundary": EVIL, "truncation": EVIL, "sigma": [EVIL]}}
    evil = written("fno", data)
    evil |= {"digest": "../../../etc/passwd", "name": EVIL, "model": EVIL, "datasets": [identity, {EVIL: EVIL}]}
    evil |= {
        "config": {EVIL: {EVIL: [EVIL, None]}},
        "options": {"seed": EVIL, EVIL: "\ud800\x00"},
        "task": {"inputs": EVIL},
    }
    evil |= {
        "provenance": {"device": EVIL},
        "shifts": {EVIL: {"dataset": {"equation": EVIL}, "scores": evil["scores"]}},
    }
    evil["scores"] = {EVIL: {"value": 0.1, "low": None}, "rel_l2": {"value": float("inf")}}
    on_known = written(EVIL, data, 1)
    on_known |= {"digest": "/abs/../path", "inference_ms": 1.0}
    imported = {"published": {"file": EVIL, "tags": EVIL}, "grid": {"boundary": EVIL}, "times": [0, 1]}
    broken = {
        "a" * 10: {"digest": "a" * 10},
        "b" * 10: dict.fromkeys(written("fno", data), EVIL),
        "c" * 10: ["not", "a", "record"],
        "d" * 10: written("fno", data) | {"datasets": [imported], "scores": {"rel_l2": {"value": None}}},
        "e" * 10: written("fno", data) | {"datasets": 3, "task": None, "options": [], "counts": {"parameters": EVIL}},
        "f" * 10: written("fno", data) | {"val": float("nan"), "inference_ms": 10**400, "epochs": "0"},
    }
    return {str(evil["digest"]): evil, str(on_known["digest"]): on_known, **broken}
