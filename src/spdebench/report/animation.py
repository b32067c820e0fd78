"""``spdebench plot animation``: one path of an equation in two or three dimensions as a moving picture.

A GIF, or a PNG with several frames, which browsers play and other programs show as its first frame.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from spdebench.equations import Equation
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.files import replacing
from spdebench.report.style import DIVERGING, symmetric_limit
from spdebench.solvers import simulate

LINE = "one path as a moving picture, a GIF or an animated PNG (takes an equation in 2-D or 3-D)"
SUFFIXES = (".png", ".gif")
COLOURS = 64
"""The number of colours, small so that the file is small."""
FRAME_MS, LAST_MS = 100, 1500
"""How long each frame and the last frame are shown, in milliseconds."""


def animation_frames(equation: Equation, seed: int = 0) -> np.ndarray:
    """The colour numbers (F, Y, X) of all stored frames of sample 0, on one scale for all frames.

    0 is the smallest value, and the first row is the top of the picture. In three dimensions it is the middle plane.
    """
    if equation.dim == 1:
        raise UserError(
            f"plot animation shows fields in two or three dimensions, and {equation.name} has one; "
            f"draw u(t,x) with 'spdebench plot solution FILE'"
        )
    with without_aliasing_warning():
        field = simulate(equation, seed=seed, samples=[0]).u[0].numpy()
    plane = field if equation.dim == 2 else field[..., field.shape[-1] // 2]
    shown = np.clip(plane / symmetric_limit(plane), -1, 1).transpose(0, 2, 1)[:, ::-1]
    return np.round((COLOURS - 1) / 2 * (1 + shown)).astype(np.uint8)


def write_animation(equation: Equation, path: str | os.PathLike[str], seed: int = 0) -> Path:
    """Write the moving picture as GIF or PNG, by the suffix of the path."""
    from matplotlib import colormaps
    from PIL import Image  # a dependency of matplotlib

    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise UserError(f"cannot write '{target.name}': the name of an animation ends in {' or '.join(SUFFIXES)}")
    palette = (255 * colormaps[DIVERGING](np.linspace(0, 1, COLOURS))[:, :3]).round().astype(np.uint8).tobytes()
    pictures = [Image.fromarray(frame) for frame in animation_frames(equation, seed)]
    for picture in pictures:
        picture.putpalette(palette)
    times = [FRAME_MS] * (len(pictures) - 1) + [LAST_MS]
    with replacing(target) as temporary:
        pictures[0].save(
            temporary, format=suffix[1:].upper(), save_all=True, append_images=pictures[1:], duration=times, loop=0,
            optimize=True,
        )  # fmt: skip
    return target
