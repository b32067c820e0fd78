"""The count, the formula, points that never vary, t_0, learning."""

from __future__ import annotations

import pytest
import torch
from overfit import calibrated, overfit, used

from spdebench import build
from speed.models.base import phi41_setting


def test_the_papers_count():
    assert build("deeponet", phi41_setting()).counts() == {"parameters": 4_329_472, "real": 4_329_472}
    assert build("deeponet", phi41_setting("u0+xi")).counts()["parameters"] == 4_329_472 + 128 * 512
    wide = build("deeponet", phi41_setting(), width=128, branch_depth=4)  # the paper's at sigma = 1
    assert wide.counts()["parameters"] == 6401 * 128 + 3 * 128 + 2 * 128 * 129 + 3 * 128 * 129


def test_the_formula_at_one_point():
    model, features, u = calibrated("deeponet", inputs="u0+xi", width=16)
    n, j = 4, 3  # frame and place
    z, values = features["inputs"], u[:, n, j]
    branch = model.branch(torch.nan_to_num((z - z.mean(0)) / z.std(0, correction=0)))  # u0(0) = 0, always
    place = 12**0.5 * (torch.tensor([n / 10, j / 16]) - 0.5)
    expected = values.mean() + values.std(correction=0) * (branch @ model.trunk(place))
    torch.testing.assert_close(model(features)[:, n, j], expected, atol=1e-4, rtol=1e-4)


def test_the_first_frame_is_the_initial_datum():
    for inputs in ("xi", "u0+xi"):
        model, features, u = calibrated("deeponet", inputs=inputs, width=8)
        assert torch.equal(model(features)[:, 0], u[:, 0])


def test_points_that_never_vary_are_predicted_by_their_mean():
    model, features, u = calibrated("deeponet", width=8)
    u, z = u.clone(), features["inputs"].clone()
    u[:, :, 0] = 0.25
    z.unflatten(1, u[:, 1:].shape[1:])[:, :, 0] = 1.0
    model.calibrate({"inputs": z, "u0": features["u0"]}, u)
    out = model({"inputs": z, "u0": features["u0"]})
    assert torch.equal(out[:, 1:, 0], u[:, 1:, 0]) and out.isfinite().all()
    assert out[:, 1:, 1].std() > 0


@pytest.mark.parametrize("inputs", ["xi", "u0+xi"])
def test_every_parameter_is_used_and_so_is_every_input(inputs):
    model, features, _ = calibrated("deeponet", inputs=inputs, width=16)
    assert all(used(model, features).values())
    z = features["inputs"].clone().requires_grad_()
    later = model({**features, "inputs": z})[:, 1:]
    later.square().sum().backward()
    assert z.shape[1] == 10 * 16 + 16 * (inputs == "u0+xi")
    varies = features["inputs"].std(0) > 1e-6  # all but u0 where the perturbation, a sine series, vanishes
    assert varies[: 10 * 16].all() and ((z.grad != 0).any(0) == varies).all()


@pytest.mark.parametrize("inputs", ["xi", "u0+xi"])
def test_it_fits_one_batch(inputs):
    model, features, u = calibrated("deeponet", inputs=inputs, width=96)
    assert overfit(model, features, u, 100, 5e-3) < 0.05
