"""The common style of all figures: colours for colour-blind readers, thin axes, and a title that names the data.

matplotlib is imported only when something is drawn; its global settings and back end are not changed.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec

import numpy as np

from spdebench.data import Dataset
from spdebench.equations import Equation
from spdebench.errors import UserError
from spdebench.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.image import AxesImage
    from matplotlib.legend import Legend
    from matplotlib.text import Text

P = ParamSpec("P")

INK, GREY = "#222222", "#6b6b6b"
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"  # Okabe and Ito's
DARK = {
    "#ffffff": "#0d1117",
    INK: "#e6edf3",
    GREY: "#98a2ad",
    BLUE: "#58a6ff",
    ORANGE: "#ffa657",
    GREEN: "#3fd0a0",
}
"""The colour on a dark page, by the colour of a figure."""
DIVERGING, SEQUENTIAL = "RdBu_r", "viridis"
BAND = 2.0  # bars and bands are this many standard errors
STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.color": GREY,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.2,
    "text.color": INK,
    "svg.hashsalt": "spdebench",  # element names of an SVG are hashes; without a salt they are random
}

_METADATA: dict[str, dict[str, None]] = {  # dates and versions, which are not written into files
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """A decorator: the drawing function runs in the common style, and the user's settings are restored afterwards."""

    @functools.wraps(draw)
    def within(*args: P.args, **kwargs: P.kwargs) -> Figure:
        from matplotlib import style

        with style.context(["default", STYLE]):
            return draw(*args, **kwargs)

    return within


def new_figure(width: float, height: float, title: str, remark: str) -> Figure:
    """An empty figure (size in inches) with a title and, in grey below it, a remark; both are broken into lines."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    left, top = 0.1 / width, 1 - 0.06 / height
    written = figure.text(left, top, title, fontsize=10.5, fontweight="bold", va="top")
    lines = _fit(written, width - 0.2)
    beneath = figure.text(left, top - (0.04 + 0.17 * lines) / height, remark, fontsize=8, color=GREY, va="top")
    below = 1 - (0.11 + 0.17 * lines + 0.14 * _fit(beneath, 0.97 * width - 0.2)) / height  # inches of a line of each
    figure.set_layout_engine(ConstrainedLayoutEngine(rect=(0, 0, 1, below), w_pad=0.06, h_pad=0.06))
    return figure


def _fit(text: Text, width: float) -> int:
    """Break a text between words so that no line is wider than ``width`` inches; returns the number of lines."""
    figure = text.get_figure()
    assert figure is not None
    if text.get_window_extent().width <= width * figure.dpi:
        return 1
    lines = [""]
    for word in text.get_text().split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        text.set_text(longer)
        if lines[-1] and text.get_window_extent().width > width * figure.dpi:
            lines.append(word)
        else:
            lines[-1] = longer
    text.set_text("\n".join(lines))
    return len(lines)


# --- words --------------------------------------------------------------------------------------------------------
def title_of(data: Dataset | Equation, n: int) -> str:
    """Equation, J, sigma, edition and n; the file's name for a dataset that was imported."""
    if isinstance(data, Dataset) and data.imported:
        return f"{data.path.stem} (imported)   n = {n}"
    e = data.equation if isinstance(data, Dataset) else data
    name = re.sub(r"Phi\^(\d)_(\d)", r"$\\Phi^\1_\2$", e.title)
    truncation = "" if isinstance(data, Equation) else f"J = {e.truncation}   "
    return f"{name}   {truncation}σ = {e.sigma:g}   edition {e.edition}   n = {n}"


def remark_of(data: Dataset | Equation) -> str:
    """Boundary, noise and the equation's own fields, and whether the noise is aliased on the grid."""
    if isinstance(data, Dataset) and data.imported:
        return f"{data.grid.boundary}, {' × '.join(map(str, data.grid.points))} points"
    e = data.equation if isinstance(data, Dataset) else data
    common = {f.name for f in dataclasses.fields(Equation)}
    values = {f.name: getattr(e, f.name) for f in dataclasses.fields(e) if f.name not in common}
    own = [f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}" for key, value in values.items()]
    kind = e.noise_label
    noise = f"{kind} noise in the {e.basis if e.basis == 'sine' else e.basis.capitalize()} basis"
    parts = [e.boundary, noise, *own, *([f"kappa {e.kappa:g}"] if e.kappa else [])]
    if isinstance(data, Dataset) and e.aliasing_message():
        parts.append(f"the noise is aliased on {e.points} points")
    return ", ".join(parts)


def symbol_of(data: Dataset | Equation) -> str:
    """The solution in the equation's formula, as matplotlib writes it: u, h for kpz, \\omega for nse."""
    if isinstance(data, Dataset):
        return "u" if data.imported else symbol_of(data.equation)
    found = re.match("(?:d )?(omega|[A-Za-z])(?:_t+)? = ", data.formula)
    return "u" if found is None else found[1].replace("omega", r"\omega")


def plain(name: str, length: int = 44) -> str:
    """A name for a drawing: shortened, and with dollar signs escaped, which would begin a formula."""
    short = name if len(name) <= length else name[: length - 1] + "…"
    return "".join(c if ord(c) < 0x2E80 else "?" for c in short).replace("\\", "/").replace("$", r"\$")


# --- parts of a picture -------------------------------------------------------------------------------------------
def shades(count: int) -> list[tuple[float, ...]]:
    """Colours for an ordered family of lines, dark to light."""
    from matplotlib import colormaps

    return [colormaps[SEQUENTIAL](v) for v in np.linspace(0.05, 0.85, count)]


def picture(axes: Axes, values: np.ndarray, extent: Sequence[float], limit: float) -> AxesImage:
    """values[row, column] as colours, row upwards, on the symmetric scale -limit..limit."""
    return axes.imshow(
        values,
        extent=(extent[0], extent[1], extent[2], extent[3]),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        cmap=DIVERGING,
        vmin=-limit,
        vmax=limit,
    )


def plane(field: np.ndarray) -> np.ndarray:
    """A field (X, Y) or the middle plane of a field (X, Y, Z) as rows y and columns x of a picture."""
    return (field[..., field.shape[-1] // 2] if field.ndim == 3 else field).T


def symmetric_limit(values: np.ndarray, quantile: float = 0.999) -> float:
    """The limit of a symmetric colour scale that few values exceed; 1 for a field that is 0."""
    return float(np.quantile(np.abs(values), quantile)) or 1.0


def finer_scale(difference: np.ndarray, limit: float) -> float:
    """The factor by which the colour scale of a difference is finer than -limit..limit.

    It is the largest of .., 1, 2, 5, 10, .. with which nearly all of the difference is within the scale.
    """
    ratio = 1.001 * limit / symmetric_limit(difference) if np.any(difference) else 1.0
    decade = 10.0 ** math.floor(math.log10(ratio))
    return max(step * decade for step in (1, 2, 5) if step * decade <= ratio)


def legend_above(axes: Axes, columns: int) -> None:
    """A legend to the right of the title, where no line can cross it."""
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=columns, borderaxespad=0.1)


def legend_beside(axes: Axes) -> Legend:
    """A legend to the right of the axes, where no line can cross it."""
    return axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), handlelength=1.2)


def legend_below(figure: Figure | SubFigure, *panels: Axes, columns: int = 0) -> None:
    """One legend for all of these axes below them; a label that several have is shown once."""
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns or len(found))


def line_with_band(axes: Axes, x: np.ndarray, value: np.ndarray, error: np.ndarray, **options: Any) -> None:
    """A line with a band of `BAND` standard errors; without a band if they are unknown (one sample)."""
    (line,) = axes.plot(x, value, **options)
    if np.isfinite(error).all():
        low, high = value - BAND * error, value + BAND * error
        axes.fill_between(x, low, high, color=line.get_color(), alpha=0.25, linewidth=0)


def set_log_limits(axes: Axes, values: np.ndarray, decades: float) -> None:
    """A log axis from the largest value down to the smallest one within ``decades`` of it; linear if all are 0."""
    top = float(values.max())
    if top > 0:
        axes.set_yscale("log")
        axes.set_ylim(0.3 * float(values[values > top * 10.0**-decades].min()), 3 * top)


MOST_DECADES = 5
"""The most powers of ten that are written side by side below an axis."""


def log_axis(axes: Axes, which: Literal["x", "y"], values: Sequence[float]) -> None:
    """Make an axis logarithmic, with plain numbers on it, if all values are positive."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    if not values or not all(v > 0 and math.isfinite(v) for v in values):
        return
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    decades = math.log10(max(values) / min(values))
    axis = axes.xaxis if which == "x" else axes.yaxis
    steps = (1.0, 2.0, 5.0) if decades < 1.3 else (1.0, 3.0) if decades < 3 else (1.0,)
    most = {"numticks": MOST_DECADES} if which == "x" and decades > MOST_DECADES else {}
    axis.set_major_locator(LogLocator(subs=steps, **most))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def rows_shown(dataset: Dataset, samples: int) -> int:
    """How many samples a picture shows: ``samples``, or all if the dataset has fewer."""
    if samples < 1:
        raise UserError(f"a picture shows at least 1 sample, got samples={samples}")
    return min(samples, len(dataset))


def darkened(figure: Figure, background: str = DARK["#ffffff"]) -> Figure:
    """The figure with the colours of a dark page with this background; those of pictures stay."""
    from matplotlib.colors import to_hex, to_rgba

    colours = {**DARK, "#ffffff": background}

    def other(colour: Any) -> Any:
        plain_colour, alpha = to_hex(colour), to_rgba(colour)[3]
        return (*to_rgba(colours.get(plain_colour, plain_colour))[:3], alpha)

    for artist in figure.findobj():
        for name in ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"):
            read, write = getattr(artist, f"get_{name}", None), getattr(artist, f"set_{name}", None)
            if read is None or write is None:
                continue
            value: Any = read()
            if isinstance(value, np.ndarray) and value.ndim == 2:
                write([other(row) for row in value])
            elif value is not None and not (isinstance(value, str) and value == "none"):
                write(other(value))
    return figure


# --- to disk ------------------------------------------------------------------------------------------------------
def save(figure: Figure, path: str | os.PathLike[str], dpi: int = 150, *, about: str = "") -> Path:
    """Write a figure as PNG, SVG or PDF by the suffix: the same figure gives the same bytes, and no partial file.

    ``about`` is kept within a PNG or SVG as its description.
    """
    from matplotlib import style

    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in _METADATA:
        raise UserError(f"cannot write '{target.name}': a figure's name ends in {', '.join(_METADATA)}")
    with replacing(target) as temporary, style.context(["default", STYLE]):
        description = {"Description": about} if about and suffix != ".pdf" else {}
        figure.savefig(temporary, format=suffix[1:], dpi=dpi, metadata={**_METADATA[suffix], **description})
    return target
