"""A picture of solutions of an equation, for light and for dark pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from spdebench.data import DatasetSpec, generate, open_dataset
from spdebench.report.figures.solution import plot_solution
from spdebench.report.handbook.equation_pages import samples_shown, shown
from spdebench.report.style import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 100
PAPER, INK, FAINT = "#131416", "#e6edf3", "#8b949e"
"""Background, text and lines of the dark picture; the background is that of the site's theme."""


def solution_pictures(name: str, folder: Path) -> dict[str, Path]:
    """``{"light": file, "dark": file}`` of a few samples, in ``folder``; what exists already is not made again.

    The files have the hash of the dataset in their names.
    """
    equation = shown(name)
    samples = samples_shown(equation)
    spec = DatasetSpec(equation=equation, n=samples)
    files = {mode: folder / f"{spec.file_name.removesuffix('.parquet')}-{mode}.png" for mode in ("light", "dark")}
    if not all(file.exists() for file in files.values()):
        dataset = open_dataset(generate(equation, n=samples, out=folder))
        for mode, file in files.items():
            figure = plot_solution(dataset, samples)
            if mode == "dark":
                darken(figure)
            save(figure, file, dpi=DPI)
    return files


def darken(figure: Figure) -> None:
    """Light text and lines on a dark ground; the colours of the data stay."""
    from matplotlib.axis import Axis
    from matplotlib.spines import Spine
    from matplotlib.text import Text

    figure.patch.set_facecolor(PAPER)
    for axes in figure.axes:
        axes.patch.set_facecolor(PAPER)
        for axis in axes.findobj(Axis):
            axis.set_tick_params(which="both", color=FAINT, labelcolor=INK)
        for spine in axes.findobj(Spine):
            spine.set_edgecolor(FAINT)
    for text in figure.findobj(Text):
        text.set_color(INK)
