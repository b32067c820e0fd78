"""A run of `step` from files: streamed fit, saved and loaded, shown and drawn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import spdebench as sb
from spdebench.cli.main import app
from spdebench.models.step import StepModel
from spdebench.models.step.model import _kept
from spdebench.training import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("step")
    data = sb.generate(sb.equation("phi41", sigma=1.0, points=32, truncation=16), n=80, out=folder)
    return sb.train("step", sb.Task(data), out=folder / "runs")


def test_it_is_trained_tested_and_loaded(run: Run) -> None:
    assert run.scores["rel_l2"].value < 1e-6 and run.val is not None and run.val < 1e-6
    assert isinstance(run.model, StepModel) and run.model.plan.groups == ("powers",)
    found = run.predictions
    assert found is not None and np.isfinite(found).all()


def test_chunks_of_a_part_are_the_part(run: Run, tmp_path: Path) -> None:
    data = sb.generate(sb.equation("phi42", points=8, truncation=4, frames=20, steps=20), n=30, out=tmp_path)
    part = sb.Task(data, every=5).val
    chunks = list(part.chunks())
    assert part.reads == 0  # nothing is kept
    assert torch.equal(torch.cat([u for _, u in chunks]), part.u)
    assert torch.equal(torch.cat([batch.dw for batch, _ in chunks]), part.dw)
    assert torch.equal(torch.cat([batch.u0 for batch, _ in chunks]), part.u0)


def test_three_samples_are_kept_however_large_they_are() -> None:
    """Also where each of them is a chunk of its own; a fit needs more than one path."""
    chunks = [({"dw": torch.zeros(1, 3, 4)}, torch.full((1, 3, 4), float(k))) for k in range(6)]
    each = 2 * 4 * 3 * 4
    for most, count in ((1, 3), (each, 3), (4 * each, 4), (100 * each, 6)):
        kept = _kept(chunks, most)
        assert kept is not None and kept.u[:, 0, 0].tolist() == list(range(count)) and len(kept.dw) == count


def test_chunks_of_a_mixture_alternate_between_its_datasets(tmp_path: Path) -> None:
    """A fit that keeps the first samples of a part only sees every dataset of a mixture."""
    fields = {"points": 16, "frames": 5, "steps": 5}
    paths = [sb.generate(sb.equation("phi41", truncation=j, **fields), n=30, out=tmp_path) for j in (4, 8)]
    part = sb.Task(paths).train
    (batch, u), *rest = part.chunks()
    assert not rest and batch.source is not None
    assert batch.source.tolist() == [0, 1] * (len(part) // 2)
    order = batch.source.argsort(stable=True)
    for found, whole in ((u, part.u), (batch.dw, part.dw), (batch.u0, part.u0)):
        assert torch.equal(found[order], whole)


def test_show_prints_the_coefficients_and_draws_them(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / "coefficients.png"
    text = CliRunner().invoke(app, ["show", str(run.path), "--out", str(picture)]).output
    assert "u, dw, 1; powers; pointwise products" in text and "generator" in text
    assert picture.stat().st_size > 10_000
    rows = json.loads(CliRunner().invoke(app, ["show", str(run.path), "--json"]).output)["coefficients"]
    first = next(row for row in rows if (row["term"], row["k"]) == ("u^3", 1))
    assert float(first["value"]) == pytest.approx(float(first["generator"]), rel=0.01)


def test_a_wrong_plan_in_a_file_is_refused(run: Run) -> None:
    state = dict(run.model.state_dict())
    state["weights"] = state["weights"][:-1]
    with pytest.raises(RuntimeError, match="coefficients"):
        run.spec.build().load_state_dict(state)


@pytest.mark.parametrize(
    "plan", [{"stages": 0, "history": 10**12}, {"stages": 10**9}, {"groups": ["none"]}, {"groups": 3}, {"other": 1}, []]
)
def test_a_hostile_plan_in_a_file_is_refused_at_once(run: Run, plan: object) -> None:
    assert isinstance(run.model, StepModel)
    text = json.dumps({**run.model.description, "plan": plan}).encode()
    state = {**run.model.state_dict(), "found": torch.frombuffer(bytearray(text), dtype=torch.uint8)}
    with pytest.raises(RuntimeError, match="do not fit what was chosen"):
        run.spec.build().load_state_dict(state)
