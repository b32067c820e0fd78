"""Natural calls from Python work, and wrong arguments are told in one line: what was expected and what came."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import spdebench as sb
from spdebench.metrics.scores import bias_note
from spdebench.report import plot_statistics
from spdebench.report.site.charts import plot_training
from spdebench.report.style import symbol_of
from spdebench.training.train_command import names_of

PHI = sb.equation("phi41", points=16, truncation=8, frames=5, steps=5)


def test_a_name_stands_for_an_equation_and_a_path_for_a_dataset(tmp_path):
    paths = sb.simulate("phi41", 0, [0])
    again = sb.solve("phi41", paths.u0, paths.dw)
    assert torch.allclose(again.float(), paths.u, atol=1e-6)
    assert sb.verify(sb.generate(PHI, n=np.int64(4), out=tmp_path)).good


def test_whole_numbers_may_be_those_of_numpy(tmp_path):
    numbers = {"n": 20, "seed": 1, "seen": 2, "members": 3}
    plain, law = (
        sb.generate(PHI, **{key: kind(value) for key, value in numbers.items()}, out=tmp_path / kind.__name__)
        for kind in (int, np.int64)
    )
    assert law.name == plain.name and law.read_bytes() == plain.read_bytes()
    assert torch.equal(sb.simulate(PHI, np.int64(1), [0]).u, sb.simulate(PHI, 1, [0]).u)
    task = sb.Task(law, seen=2)
    run, inputs = sb.train("climatology", task, out=tmp_path), (task.test.u0, task.test.dw)
    drawn = run.sample(*inputs, members=np.int64(4), seed=np.int64(5))
    np.testing.assert_array_equal(drawn, run.sample(*inputs, members=4, seed=5))
    with pytest.raises(sb.UserError, match=r"seed must be a whole number, got 1\.5"):
        run.sample(*inputs, seed=1.5)


def test_wrong_arguments_are_one_line(tmp_path):
    field = np.ones((3, 4, 5))
    for call, message in (
        (lambda: sb.generate(PHI, n=2.5, out=tmp_path), "n must be a whole number, got 2.5"),
        (lambda: sb.generate(PHI, n=2, seen=2.0, out=tmp_path), r"seen must be a whole number, got 2\.0"),
        (lambda: sb.simulate(PHI, 1.5, [0]), r"seed must be a whole number, got 1\.5"),
        (lambda: sb.generate({"name": "phi41"}, n=2, out=tmp_path), "expected an equation, such as"),
        (lambda: sb.simulate(PHI, 0, 4), r"samples are the numbers of samples, such as range\(4\); got 4"),
        (lambda: sb.simulate(PHI, 0, np.int64(4)), "samples are the numbers of samples, such as range"),
        (lambda: sb.simulate(PHI, 0, [3, -1]), "the numbers of samples begin with 0, got -1"),
        (lambda: sb.evaluate(field, field, 5), "expected a Grid, such as .*; got int"),
    ):
        with pytest.raises(sb.UserError, match=message):
            call()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["phi41", "wave"])
def test_simulate_keeps_the_frames_that_every_asks_for(name):
    """Also where it does not divide the intervals; dw is summed over the frames that are left out."""
    eq = sb.equation(name, points=16, truncation=8, frames=10, steps=20)
    whole = sb.simulate(eq, 0, [0, 1], out_dtype=torch.float64)
    for every in (2, 3, 4, 6, 10):
        kept = sb.simulate(eq, 0, [0, 1], out_dtype=torch.float64, every=every)
        assert torch.equal(kept.u, whole.u[:, ::every])
        assert torch.allclose(kept.dw.cumsum(1), whole.dw.cumsum(1)[:, ::every], atol=1e-12)
    for every in (0, 11):
        with pytest.raises(sb.UserError, match="every must be between 1 and the 10 stored intervals, got"):
            sb.simulate(eq, 0, [0], every=every)
    with pytest.raises(sb.UserError, match=r"every must be a whole number, got 2\.5"):
        sb.simulate(eq, 0, [0], every=2.5)


def test_a_notebook_shows_an_equation_with_its_formula_and_fields():
    html = PHI._repr_html_()
    assert "u_t = u_xx + mass u - u^3 + sigma xi" in html and "<td>truncation</td><td>8</td>" in html


def test_pages_of_runs_show_whole_epochs_and_the_names_of_options_that_users_type():
    log = [{"epoch": epoch, "train": 1.0, "val": 1.0} for epoch in (1, 2, 3)]
    figure = plot_training(log, 3, [0.1, 0.2], "a run")
    assert all(float(tick).is_integer() for axes in figure.axes for tick in axes.get_xticks())
    shown = names_of(sb.training.TrainOptions, {"batch": 20, "lr": 0.01, "epochs": 3})
    assert shown == {"batch_size": 20, "learning_rate": 0.01, "epochs": 3}


def test_a_score_outside_its_interval_is_explained():
    rows = [{"metric": name, "value": value, "low": 1.0, "high": 2.0} for name, value in (("acf", 2.5), ("mse", 1.5))]
    assert bias_note(rows) == ["acf: the interval is corrected for a bias of the value, which lies outside"]
    assert bias_note([*rows[1:], {"metric": "std_ratio", "value": 3.0, "low": None, "high": None}]) == []


@pytest.mark.parametrize(
    ("formula", "symbol"),
    [("u_t = u_xx", "u"), ("h_t = h_xx", "h"), ("omega_t = f", r"\omega"), ("d v = (v_xx) dt", "v"), ("my $ 1", "u")],
)
def test_figures_name_the_solution_as_the_formula_does(formula, symbol):
    eq = sb.equation("phi41")
    object.__setattr__(eq, "formula", formula)
    assert symbol_of(eq) == symbol


def test_the_mean_of_a_conserved_field_is_drawn_flat(tmp_path):
    """The panel of the mean is at least 1e-3 standard deviations high, so that it does not show rounding errors."""
    small = sb.equation("nse", points=8, solve_points=8, truncation=4, frames=2, steps=20)
    data = sb.open_dataset(sb.generate(small, n=4, out=tmp_path))
    low, high = plot_statistics(data).axes[2].get_ylim()
    assert high - low >= 1e-3 * data.u[:, -1].std(0).mean() > 100 * np.ptp(data.u.mean((0, 2, 3)))
