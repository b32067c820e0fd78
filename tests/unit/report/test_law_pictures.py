"""Pictures of laws: what is drawn are the members, their quantiles and ranks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from spdebench.grids import Grid
from spdebench.report.figures import plot_fan, plot_members, plot_ranks
from spdebench.report.figures.law import SURE, Laws, Ranks, rank_band


def laws(dim: int = 1, inputs: int = 4, truths: int = 5, members: int = 16) -> Laws:
    rng = np.random.default_rng(0)
    points = (8,) * dim
    grid = Grid(points, (0.0,) * dim, (1.0,) * dim, "periodic")
    truth, predicted = (rng.standard_normal((inputs, m, 3, *points)) for m in (truths, members))
    return Laws(truth, predicted, (0.0, 0.5, 1.0), grid, "fno, phi41, seen=2", "remark")


def test_a_fan_shows_true_members_and_quantiles():
    found = laws()
    figure = plot_fan(found)
    assert len(figure.axes) == 3
    for k, axes in enumerate(figure.axes):
        lines = [np.asarray(line.get_ydata()) for line in axes.get_lines()]
        assert np.allclose(lines[:5], found.truth[k, :, :, 4])
        assert np.allclose(lines[5], np.median(found.predicted[k, :, :, 4], axis=0))
        below, above, narrow = (c.get_paths()[0].vertices for c in axes.collections)
        ends = np.quantile(found.predicted[k, :, -1, 4], (0.05, 0.25, 0.75, 0.95))
        for band, (low, high) in zip((below, narrow, above), itertools.pairwise(ends), strict=True):
            last = [y for x, y in band if x == 1.0]
            assert np.allclose((min(last), max(last)), (low, high))


def test_true_and_predicted_members_have_one_scale():
    found = laws(inputs=3)
    figure = plot_members(found)
    left, right = figure.axes[:2]
    assert len(figure.axes) == 4 and left.get_ylim() == right.get_ylim()
    assert np.allclose([line.get_ydata() for line in left.get_lines()][:5], found.truth[0, :, -1])
    assert np.allclose(right.get_lines()[-1].get_ydata(), found.predicted[0, :, -1].mean(0))
    pictures = plot_members(laws(dim=2, members=2))
    shown = [axes for axes in pictures.axes if axes.get_images()]
    assert len(shown) == 4 and len({axes.get_images()[0].get_clim() for axes in shown}) == 1


def test_the_band_of_ranks_holds_its_share():
    """The count of a bin is binomial; the band is the smallest central one that holds 90 % of it."""
    low, high = rank_band(180, 13)
    counts = np.random.default_rng(1).binomial(180, 1 / 13, 200_000)
    inside = np.mean((counts >= low) & (counts <= high))
    assert SURE <= inside < 0.96  # 3 s.e. of the share are 0.002
    assert np.mean((counts > low) & (counts < high)) < SURE


def test_ranks_are_drawn_as_counted():
    counts = (30, 10, 12, 8, 15, 14, 11, 13, 9, 12, 16, 10, 20)
    figure = plot_ranks(Ranks(counts, 0.003, "fno: ranks"))
    (axes,) = figure.axes
    assert [bar.get_height() for bar in axes.patches[:13]] == list(counts)
    assert any("p = 0.003" in text.get_text() for text in figure.texts)


@pytest.mark.parametrize("draw", [plot_fan, plot_members])
def test_one_member_is_one_line(draw):
    assert draw(laws(members=1)).axes
