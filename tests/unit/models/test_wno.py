"""The count, the plain formulation as oracle, levels that fit the grid, scales and the form without, learning."""

from __future__ import annotations

import pytest
import torch
from overfit import calibrated, overfit, tiny, used

from spdebench import UserError, build
from spdebench.models.wno import WNO
from speed.models.base import phi41_setting
from speed.models.wno import PlainWNO


def test_the_papers_count():
    assert build("wno", phi41_setting()).counts() == {"parameters": 3_844_161, "real": 3_844_161}
    assert build("wno", phi41_setting(), form="published").counts()["parameters"] == 3_844_161
    assert build("wno", phi41_setting("u0+xi")).counts()["parameters"] == 3_844_161 + 32


@pytest.mark.parametrize(
    "config", [{"width": 5, "layers": 2}, {"width": 4, "layers": 1, "wavelet": "haar", "level": 3}]
)
def test_the_same_function_as_the_plain_formulation(config):
    model, features, _ = calibrated("wno", **config)
    assert isinstance(model, WNO)
    for layer in model.layers:
        torch.nn.init.normal_(layer.weight, std=0.3)
    torch.testing.assert_close(model(features), PlainWNO(model)(features["dw"]), atol=1e-5, rtol=1e-5)


def test_a_recommended_level_is_cut_and_a_given_one_must_fit():
    setting = tiny()[0]
    assert build("wno", setting).config.level == 3  # 16 points, db6
    assert build("wno", setting, wavelet="haar").config.level == 4
    assert build("wno", setting, level=2).config.level == 2
    with pytest.raises(UserError, match=r"level 4 of db6 does not fit 17 frames .* 16 points; .*1 to 3"):
        build("wno", setting, level=4)
    with pytest.raises(UserError, match="shorter wavelet"):
        build("wno", setting, padding=0, wavelet="db8")
    with pytest.raises(UserError, match="unknown wavelet"):
        build("wno", setting, wavelet="db66")


def test_predictions_follow_the_units_of_the_data():
    model, features, u = calibrated("wno", inputs="u0+xi", width=4, layers=2)
    first = model(features)
    model.calibrate({"dw": 7 * features["dw"], "u0": 3 * features["u0"] + 1}, 5 * u - 2)
    again = model({"dw": 7 * features["dw"], "u0": 3 * features["u0"] + 1})
    torch.testing.assert_close(again, 5 * first - 2, atol=1e-4, rtol=1e-4)


def test_the_published_form_has_the_units_of_the_data():
    model, features, _ = calibrated("wno", inputs="u0+xi", width=4, layers=2, form="published")
    assert isinstance(model, WNO)
    assert model.noise.size == model.start.size == model.solution.size == 1
    assert model.start.mean == model.solution.mean == 0
    default, _, _ = calibrated("wno", inputs="u0+xi", width=4, layers=2)
    assert isinstance(default, WNO)
    scaled = {"dw": default.noise(features["dw"]), "u0": default.start(features["u0"])}
    torch.testing.assert_close(default.solution.inverse(model(scaled)), default(features), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("inputs", ["xi", "u0+xi"])
def test_every_parameter_and_input_is_used_and_samples_are_alone(inputs):
    model, features, _ = calibrated("wno", inputs=inputs, width=4)
    assert all(used(model, features).values())
    out = model(features)
    torch.testing.assert_close(model({k: v[1:2] for k, v in features.items()}), out[1:2], atol=1e-5, rtol=1e-5)
    for name in features:
        moved = dict(features)
        moved[name] = features[name] + 0.1
        assert not torch.equal(model(moved), out)


def test_it_fits_one_batch():
    model, features, u = calibrated("wno", inputs="u0+xi", width=12, layers=3)
    assert overfit(model, features, u, 200, 5e-3) < 0.05
