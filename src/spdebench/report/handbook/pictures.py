"""A picture of solutions of an equation, for light and for dark pages."""

from __future__ import annotations

from pathlib import Path

from spdebench.data import DatasetSpec, generate, open_dataset
from spdebench.report.figures.solution import plot_solution
from spdebench.report.handbook.equation_pages import samples_shown, shown
from spdebench.report.style import darkened, save

DPI = 100
BACKGROUND = "#131416"
"""The background of the dark picture, which is that of the site's theme."""


def solution_pictures(name: str, folder: Path) -> dict[str, Path]:
    """``{"light": file, "dark": file}``: pictures of a few samples in ``folder``; existing files are kept.

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
            save(darkened(figure, BACKGROUND) if mode == "dark" else figure, file, dpi=DPI)
    return files
