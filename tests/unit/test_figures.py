"""Figures show true numbers: what is drawn is read back and compared; files are whole and always the same."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from in_children import run_code
from spdebench.data import Dataset, generate, open_dataset
from spdebench.data.writer import Writer
from spdebench.equations import equation
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.report import (
    KINDS,
    TABLES,
    plot_noise,
    plot_solution,
    plot_spectrum,
    plot_statistics,
    plot_truncation,
    save,
    truncation_table,
)
from spdebench.report.figures import modes, sums
from spdebench.report.site.charts import plot_prediction, plot_training
from spdebench.report.style import finer_scale, new_figure, symmetric_limit
from spdebench.solvers import simulate

SMALL = {"sigma": 1.0, "points": 32, "truncation": 30, "frames": 10, "steps": 10}


@pytest.fixture(scope="module")
def phi(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return open_dataset(generate(equation("phi41", **SMALL), n=70, seed=1, out=tmp_path_factory.mktemp("phi")))


def imported(folder: Path, grid: Grid, u: np.ndarray, dw: np.ndarray | None = None) -> Dataset:
    """A file without a spec of ours, on times 0, 1, ..."""
    box = {"points": grid.points, "lower": grid.lower, "upper": grid.upper, "boundary": grid.boundary}
    identity = {"published": {"file": "elsewhere"}, "grid": box, "times": list(range(u.shape[1]))}
    shapes = {"u0": u.shape[2:], "dw": u.shape[1:], "u": u.shape[1:]}
    path = folder / "elsewhere.parquet"
    with Writer(path, identity, shapes, 4, {}) as writer:
        writer.write((u[:, 0], u if dw is None else dw, u))
    return open_dataset(path)


def random_field(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def lines(axes) -> dict[str, np.ndarray]:
    """Label -> y of the lines of an axes."""
    return {str(line.get_label()): np.asarray(line.get_ydata(), dtype=float) for line in axes.get_lines()}


def pictures(figure) -> list[np.ndarray]:
    """The arrays of all images but the colour bar's."""
    return [np.asarray(im.get_array()) for axes in figure.axes for im in axes.images]


# --- without side effects -----------------------------------------------------------------------------------------
def test_importing_does_not_import_matplotlib_and_drawing_leaves_it_alone(phi: Dataset) -> None:
    script = f"""
import sys
import spdebench.report as report
from spdebench import open_dataset
assert "matplotlib" not in sys.modules
import matplotlib
matplotlib.rcParams["font.size"] = 17
settings = lambda: {{key: matplotlib.rcParams[key] for key in matplotlib.rcParams if key != "backend"}}
before = settings()
report.plot_solution(open_dataset({str(phi.path)!r}))
assert settings() == before
assert "matplotlib.pyplot" not in sys.modules  # it is what chooses a back end
"""
    done = run_code(script)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in TABLES])
def test_every_kind_names_the_data(kind: str, phi: Dataset) -> None:
    words = " ".join(text.get_text() for text in KINDS[kind][0](phi).texts)
    for part in (r"$\Phi^4_1$", "J = 30", "σ = 1", "edition paper", "n = 70", "periodic", "mass 0"):
        assert part in words


def legends_over_axes(figure: Any) -> list[str]:
    """The labels of legends that reach into an axes, where a line might cross them."""
    figure.draw_without_rendering()
    parts = [figure, *figure.subfigs]
    legends = [*(a.get_legend() for a in figure.axes), *(legend for part in parts for legend in part.legends)]
    boxes = [axes.get_window_extent().shrunk(0.98, 0.98) for axes in figure.axes]
    reaching = [legend for legend in legends if legend and any(legend.get_window_extent().overlaps(b) for b in boxes)]
    return [text.get_text() for legend in reaching for text in legend.get_texts()]


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in TABLES])
def test_no_line_can_cross_a_legend(kind: str, phi: Dataset) -> None:
    assert legends_over_axes(KINDS[kind][0](phi)) == []


def test_no_line_can_cross_a_legend_of_a_study_or_a_run() -> None:
    assert legends_over_axes(plot_truncation(equation("phi41", **SMALL), (4, 8, 64), n=3)) == []
    assert legends_over_axes(KINDS["renormalisation"][0](equation("kpz", **SMALL), (8, 16), n=2)) == []
    log = [{"epoch": k, "train": 1.0 / k, "val": 1.2 / k} for k in range(1, 9)]
    assert legends_over_axes(plot_training(log, 5, [0.1, 0.2], "run")) == []


def test_a_difference_has_a_finer_scale_whose_factor_is_printed() -> None:
    truth, grid = random_field(6, 16), Grid.unit(16)
    for share, factor in ((0.03, 20), (0.1, 10), (0.15, 5), (1.0, 1), (3.0, 0.2)):
        assert finer_scale(share * truth, symmetric_limit(truth)) == pytest.approx(factor)
        figure = plot_prediction(truth, (1 + share) * truth, 1.0, grid, "sample")
        axes = [a for a in figure.axes if a.images]
        assert axes[2].get_title(loc="left") == f"prediction − truth, colours × {factor:g}"
        tops = [a.images[0].get_clim()[1] for a in axes]
        assert tops[0] == tops[1] == pytest.approx(factor * tops[2])


# --- noise --------------------------------------------------------------------------------------------------------
def test_noise_spectrum_is_one_within_its_bars(phi: Dataset) -> None:
    axes = plot_noise(phi).axes[-1]
    data, _, (bars,) = axes.containers[0]
    error = np.array([np.ptp(segment[:, 1]) for segment in bars.get_segments()]) / 4  # bars are 2 s.e. to each side
    assert data.get_xdata().tolist() == list(range(16))
    assert np.all(np.abs(data.get_ydata() - 1) < 4.5 * error) and np.all(error < 0.12)
    assert lines(axes)[r"exact $\lambda_k$"] == pytest.approx(np.ones(16), abs=1e-12)
    assert "exact 31" in axes.get_title(loc="left")  # Tr Q / L = J + 1


@pytest.mark.parametrize(
    "name, values",
    [
        ("phi41", SMALL),
        ("phi41", SMALL | {"boundary": "dirichlet", "truncation": 31}),
        ("phi41", SMALL | {"basis": "haar", "truncation": 32}),
        ("kdv", SMALL | {"noise": "q_wiener"}),
        ("kpz", SMALL),
    ],
)
def test_exact_noise_power_has_the_trace(name: str, values: dict) -> None:
    eq = equation(name, **values)
    power, mean_square = modes.noise_power(eq)
    assert mean_square == pytest.approx(eq.wiener().trace)
    if eq.basis == "fourier":
        assert power == pytest.approx((eq.eigenvalue_roots() ** 2).mean(1).numpy())  # the mean of cosine and sine
    else:
        assert power == pytest.approx(np.ones(len(power)))


def test_folded_noise_power_sums_what_the_grid_confuses() -> None:
    power, mean_square = modes.noise_power(equation("phi41", **SMALL | {"truncation": 64}))
    assert power == pytest.approx([3.0, *[2.0] * 15])  # harmonic 32 is seen as sqrt(2) times a constant
    assert mean_square == pytest.approx(65)


def test_imported_noise_has_no_exact_line(tmp_path: Path) -> None:
    data = imported(tmp_path, Grid.unit(8), random_field(5, 4, 8))
    axes = plot_noise(data, samples=9).axes[-1]
    assert not any("exact" in label for label in lines(axes))


# --- solution and spectrum ----------------------------------------------------------------------------------------
def test_solution_pictures_are_the_data_on_one_symmetric_scale(phi: Dataset) -> None:
    figure = plot_solution(phi, samples=2)
    shown = pictures(figure)
    assert np.array_equal(shown[0], phi.u[0]) and np.array_equal(shown[1], phi.u[1])
    limits = {im.get_clim() for axes in figure.axes[:2] for im in axes.images}
    assert len(limits) == 1 and (clim := limits.pop())[0] == -clim[1]
    assert clim[1] == pytest.approx(np.abs(phi.u[:2]).max(), rel=0.1)
    assert lines(figure.axes[3])["$t$ = 0.05"] == pytest.approx(phi.u[1, -1])


def test_pictures_in_two_and_three_dimensions(tmp_path: Path) -> None:
    plane = random_field(2, 7, 8, 6)
    shown = pictures(plot_solution(imported(tmp_path, Grid.unit((8, 6)), plane), samples=1))
    assert len(shown) == 4 and np.array_equal(shown[1], plane[0, 2].T)
    solid = random_field(2, 7, 4, 5, 6)
    shown = pictures(plot_solution(imported(tmp_path, Grid.unit((4, 5, 6)), solid), samples=2))
    assert len(shown) == 8 and np.array_equal(shown[-1], solid[1, -1, :, :, 3].T)


@pytest.mark.parametrize("boundary, expected", [("periodic", 9 / 4), ("dirichlet", 9 / 2)])
def test_spectrum_of_one_wave(boundary, expected: float, tmp_path: Path) -> None:
    """u = 3 cos(4 pi x): E|c_2|^2 = 9/4; u = 3 sin(2 pi x) is 3/sqrt(2) times an orthonormal sine."""
    grid = Grid.unit(16, boundary=boundary)
    x = np.arange(16) / 16
    wave = 3 * (np.cos(4 * math.pi * x) if boundary == "periodic" else np.sin(2 * math.pi * x))
    drawn = lines(plot_spectrum(imported(tmp_path, grid, np.broadcast_to(wave, (4, 3, 16)))).axes[0])
    assert set(drawn) == {"$t$ = 1", "$t$ = 2"}
    assert drawn["$t$ = 2"][1] == pytest.approx(expected, rel=1e-6)
    assert np.delete(drawn["$t$ = 2"], 1) == pytest.approx(0, abs=1e-10)


def test_linear_theory_is_inverse_square_for_a_parabolic_equation(phi: Dataset) -> None:
    """sigma^2/(2 kappa^2) once a mode is in equilibrium."""
    drawn = lines(plot_spectrum(phi).axes[0])
    k = np.arange(1, 16)
    theory = drawn[r"linear equation at $T$, $\propto k^{-2}$"]
    assert theory[2:] == pytest.approx(0.5 / (2 * math.pi * k[2:]) ** 2, rel=1e-5)


def test_linear_theory_of_a_dispersive_equation_grows_like_the_noise() -> None:
    eq = equation("kdv", **SMALL)
    power = modes.linear_power(eq, np.full(16, 2.0), 0.3)
    assert power == pytest.approx(2 + 0.3 * modes.noise_power(eq)[0])
    assert modes.linear_power(equation("wave"), np.ones(64), 0.3) is None


# --- statistics ---------------------------------------------------------------------------------------------------
def test_statistics_are_those_of_the_data(phi: Dataset) -> None:
    axes = plot_statistics(phi).axes
    u = phi.u.astype(np.float64)
    assert lines(axes[0])["$t$ = 0.025"] == pytest.approx(u[:, 5].mean(0))
    assert lines(axes[1])["$t$ = 0.05"] == pytest.approx(u[:, -1].var(0, ddof=1))
    over_time = [axes[i].get_lines()[0].get_ydata() for i in (2, 3, 4)]
    assert over_time[0] == pytest.approx(u.mean((0, 2)))
    assert over_time[1] == pytest.approx(u.std(0, ddof=1).mean(1))
    assert over_time[2] == pytest.approx((u**2).mean((0, 2)))


def test_one_sample_has_lines_but_no_bands(tmp_path: Path) -> None:
    data = imported(tmp_path, Grid.unit(8), random_field(1, 4, 8))
    for draw in (plot_statistics, plot_spectrum, plot_noise, plot_solution):
        figure = draw(data)
        assert not any("FillBetween" in type(c).__name__ for axes in figure.axes for c in axes.collections)


def test_a_field_that_is_zero_is_drawn(tmp_path: Path) -> None:
    data = imported(tmp_path, Grid.unit(8), np.zeros((2, 4, 8), dtype=np.float32))
    for draw in (plot_statistics, plot_spectrum, plot_noise, plot_solution):
        assert draw(data).axes


def test_no_samples_is_an_error(phi: Dataset) -> None:
    with pytest.raises(UserError, match="at least 1 sample, got samples=0"):
        plot_noise(phi, samples=0)


@pytest.mark.parametrize("n, batch", [(20, 7), (32, 32), (75, 64)])
def test_standard_errors(n: int, batch: int) -> None:
    """Of a mean it is s/sqrt(n) for n <= 32, and near it with groups; of a variance about sqrt((m4 - m2^2)/n)."""
    u = np.random.default_rng(3).standard_normal((n, 400, 1))
    rows = (u[i : i + batch] for i in range(0, n, batch))
    gathered = sums.accumulate(rows, n, sums.moments)
    value, error = gathered.estimate(sums.mean)
    usual = u.std(0, ddof=1) / math.sqrt(n)
    assert value == pytest.approx(u.mean(0))
    if n <= sums.GROUPS:
        assert error == pytest.approx(usual)
    else:
        assert math.sqrt((error**2).mean()) == pytest.approx(math.sqrt((usual**2).mean()), rel=0.05)
    spread, error = gathered.estimate(sums.variance)
    assert spread == pytest.approx(u.var(0, ddof=1))
    assert math.sqrt((error**2).mean()) == pytest.approx(math.sqrt(2 / (n - 1)), rel=0.15)


# --- truncation ---------------------------------------------------------------------------------------------------
def test_truncation_table_and_curves_by_direct_computation() -> None:
    eq, n = equation("phi41", **SMALL), 12
    table = truncation_table(eq, (2, 30, 64), n=n, seed=5)
    assert table["J"].tolist() == [2, 30, 64]
    assert table["aliased"].tolist() == [False, False, True]
    for _, row in table[~table["aliased"]].iterrows():
        paths = simulate(eq.replace(truncation=int(row["J"])), 5, range(n), out_dtype=torch.float64)
        u = paths.u[:, -1].numpy()
        assert row["std"] == pytest.approx(u.std(0, ddof=1).mean())
        assert row["energy"] == pytest.approx((u**2).mean())
        assert row["energy_se"] == pytest.approx((u**2).mean(1).std(ddof=1) / math.sqrt(n))
        left = [np.delete(u, i, 0).std(0, ddof=1).mean() for i in range(n)]
        assert row["std_se"] == pytest.approx(math.sqrt((n - 1) * np.var(left)))
    left, _, right = plot_truncation(eq, (2, 30, 64), n=n, seed=5).axes
    drawn = {line.get_label(): line for line in left.get_lines()}
    assert drawn["$J$ = 2"].get_ydata()[-1] == table["std"][0]
    assert drawn["$J$ = 2"].get_linestyle() == "-" and drawn["$J$ = 64 (aliased)"].get_linestyle() == "--"
    assert len(right.containers) == 6


def test_truncation_needs_two_samples() -> None:
    with pytest.raises(UserError, match="at least 2 samples"):
        plot_truncation(equation("phi41"), (2,), n=1)


# --- files --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("suffix", [".png", ".svg", ".PDF"])
def test_saving_gives_the_same_bytes(suffix: str, phi: Dataset, tmp_path: Path) -> None:
    first = save(plot_spectrum(phi), tmp_path / "new" / f"a{suffix}")
    again = save(plot_spectrum(phi), tmp_path / "new" / f"b{suffix}")
    data = first.read_bytes()
    assert data == again.read_bytes() and len(data) > 5000
    assert b"Matplotlib v" not in data and b"CreationDate" not in data and b"dc:date" not in data
    assert sorted(p.name for p in first.parent.iterdir()) == [first.name, again.name]


def test_saving_refuses_other_suffixes(phi: Dataset, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a\.bmp.*\.png, \.svg, \.pdf"):
        save(plot_spectrum(phi), tmp_path / "a.bmp")
    assert not list(tmp_path.iterdir())


def test_a_failed_save_leaves_the_old_file_and_nothing_else(phi: Dataset, tmp_path: Path, monkeypatch) -> None:
    figure, target = plot_spectrum(phi), tmp_path / "a.png"
    target.write_bytes(b"old")

    def break_off(path, **_) -> None:
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(figure, "savefig", break_off)
    with pytest.raises(UserError, match="No space left"):
        save(figure, target)
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"] and target.read_bytes() == b"old"


@pytest.mark.parametrize(("width", "lines"), [(12.0, 1), (5.5, 2), (2.0, 4)])
def test_a_title_takes_the_lines_it_needs_and_stays_above_the_axes(width, lines):
    title = "Phi41, periodic: mean and variance over the test part, predicted and true"
    figure = new_figure(width, 6.0, title, "over 180 test samples; predictions of the first seed, and much more")
    axes = figure.subplots()
    figure.draw_without_rendering()
    above, beneath = figure.texts
    assert above.get_text().count("\n") + 1 == lines and above.get_text().replace("\n", " ") == title
    boxes = [text.get_window_extent() for text in (above, beneath)]
    assert all(box.x0 > 0 and box.x1 <= width * figure.dpi for box in boxes)
    assert boxes[0].y0 > boxes[1].y1 and boxes[1].y0 > axes.get_tightbbox().y1
