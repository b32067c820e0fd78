"""Class variables that change numbers are in the hash of a dataset; those of the paper's equations are pinned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

import spdebench as sb
from spdebench.data import DatasetSpec
from spdebench.data.identity import from_dict, from_json
from spdebench.equations import KdV, Phi41, Phi42
from spdebench.equations.identity import class_record
from spdebench.grids import Grid
from spdebench.solvers import NormalForm
from spdebench.spec import canonical_json
from spdebench.tasks import Setting, TaskSpec

OF_THE_PAPER = ("kdv", "kpz", "nse", "phi41", "phi42", "phi43", "wave")


def spec_of(equation: sb.Equation) -> DatasetSpec:
    return DatasetSpec(equation=equation, n=3)


@dataclass(frozen=True, kw_only=True)
class Foreign(sb.Equation, name="foreign"):
    """An equation of others on [0, 2]."""

    formula, title = "u_t = speed u_xx + sigma xi", "Foreign"
    upper: ClassVar[float] = 2.0
    speed: ClassVar[float] = 0.5
    schemes: ClassVar = {"paper": "semi_implicit", "converged": "etdrk4"}

    def symbol(self, grid: Grid, device: torch.device | str = "cpu") -> torch.Tensor:
        return self.speed * grid.laplacian(device=device)

    def initial(
        self, grid: Grid, seed: int, samples: Sequence[int], device: torch.device | str = "cpu"
    ) -> torch.Tensor:
        return torch.zeros(len(samples), *grid.points, dtype=torch.float64)


@pytest.mark.parametrize("edition", ["paper", "converged"])
@pytest.mark.parametrize("name", OF_THE_PAPER)
def test_classes_of_the_papers_equations_add_nothing(name: str, edition: str) -> None:
    equation = sb.equation(name, edition=edition)
    assert class_record(equation) == {} and "class" not in spec_of(equation).to_dict()
    assert "class" not in (Setting.to_dict(TaskSpec().setting(equation))["equation"] or {})


@pytest.mark.parametrize(
    ("cls", "key", "value"),
    [
        (Phi41, "schemes", {"paper": "crank_nicolson", "converged": "etdrk4"}),
        (Phi41, "upper", 2.0),
        (Phi41, "multiplicative", True),
        (Phi41, "differences", False),
        (Phi42, "strided", True),
        (Phi42, "coarsens", True),
        (KdV, "order", 2),
    ],
)
def test_a_class_variable_that_changes_numbers_changes_the_hash(
    cls: type[sb.Equation], key: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = spec_of(cls())
    before, text = plain.digest, canonical_json(plain.to_dict())
    with monkeypatch.context() as patch:
        patch.setattr(cls, key, value)
        changed = spec_of(cls())
        assert changed.digest != before
        assert from_dict(changed.to_dict()).digest == changed.digest
        with pytest.raises(sb.UserError, match=f"{cls.name}: made by a class with the usual {key}"):
            from_json(text)
        kept = changed.to_dict()
    with pytest.raises(sb.UserError, match=f"made by a class with {key}=.* has the usual {key}"):
        from_dict(kept)
    assert from_json(text).digest == before


def test_other_editions_schemes_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    before = spec_of(Phi41()).digest
    monkeypatch.setattr(Phi41, "schemes", {"paper": "semi_implicit", "converged": "crank_nicolson"})
    assert spec_of(Phi41()).digest == before


def test_an_unregistered_subclass_is_not_its_parent() -> None:
    other = type("Other", (Phi41,), {"drift": lambda self, grid, device="cpu": torch.zeros_like})()
    assert spec_of(other).digest != spec_of(Phi41()).digest
    with pytest.raises(sb.UserError, match="subclass=Other"):
        from_dict(spec_of(other).to_dict())


def test_iterations_of_the_normal_form_change_the_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    before = spec_of(KdV()).digest
    monkeypatch.setattr(NormalForm, "iterations", 3)
    assert spec_of(KdV()).to_dict()["class"] == {"scheme": {"iterations": 3}}
    assert spec_of(KdV()).digest != before


def test_an_equation_of_others_states_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    found = spec_of(Foreign()).to_dict()["class"]
    assert found == {"speed": 0.5, "upper": 2.0, "schemes": {"paper": "semi_implicit"}}
    setting = TaskSpec().setting(Foreign())
    assert Setting.from_dict(setting.to_dict()) == setting
    before = spec_of(Foreign()).digest
    monkeypatch.setattr(Foreign, "speed", 1.0)
    assert spec_of(Foreign()).digest != before
    with pytest.raises(sb.UserError, match=r"speed=0.5.* speed=1.0"):
        Setting.from_dict(setting.to_dict() | {"equation": {**setting.to_dict()["equation"], "class": found}})


@pytest.mark.parametrize("record", [3, "class", ["schemes"], {"upper": 3.0}])
def test_a_hostile_record_is_one_line(record: object) -> None:
    with pytest.raises(sb.UserError) as caught:
        from_dict({**spec_of(Phi41()).to_dict(), "class": record})
    assert "\n" not in str(caught.value)
