"""A small picture of one path of each equation, for the first page."""

from __future__ import annotations

import base64
import functools
import html
import io

import numpy as np

from spdebench.equations import EQUATIONS
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.report.style import DIVERGING, symmetric_limit
from spdebench.solvers import simulate

WIDTH, HEIGHT = 160, 120


@functools.cache
def equation_picture(name: str) -> str:
    """One path with the equation's default values: over space (to the right) and time (upwards) in 1-D, at the end in
    2-D, its middle plane in 3-D. Empty where the default values have no solution."""
    from markupsafe import Markup

    try:
        with without_aliasing_warning():
            equation = EQUATIONS[name]()
            if equation.solve_points > equation.points:  # all that was solved, not the points that are stored
                equation = equation.replace(points=equation.solve_points, solve_points=equation.solve_points)
            field = simulate(equation, seed=0, samples=[0]).u[0].numpy()
    except UserError:
        return Markup()
    if equation.dim > 1:
        field = field[-1]
        field = (field if equation.dim == 2 else field[..., field.shape[-1] // 2]).T
    where = "over space and time" if equation.dim == 1 else "at the end" + ", middle plane" * (equation.dim == 3)
    words = html.escape(f"{equation.title}: one path {where}")
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{words}"><image width="{WIDTH}" height="{HEIGHT}" '
        f'preserveAspectRatio="none" href="data:image/png;base64,{_png(field)}"/></svg>'
    )


def _png(field: np.ndarray) -> str:
    """Rows upwards, at most as many pixels as are shown, in 64 colours."""
    from matplotlib import colormaps
    from matplotlib.image import imsave

    rows, columns = (max(1, -(-size // most)) for size, most in zip(field.shape, (HEIGHT, WIDTH), strict=True))
    limit = symmetric_limit(field)
    shown = np.round(31.5 * (1 + np.clip(field[::-rows, ::columns] / limit, -1, 1))).astype(int)
    buffer = io.BytesIO()
    imsave(buffer, colormaps[DIVERGING].resampled(64)(shown, bytes=True), format="png")
    return base64.b64encode(buffer.getvalue()).decode()
