"""`spdebench bench` and the table of GPU kernels."""

from __future__ import annotations

import csv
import math

import pytest
import typer

from command_line import call
from spdebench.cli import bench
from spdebench.errors import UserError
from spdebench.models import MODELS
from speed import kernels, train
from speed.models import step


def test_kernels_are_found_by_running_a_model() -> None:
    assert kernels.kernels_of("gt", batch=1) == ["attention", "linear", "mlp", "norm"]
    assert kernels.kernels_of("deeponet", batch=1) == []


def test_a_kernel_that_does_the_work_of_another_is_counted_alone() -> None:
    """The decoder of FNO is one kernel (mlp); its two linear layers have kernels too, which then do not run."""
    assert "linear" not in kernels.kernels_of("fno", batch=1)


def test_measured_gains_are_of_models_that_exist() -> None:
    with kernels.MEASURED.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["model"] for row in rows} <= set(MODELS) and all(row["source"] for row in rows)
    assert all(float(row["compiled_ms"]) > float(row["kernels_ms"]) for row in rows)


def test_the_documentation_quotes_the_measured_speed_of_training() -> None:
    root = kernels.MEASURED.parents[2]

    def measured(name: str) -> dict[str, dict[str, str]]:
        with (root / "benchmarks/results" / name).open(newline="") as file:
            return {row["model"]: row for row in csv.DictReader(file)}

    rows = measured("train-h200.csv")
    together, alone = (
        train.geometric_mean([float(row["plain"]) / float(row[key]) for row in rows.values()])
        for key in ("together", "alone")
    )
    compiled = [row for row in (*rows.values(), *measured("train-compiled-h200.csv").values()) if row["compiled"]]
    assert sorted(rows) == sorted(train._trained()) and len(compiled) == 6
    quoted = [
        f"{together:.1f} times as many",
        f"{alone:.1f} times as many",
        *(f"{float(row['plain']) / float(row['compiled']):.2f}" for row in compiled),
    ]
    for name in ("benchmarks/README.md", "docs/training.md"):
        text = " ".join((root / name).read_text().split())
        assert not [number for number in quoted if number not in text], name


def test_without_the_repository_bench_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(bench, "FOLDER", tmp_path)
    with pytest.raises(UserError, match="clone the repository"):
        bench.bench(typer.Context(typer.main.get_command(typer.Typer(callback=lambda: None))))


def test_the_whole_fit_of_step_is_timed_on_the_papers_parts() -> None:
    """3 of 20 samples are predicted; the time of the solver for the 20 stands beside it."""
    case = step.case("phi41", samples=20)
    predicted, solved = case.ours(), case.plain()
    assert tuple(predicted.shape) == (3, 51, 128) and len(solved.u) == 20
    assert float((predicted - solved.u[17:]).norm() / solved.u[17:].norm()) < 1e-5
    assert case.once and case.threads == 1 and "limit 15 s" in case.note


def test_training_bench_measures_only_models_of_paths(capsys):
    assert "flow-fno" not in train._trained() and "fno" in train._trained()
    assert call("bench", "train", "flow-fno", "--device", "cpu", "-n", 100) == 2
    assert "choose among" in capsys.readouterr().err


def test_a_model_that_torch_compile_rejects_has_no_compiled_time(monkeypatch):
    def refuse(*_args, **_options):
        raise RuntimeError("not supported\nand more")

    monkeypatch.setattr(train, "_plain", refuse)
    with pytest.warns(UserWarning, match="torch.compile fails on fno: not supported"):
        assert math.isnan(train._compiled("fno", None, "cpu"))
