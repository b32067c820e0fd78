"""The solver in tables: it is given what a model is given, and its record has the floor of the problem."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import spdebench as sb
from spdebench import spec
from spdebench.data import DatasetSpec
from spdebench.records import Record
from spdebench.tasks import TaskSpec
from spdebench.tasks.floor import floor
from spdebench.training.solver_row import SolverSpec, floor_of, lacks_floor, measure, outdated, with_floor

SMALL = {"points": 8, "truncation": 8, "frames": 20, "steps": 20, "horizon": 0.002}


def wanted(equation: sb.Equation, n: int = 40, **fields: int) -> SolverSpec:
    return SolverSpec(DatasetSpec(equation=equation, n=n), dataclasses.asdict(TaskSpec(**fields)))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sb.generate(sb.equation("phi42", **SMALL), n=40, out=tmp_path_factory.mktemp("data"))


@pytest.mark.parametrize(("every", "stride"), [(1, 1), (5, 1), (1, 2)])
def test_the_solver_is_given_what_a_model_is_given(file: Path, every: int, stride: int) -> None:
    dataset = sb.open_dataset(file)
    record = measure(wanted(dataset.equation, every=every, stride=stride), dataset)
    lowest = floor(dataset.equation, every=every, stride=stride, samples=range(16))
    error, found = record.value("rel_l2"), floor_of(record)
    assert error is not None and found is not None and not lacks_floor(record)
    if every == stride == 1:
        assert error < 1e-6 and found < 1e-6
    else:
        assert found == pytest.approx(lowest.value, rel=0.3) and found > 1e-3  # other samples
        assert error > 0.95 * found


def test_records_of_sub_sampled_tasks_are_measured_again_and_others_are_kept() -> None:
    eq = sb.equation("phi42")

    def first_version(asked: SolverSpec) -> str:
        return spec.digest({"solver": 1, "dataset": asked.dataset.to_dict(), "task": asked.task})

    assert wanted(eq).digest == first_version(wanted(eq))
    assert wanted(eq, every=5).digest != first_version(wanted(eq, every=5))
    assert wanted(eq, stride=2).digest != first_version(wanted(eq, stride=2))


@pytest.mark.parametrize(("name", "lacking"), [("phi41", False), ("wave", True), ("nse", True)])
def test_an_old_record_lacks_a_floor_where_storage_drops_noise(name: str, lacking: bool) -> None:
    asked = wanted(sb.equation(name))
    old = Record.from_dict(
        {
            "version": 2,
            "digest": asked.digest,
            "name": asked.name,
            "model": "solver",
            "config": {},
            "datasets": list(asked.datasets),
            "task": asked.task,
            "scores": {"rel_l2": {"value": 0.01}},
        }
    )
    assert lacks_floor(old) is lacking
    assert floor_of(old) == (None if lacking else 0.01)


def test_a_floor_is_added_without_a_file_and_old_records_of_sub_sampled_tasks_are_outdated(file: Path) -> None:
    dataset = sb.open_dataset(file)
    asked = wanted(dataset.equation, every=5)
    whole = measure(asked, dataset)
    bare = dataclasses.replace(whole, shifts={k: v for k, v in whole.shifts.items() if k != "floor"})
    assert lacks_floor(bare) and floor_of(with_floor(bare)) == floor_of(whole)
    assert not outdated(whole) and outdated(dataclasses.replace(whole, digest="0123456789"))
