"""The moving picture of the first page: still until the reader plays it, or moving until it is stopped.

``static/nse.png`` is the problem nse of the core suite on its solver's grid; `COMMAND` makes it.
"""

from __future__ import annotations

import base64
import functools
import html
import io
from importlib import resources

FILE = "nse.png"
FIELDS = (
    "edition=converged points=64 solve_points=64 horizon=10 frames=50 steps=50 substeps=10 truncation=16 sigma=0.05 "
    "kappa=1 viscosity=0.001 scale=162 storage=spectral"
)
COMMAND = f"spdebench plot animation nse {FIELDS} --out {FILE}"
CAPTION = (
    "Vorticity of one path of the stochastic Navier-Stokes equation from t = 0 to 10: the noise and a steady force "
    "stir a flow that starts near rest. Blue is negative, red positive."
)


@functools.cache
def film() -> str:
    """A checkbox and two pictures, the moving one and its last frame.

    The checkbox, and whether the reader asks for less motion, determine which is shown (style.css), without a script.
    """
    from markupsafe import Markup
    from PIL import Image  # a dependency of matplotlib

    moving = (resources.files("spdebench.report.site") / "static" / FILE).read_bytes()
    with Image.open(io.BytesIO(moving)) as opened:
        opened.seek(getattr(opened, "n_frames", 1) - 1)
        width, height = opened.size
        buffer = io.BytesIO()
        opened.convert("RGB").quantize(64).save(buffer, "PNG", optimize=True)
    pictures = "".join(
        f'<image class="{name}" width="{width}" height="{height}" '
        f'href="data:image/png;base64,{base64.b64encode(content).decode()}"/>'
        for name, content in (("moving", moving), ("still", buffer.getvalue()))
    )
    return Markup(
        '<input type="checkbox" id="film"><label for="film"><span class="hold">Still picture</span>'
        '<span class="play">Play the animation</span></label>'
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{html.escape(CAPTION)}">{pictures}</svg>'
    )
