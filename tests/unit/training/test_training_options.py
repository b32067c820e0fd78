"""Options and the schedules of the learning rate."""

from __future__ import annotations

import inspect
import math
import warnings

import pytest
import torch

import spdebench as sb
from spdebench import spec
from spdebench.training import ExecutionOptions, TrainOptions, options_for
from spdebench.training.schedule import Schedule
from speed.models.base import phi41_setting


def test_given_over_recommended_over_defaults(monkeypatch):
    setting = phi41_setting()
    from_paper = options_for("gt", setting)
    assert (from_paper.clip_norm, from_paper.decay_factor, from_paper.batch_size) == (
        1.0,
        0.5,
        20,
    )  # Table phi41_config
    given = options_for("gt", setting, clip_norm="0.5", epochs=3)
    assert (given.clip_norm, given.decay_factor, given.epochs) == (0.5, 0.5, 3)
    assert options_for("tiny", setting) == TrainOptions()


def test_old_names_give_the_same_options_with_a_warning():
    setting = phi41_setting()
    new = options_for("gt", setting, early_stop_patience=3, decay_every=7)
    with pytest.warns(DeprecationWarning, match="'stop' is now called 'early_stop_patience'"):
        assert options_for("gt", setting, stop=3, decay_every=7) == new
    stored = spec.to_dict(new)
    assert stored["stop"] == 3 and stored["step"] == 7 and not set(stored) & {"early_stop_patience", "decay_every"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert spec.build(TrainOptions, stored, "training", stored=True) == new
    with pytest.raises(sb.UserError, match="'lr' is the old name of 'learning_rate'"):
        options_for("gt", setting, lr=1e-3, learning_rate=1e-3)


def test_train_shows_every_option_in_its_signature():
    shown = inspect.signature(sb.train).parameters
    options = [*spec.fields_of(TrainOptions), *spec.fields_of(ExecutionOptions)]
    assert {name for name in options if name not in shown} == set()
    assert all(shown[name].default is None for name in options)


def test_a_model_without_training_has_no_options():
    setting = phi41_setting()
    assert options_for("average", setting, seed=1, epochs=7) == options_for("average", setting, seed=2)
    assert options_for("average", setting).epochs == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learning_rate": 0}, "learning_rate must be positive"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"decay_factor": 1.0}, "between 0 and 1"),
        ({"early_stop_delta": 1.5}, "relative and below 1"),
        ({"epochs": 2.5}, "whole number"),
        ({"epochs": 0}, "at least 1"),
        ({"scheduler": "plato"}, "did you mean 'plateau'"),
        ({"loss": "l2"}, "did you mean 'rel_l2'"),
        ({"ephocs": 3}, "did you mean 'epochs'"),
    ],
)
def test_a_bad_option_is_one_line(values, message):
    with pytest.raises(sb.UserError, match=message):
        options_for("tiny", phi41_setting(), **values)


def rates(options: TrainOptions, vals: list[float]) -> list[float]:
    schedule, out = Schedule(options), []
    for val in vals:
        out.append(schedule.lr)
        schedule.advance(val)
    return out


def torch_rates(make, vals: list[float], lr: float) -> list[float]:
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    scheduler, out = make(optimiser), []
    for val in vals:
        out.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        scheduler.step(val) if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau) else scheduler.step()
    return out


VALS = [1 / (1 + k) if k % 17 < 5 else 0.5 + 0.01 * math.sin(k) for k in range(200)]


def test_schedules_are_those_of_torch():
    s = torch.optim.lr_scheduler
    plateau = TrainOptions(
        scheduler="plateau", plateau_patience=4, decay_factor=0.3, min_learning_rate=1e-6, learning_rate=1e-2
    )
    make = lambda o: s.ReduceLROnPlateau(o, factor=0.3, patience=4, threshold=1e-6, min_lr=1e-6)  # noqa: E731
    assert rates(plateau, VALS) == pytest.approx(torch_rates(make, VALS, 1e-2), rel=1e-12)
    assert len(set(rates(plateau, VALS))) > 4
    step = TrainOptions(scheduler="step", decay_every=50, decay_factor=0.75)
    assert rates(step, VALS) == pytest.approx(torch_rates(lambda o: s.StepLR(o, 50, 0.75), VALS, 1e-3), rel=1e-9)
    cosine = TrainOptions(scheduler="cosine", epochs=200, min_learning_rate=1e-7)
    make = lambda o: s.CosineAnnealingLR(o, 200, eta_min=1e-7)  # noqa: E731
    assert rates(cosine, VALS) == pytest.approx(torch_rates(make, VALS, 1e-3), rel=1e-6)
    assert rates(TrainOptions(scheduler="none"), VALS) == [1e-3] * 200


def test_a_schedule_resumes_from_its_state():
    options = TrainOptions(plateau_patience=4, decay_factor=0.3)
    first, second = Schedule(options), Schedule(options)
    for val in VALS[:97]:
        first.advance(val)
    second.load(first.state())
    for val in VALS[97:]:
        first.advance(val)
        second.advance(val)
        assert first.lr == second.lr
