"""FNO: the published count, the plain formula, its units."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from overfit import calibrated, tiny
from torch.nn import functional

from spdebench import build, equation
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.tasks import Batch, Setting


def test_counts():
    phi = equation("phi41")
    setting = Setting(phi.grid, tuple(phi.times.tolist()), "xi", phi)
    assert build("fno", setting, form="published").counts()["parameters"] == 4_924_449
    flat = Setting(Grid.unit(16, 2), tuple(n / 100 for n in range(100)), "xi")
    model = build("fno", flat, form="published", width=32, layers=3, modes=(8, 8, 8))
    assert model.counts()["parameters"] == 6_302_305


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("inputs", ["xi", "u0+xi"])
def test_is_the_plain_formula(dim, inputs):
    """The whole noise path and the coordinates at every (t, x), FFTs over all modes, padded in time."""
    model, features, _ = calibrated("fno", dim, inputs, width=5, layers=2, form="published")
    dw = features["dw"] / model.scales[0]
    frames, points = dw.shape[1], dw.shape[2:]
    channels = [dw.movedim(1, -1)[:, None].expand(-1, frames, *points, frames)]
    if inputs == "u0+xi":
        u0 = features["u0"] / model.scales[1]
        channels.append(u0[:, None, ..., None].expand(-1, frames, *points, 1))
    for axis, n in enumerate((frames, *points)):
        x = torch.arange(n) / (n - (axis == 0))
        shape = [1] * (dim + 2)
        shape[axis + 1] = n
        channels.append(x.reshape(shape)[..., None].expand(len(dw), frames, *points, 1))
    h = functional.pad(model.lift(torch.cat(channels, -1)).movedim(-1, 1), [*(0, 0) * dim, 0, 6])  # (B, C, T, X..)
    axes, trunk = tuple(range(3, 3 + dim)), model.trunk
    modes = trunk.fourier.modes
    numbers = [torch.tensor(modes.numbers(a)) for a in range(dim)]
    kept = (..., *torch.meshgrid(torch.arange(modes.time), *numbers, indexing="ij"))
    for i, (spectral, local) in enumerate(zip(trunk.spectral, trunk.local, strict=True)):
        z = torch.fft.rfftn(h, dim=(*axes, 2))
        out = torch.zeros_like(z)
        out[kept] = torch.einsum("bi...,...io->bo...", z[kept], spectral.weight)
        far = torch.fft.irfftn(out, s=(*points, frames + 6), dim=(*axes, 2))
        h = far + local(h.movedim(1, -1)).movedim(-1, 1)
        h = functional.gelu(h) if i == 0 else h
    expected = trunk.decode(h[:, :, :frames].movedim(1, -1)).squeeze(-1) * model.scales[2]
    torch.testing.assert_close(model(features), expected, rtol=1e-4, atol=1e-5)


def test_forms_are_one_function():
    published, features, _ = calibrated("fno", form="published")
    default, _, _ = calibrated("fno")
    torch.testing.assert_close(default(features), published(features))
    assert default.counts()["real"] == published.counts()["real"]
    assert not any(p.is_complex() for p in default.parameters())


def test_units_do_not_matter():
    setting, batch, u = tiny(inputs="u0+xi")
    torch.manual_seed(0)
    model = build("fno", setting)
    model.calibrate(model.prepare(batch), u)
    v = model.predict(batch)
    other = dataclasses.replace(batch, u0=3 * batch.u0, dw=10 * batch.dw)
    model.calibrate(model.prepare(other), 7 * u)
    torch.testing.assert_close(model.predict(other), 7 * v, rtol=1e-4, atol=1e-4)


def test_other_points_but_not_other_frames():
    model, _, _ = calibrated("fno")
    assert model.predict(Batch(torch.randn(2, 24), torch.randn(2, 11, 24))).shape == (2, 11, 24)
    with pytest.raises(UserError, match="11 frames"):
        model.predict(Batch(torch.randn(2, 16), torch.randn(2, 13, 16)))
