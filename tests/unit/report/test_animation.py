"""Moving pictures: frames are the path of the generator, and the first page shows what its command makes."""

from __future__ import annotations

import io
import shlex
from importlib import resources

import numpy as np
import pytest
from PIL import Image

from spdebench import spec
from spdebench.equations import EQUATIONS, equation
from spdebench.errors import UserError
from spdebench.report.animation import COLOURS, animation_frames, write_animation
from spdebench.report.site import film
from spdebench.solvers import simulate

SMALL = {"points": 8, "truncation": 4, "frames": 4, "steps": 4}


def colours(content: bytes) -> np.ndarray:
    """The frames of a moving picture as RGB, (F, Y, X, 3)."""
    with Image.open(io.BytesIO(content)) as opened:
        found = []
        for k in range(opened.n_frames):
            opened.seek(k)
            found.append(np.asarray(opened.convert("RGB")))
    return np.stack(found).astype(int)


def test_frames_are_the_path_with_y_upwards():
    eq = equation("phi42", **SMALL)
    frames, u = animation_frames(eq, seed=3), simulate(eq, seed=3, samples=[0]).u[0].numpy()
    assert frames.shape == (5, 8, 8) and frames.max() == COLOURS - 1
    shown = frames[:, ::-1].transpose(0, 2, 1) / (COLOURS - 1) * 2 - 1  # T X Y again, in units of the scale
    inside = np.abs(shown) < 1
    scale = np.quantile(np.abs(u), 0.999)
    assert np.abs(shown - u / scale)[inside].max() <= 1.01 / (COLOURS - 1)


@pytest.mark.parametrize("suffix", [".gif", ".png"])
def test_both_formats_hold_the_same_frames(tmp_path, suffix):
    eq = equation("phi42", **SMALL)
    found = colours(write_animation(eq, tmp_path / f"a{suffix}").read_bytes())
    assert found.shape == (5, 8, 8, 3)
    red = animation_frames(eq) > COLOURS * 0.7
    assert (found[..., 0] > found[..., 2])[red].all() and red.any()  # large values are red
    assert write_animation(eq, tmp_path / f"b{suffix}").read_bytes() == (tmp_path / f"a{suffix}").read_bytes()


def test_mistakes_are_one_line_and_leave_no_file(tmp_path):
    with pytest.raises(UserError, match="phi41 has one; draw u"):
        write_animation(equation("phi41", points=8, frames=4, steps=4), tmp_path / "a.gif")
    with pytest.raises(UserError, match=r"ends in .png or .gif"):
        write_animation(equation("phi42", **SMALL), tmp_path / "a.mp4")
    assert not list(tmp_path.iterdir())


def test_the_first_page_shows_what_its_command_makes():
    """The committed file is small, and the generator gives its frames: but for rounding, colour by colour."""
    content = (resources.files("spdebench.report.site") / "static" / film.FILE).read_bytes()
    assert len(content) < 100_000
    words = shlex.split(film.COMMAND)
    assert words[:4] == ["spdebench", "plot", "animation", "nse"] and words[-2:] == ["--out", film.FILE]
    eq = spec.build(EQUATIONS["nse"], spec.parse_overrides(words[4:-2]), "nse")
    frames, found = animation_frames(eq), colours(content)
    assert found.shape[:3] == frames.shape
    palette = {}
    for index in range(COLOURS):
        shades, counts = np.unique(found[frames == index], axis=0, return_counts=True)
        palette[index] = shades[counts.argmax()]
    same = (np.array([palette[index] for index in range(COLOURS)])[frames] == found).all(-1)
    assert len({tuple(shade) for shade in palette.values()}) == COLOURS and same.mean() > 0.999
