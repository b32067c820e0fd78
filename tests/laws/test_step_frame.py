"""The moving frame of `step`: where the mean of u carries the field along, the fit finds its velocity and the step."""

from __future__ import annotations

import math

import pytest
import torch

import spdebench as sb
from spdebench.grids import Grid
from spdebench.models.step import StepModel
from spdebench.models.step.choose import Search, Sizes, error
from spdebench.models.step.fit import Plan, fit
from spdebench.models.step.frame import Frame
from spdebench.models.step.report import shifts_in_words
from spdebench.models.step.rollout import Paths, named
from spdebench.tasks import TaskSpec

KDV = {"noise": "cylindrical", "points": 64, "truncation": 32, "frames": 16, "steps": 16, "horizon": 0.16, "sigma": 0.3}


@pytest.fixture(scope="module")
def kdv() -> tuple[sb.Equation, Paths, Paths]:
    """KdV with noise whose mean turns the mode k = 16 by about a radian in each step; 60 samples, and 8 others."""
    eq = sb.equation("kdv", **KDV)
    out = sb.simulate(eq, 0, range(68))
    return eq, Paths(out.u[:60], out.dw[:60]), Paths(out.u[60:], out.dw[60:])


@pytest.fixture(scope="module")
def model(kdv) -> StepModel:
    eq, train, val = kdv
    made = StepModel(TaskSpec().setting(eq), StepModel.config_class(stages=1, history=0))
    made.calibrate_stream([({"dw": train.dw}, train.u)], [({"dw": val.dw}, val.u)])
    return made


def velocity(eq: sb.Equation, paths: Paths) -> tuple[float, ...]:
    return Search(eq.grid, paths, paths, Sizes.of(eq.grid, paths.frames, 10_000)).velocity


def fitted(eq: sb.Equation, train: Paths, val: Paths, plan: Plan) -> float:
    """The error of this plan."""
    return fit(plan, eq.grid, train, 10_000, train.range(eq.grid), lambda made: error(made, val), (1e-12,)).error


def test_velocities_are_those_of_the_equation(kdv):
    """6 u u_x moves the field by -6 dt (<u> + sigma <dw>): noise is an impulse at the start of a step."""
    eq, train, _ = kdv
    a, b = velocity(eq, train)
    dt = KDV["horizon"] / KDV["frames"]
    assert a == pytest.approx(-6 * dt, rel=0.01)
    assert b == pytest.approx(-6 * dt * KDV["sigma"], rel=0.02)
    assert shifts_in_words((-0.06, 0.006, 1.0, -2.0)) == ["-0.06 <u> + 0.006 <dw> along x", "1 <u> - 2 <dw> along y"]


def test_the_moving_frame_is_chosen_and_far_better_than_rest(kdv, model):
    assert "moving frame" in model.plan.label
    assert model.description["error"] < 0.1 * fitted(*kdv, Plan())


def test_earlier_frames_are_moved_to_the_present_one(kdv, model):
    """Earlier frames help: if they were not moved, products with them would be of fields in different places."""
    alone, two = (fitted(*kdv, Plan(velocity=model.plan.velocity, history=h)) for h in (0, 2))
    assert two < alone


@pytest.mark.parametrize("name", ["phi41", "kpz"])
def test_other_equations_stay_at_rest(name):
    eq = sb.equation(name, points=32, truncation=16, sigma=1.0)
    out = sb.simulate(eq, 0, range(20))
    assert velocity(eq, Paths(out.u, out.dw)) == ()


def test_a_shift_moves_a_field_in_two_dimensions():
    """A trigonometric polynomial at shifted points; the shift is a <u> + b <dw> along each axis."""
    grid = Grid.unit((16, 12), dim=2)
    x, y = grid.mesh()

    def wave(dx: float, dy: float) -> torch.Tensor:
        return (0.5 + torch.sin(2 * math.pi * (x - dx)) * torch.cos(4 * math.pi * (y - dy)))[None]

    frame = Frame(grid, torch.tensor([[0.1, 0.0], [0.3, 2.0]], dtype=torch.float64))
    u, dw = grid.transform(wave(0, 0)), grid.transform(torch.full((1, 16, 12), 0.05, dtype=torch.float64))
    shift = frame.shift(u, dw)
    torch.testing.assert_close(shift, torch.tensor([[0.05, 0.25]], dtype=torch.float64))
    torch.testing.assert_close(grid.inverse(frame.move(u, shift)), wave(0.05, 0.25))
    moved = frame.aligned(named([u, u, u], [dw, dw, dw]))
    torch.testing.assert_close(grid.inverse(moved["u2"]), wave(0.1, 0.5))
    torch.testing.assert_close(moved["u"], u)


def test_a_fitted_frame_is_kept_in_the_file_and_serves_another_grid(kdv, model):
    """Saved and loaded, the prediction has the same bits; on twice the points it is the same path within 10 %."""
    eq, _, val = kdv
    copy = StepModel(model.setting, model.config)
    copy.load_state_dict(model.state_dict())
    v = model({"u0": val.u[:, 0], "dw": val.dw})
    assert copy.plan.velocity == model.plan.velocity and torch.equal(copy({"u0": val.u[:, 0], "dw": val.dw}), v)
    fine = eq.grid.with_points(128)
    double = [fine.inverse(eq.grid.resize(eq.grid.transform(f.double()), fine)) for f in (val.u[:, 0], val.dw)]
    other = model({"u0": double[0], "dw": double[1]})[..., ::2]
    assert float((other - v).norm() / v.norm()) < 0.1


def test_a_file_with_velocities_of_another_grid_is_refused(model):
    text = bytes(model.found.tolist()).replace(b'"velocity": [', b'"velocity": [1.0, ')
    forged = {**model.state_dict(), "found": torch.frombuffer(bytearray(text), dtype=torch.uint8)}
    with pytest.raises(RuntimeError, match="3 velocities of a moving frame"):
        StepModel(model.setting, model.config).load_state_dict(forged)
