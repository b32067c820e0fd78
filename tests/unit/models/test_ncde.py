"""NCDE, NRDE and NCDE-FNO: counts, formulas written out slowly, symmetries, causality, what zero means."""

from __future__ import annotations

import pytest
import torch
from overfit import calibrated, errors, tiny, used

from spdebench import build
from spdebench.errors import UserError
from spdebench.models.ncde_fno import Convolution, add_convolution
from spdebench.signatures import log_signature
from spdebench.tasks import Batch
from speed.models.base import phi41_setting

NAMES = ("ncde", "nrde", "ncde-fno")


def test_counts():
    """The paper's, and by the formula for other sizes."""
    setting = phi41_setting()
    assert build("ncde", setting).counts() == {"parameters": 545_088, "real": 545_088}
    assert build("nrde", setting).counts() == {"parameters": 8_656_656, "real": 8_656_656}
    assert build("ncde-fno", setting, form="published").counts() == {"parameters": 48_769, "real": 48_769}
    h, n, w = 8, 128, 128
    expected = h * (2 * n + 1) + n + w * (h + 1) + (w + 1) * h * (n + 1)
    assert build("ncde", setting, hidden=h).counts()["parameters"] == expected
    # without BatchNorm, the map before the convolution and the redundant half of its 16 matrices
    assert build("ncde-fno", setting).counts()["parameters"] == 48_769 - 64 - 32 * 33 - 32 * 32 * (2 * 16 - 2 * 9)


def test_the_formula_of_ncde():
    model, features, u = calibrated("ncde", inputs="u0+xi", hidden=5, solver="euler")
    u0, dw = features["u0"], features["dw"]
    size = dw.sum(1).square().mean().sqrt()
    z = model.lift((u0 - u0.mean()) / u0.std(correction=0))
    mean = u.mean(0)
    spread = (u - mean).square().mean().sqrt()
    out = model(features)
    assert torch.equal(out[:, 0], u0)
    for n in range(1, 11):
        dx = torch.cat([torch.full((4, 1), 10**-0.5), dw[:, n] / size], dim=1)
        layers = model.field.outer(torch.relu(model.field.inner(z))).tanh().view(4, 5, 17)
        z = z + torch.einsum("bhc,bc->bh", layers, dx)
        torch.testing.assert_close(out[:, n], mean[n] + spread * model.readout(z), atol=1e-5, rtol=1e-4)


def test_the_formula_of_nrde():
    model, features, _ = calibrated("nrde", inputs="u0+xi", hidden=4, window=4)
    model.field.outer.weight.data.mul_(10)
    dx = torch.cat([torch.full((4, 10, 1), 10**-0.5), model.noise(features["dw"][:, 1:])], dim=2)
    path = torch.cat([torch.zeros(4, 1, 17), dx.cumsum(1)], dim=1)
    z = [model.lift(model.initial(features["u0"]))]
    for n in range(1, 11):
        k = (n - 1) // 4 * 4
        piece = log_signature(path[:, k : n + 1])
        piece[:, 17:] /= 8  # areas an increment
        z.append(z[k] + torch.einsum("bhc,bc->bh", model.field(z[k]), piece))
    expected = model.solution.inverse(model.readout(torch.stack(z, dim=1)))
    torch.testing.assert_close(model(features)[:, 1:], expected[:, 1:], atol=1e-5, rtol=1e-4)


def test_nrde_refuses_windows_beyond_the_path():
    with pytest.raises(UserError, match=r"window must lie in 1\.\.10 here, got 11"):
        build("nrde", tiny()[0], window=11)


@pytest.mark.parametrize("name", ["ncde", "nrde"])
def test_without_a_readout_the_mean_is_predicted(name):
    model, features, u = calibrated(name)
    torch.nn.init.zeros_(model.readout.weight)
    torch.nn.init.zeros_(model.readout.bias)
    torch.testing.assert_close(model(features)[:, 1:], u.mean(0, keepdim=True)[:, 1:].expand(4, -1, -1))


# --- ncde-fno -----------------------------------------------------------------------------------------------------
def convolved(layer: Convolution, z: torch.Tensor, v: torch.Tensor | None = None) -> torch.Tensor:
    """v + K * z on ``(B, X.., h)``."""
    points = z.shape[1:-1]
    matrices = layer.matrices(points).flatten(3, 4).flatten(1, 2) / points.numel()
    v, z = (t.flatten(1, -2).clone() for t in (torch.zeros_like(z) if v is None else v, z))
    out = add_convolution(v, z, layer.waves(points), lambda x: torch.einsum("bki,koi->bko", x, matrices))
    return out.unflatten(1, points)


@pytest.mark.parametrize(("points", "modes"), [(16, 8), (16, 16), (15, 15), (16, 7), (12, 1)])
def test_published_convolution_by_fft(points, modes):
    """Full complex transform, centred window of modes, one matrix per mode, real part."""
    torch.manual_seed(0)
    layer = Convolution(3, modes, published=True).double()
    z = torch.randn(2, points, 3, dtype=torch.float64)
    weight = torch.view_as_complex(layer.weight.detach())  # (from, to, modes)
    spectrum = torch.zeros(2, points, 3, dtype=torch.complex128)
    for j in range(modes):
        k = j - modes // 2
        spectrum[:, k] = torch.fft.fft(z, dim=1)[:, k] @ weight[:, :, j]
    torch.testing.assert_close(convolved(layer, z), torch.fft.ifft(spectrum, dim=1).real)


@pytest.mark.parametrize(("points", "modes"), [(16, 8), (16, 16), (15, 15)])
def test_default_convolution_is_that_of_a_real_kernel(points, modes):
    torch.manual_seed(0)
    layer = Convolution(3, modes, published=False).double()
    z, v = torch.randn(2, 2, points, 3, dtype=torch.float64)
    half = torch.fft.rfft(z, dim=1)
    weight = torch.view_as_complex(layer.weight.detach())
    spectrum = torch.zeros_like(half)
    spectrum[:, : modes // 2 + 1] = torch.einsum("bki,kij->bkj", half[:, : modes // 2 + 1], weight)
    torch.testing.assert_close(convolved(layer, z, v), v + torch.fft.irfft(spectrum, n=points, dim=1))


@pytest.mark.parametrize(("points", "modes"), [((8, 12), 6), ((7, 7), 7), ((8, 6), 6), ((6, 5, 4), 3), ((4, 4, 4), 4)])
def test_convolution_in_several_dimensions_by_fft(points, modes):
    """Re sum_k c_k K_k z^_k e^{2 pi i k.x} over one k of each pair +-k. The c_k of all k that are the same wave on the
    grid, up to the sign, have the sum 1 if k and -k are the same wave, else 2."""
    torch.manual_seed(0)
    layer = Convolution(3, modes, published=False, dim=len(points)).double()
    z, v = torch.randn(2, 2, *points, 3, dtype=torch.float64)
    axes, top = tuple(range(1, len(points) + 1)), modes // 2
    assert len(layer.weight) == ((2 * top + 1) ** len(points) + 1) // 2
    mean = torch.fft.fftn(z, dim=axes, norm="forward")
    expected = v.clone()
    waves = [
        {tuple(s * a % n for a, n in zip(k, points, strict=True)) for s in (1, -1)} for k in layer.numbers.tolist()
    ]
    for k, matrix, wave in zip(
        layer.numbers.tolist(), torch.view_as_complex(layer.weight.detach()), waves, strict=True
    ):
        spectrum = torch.zeros_like(mean)
        at = (slice(None), *(a % n for a, n in zip(k, points, strict=True)))
        spectrum[at] = mean[at] @ matrix
        expected += len(wave) / waves.count(wave) * torch.fft.ifftn(spectrum, dim=axes, norm="forward").real
    torch.testing.assert_close(convolved(layer, z, v), expected)


@pytest.mark.parametrize("points", [(8,), (7,), (4, 4), (5, 5), (4, 6), (4, 4, 4)])
def test_convolution_with_the_matrix_one_leaves_its_modes_unchanged(points):
    """K = 1 at every wave number counts each wave of the grid once, also a Nyquist wave, which several k describe."""
    layer = Convolution(2, min(points), published=False, dim=len(points)).double()
    with torch.no_grad():
        layer.weight.zero_()[..., 0] = torch.eye(2, dtype=torch.float64)
    z = torch.randn(3, *points, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    axes = tuple(range(1, z.ndim - 1))
    spectrum = torch.fft.fftn(z, dim=axes)
    for axis, n in zip(axes, points, strict=True):
        k = (torch.fft.fftfreq(n) * n).round().abs()
        spectrum *= (k <= layer.modes // 2).view(-1, *(1 for _ in range(z.ndim - 1 - axis)))
    torch.testing.assert_close(convolved(layer, z), torch.fft.ifftn(spectrum, dim=axes).real)


def test_wave_numbers_are_one_of_each_pair():
    for dim, modes in ((1, 6), (2, 5), (3, 4)):
        numbers = [tuple(k) for k in Convolution(2, modes, published=False, dim=dim).numbers.tolist()]
        opposite = {tuple(-a for a in k) for k in numbers}
        assert set(numbers) & opposite == {(0,) * dim}
        assert len(set(numbers) | opposite) == (2 * (modes // 2) + 1) ** dim


def test_convolution_does_not_depend_on_the_grid():
    """A field of few modes has the same convolution on a grid twice as fine."""
    torch.manual_seed(0)
    layer = Convolution(3, 8, published=False).double()
    coarse = torch.fft.irfft(torch.randn(2, 4, 3, dtype=torch.complex128), n=16, dim=1, norm="forward")
    fine = torch.fft.irfft(torch.fft.rfft(coarse, dim=1, norm="forward"), n=32, dim=1, norm="forward")
    torch.testing.assert_close(convolved(layer, fine)[:, ::2], convolved(layer, coarse))


@pytest.mark.parametrize("form", ["default", "published"])
@pytest.mark.parametrize("solver", ["euler", "heun", "rk4"])
def test_ncde_fno_commutes_with_translations(form, solver):
    model, features, _ = calibrated("ncde-fno", inputs="u0+xi", hidden=6, width=8, form=form, solver=solver)
    model.eval()
    moved = model({k: v.roll(5, dims=-1) for k, v in features.items()})
    torch.testing.assert_close(moved, model(features).roll(5, dims=-1), atol=1e-5, rtol=1e-4)


def test_ncde_fno_in_two_dimensions_is_that_of_one_if_nothing_depends_on_y():
    """With the matrices of k = (k, 0) those of one dimension, and all other weights equal."""
    line, features, u = calibrated("ncde-fno", inputs="u0+xi", hidden=6, width=8, space_modes=6)
    plane, _, _ = calibrated("ncde-fno", dim=2, inputs="u0+xi", hidden=6, width=8, space_modes=6)
    own, kernel = line.state_dict(), plane.field.kernel
    matrices = kernel.weight.detach().clone()
    for k, matrix in zip(kernel.numbers.tolist(), matrices, strict=True):
        if k[1] == 0:
            matrix.copy_(own["field.kernel.weight"][k[0]])
    plane.load_state_dict({**own, "field.kernel.weight": matrices})
    plane.field.step = line.field.step
    wide = {key: value.unsqueeze(-1).expand(*value.shape, 6) for key, value in features.items()}
    torch.testing.assert_close(plane(wide), line(features).unsqueeze(-1).expand(*u.shape, 6), atol=1e-5, rtol=1e-4)


def test_ncde_fno_of_the_authors_is_for_one_dimension():
    with pytest.raises(UserError, match="form=published is for one space dimension; use form=default"):
        build("ncde-fno", tiny(2)[0], form="published")


def test_ncde_fno_predicts_on_a_finer_grid():
    """The same weights on twice the points: on the points that both have, nearly the same."""
    model, features, _ = calibrated("ncde-fno", inputs="u0+xi", hidden=6, width=8, space_modes=8)
    smooth = {k: torch.fft.rfft(v, norm="forward")[..., :4] for k, v in features.items()}
    coarse, fine = ({k: torch.fft.irfft(v, n=n, norm="forward") for k, v in smooth.items()} for n in (16, 32))
    torch.testing.assert_close(model(fine)[..., ::2], model(coarse), atol=1e-3, rtol=1e-3)
    with pytest.raises(UserError, match="8 modes need at least as many grid points, got 4"):
        model({k: v[..., ::4] for k, v in coarse.items()})


def test_published_batch_norm_is_still_in_evaluation():
    model, features, _ = calibrated("ncde-fno", hidden=6, width=8, form="published", solver="euler")
    before = model.field.norm.running_mean.clone()
    model(features)
    assert not torch.equal(model.field.norm.running_mean, before)
    model.eval()
    before = model.field.norm.running_mean.clone()
    alone = model({k: v[:1] for k, v in features.items()})
    torch.testing.assert_close(alone, model(features)[:1])
    assert torch.equal(model.field.norm.running_mean, before)


# --- all ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", NAMES)
def test_causal_to_the_bit_and_every_increment_counts(name):
    config = {} if name == "nrde" else {"solver": "rk4"}
    model, _, _ = calibrated(name, hidden=6, **config)
    _, batch, _ = tiny()
    u = model.predict(batch)
    for n in range(1, 11):
        dw = batch.dw.clone()
        dw[:, n:] += 1.0
        moved = model.predict(Batch(batch.u0, dw))
        assert torch.equal(moved[:, :n], u[:, :n])
        assert bool((moved[:, n] != u[:, n]).all(-1).all())


@pytest.mark.parametrize("inputs", ["xi", "u0+xi"])
@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_used(name, inputs):
    model, features, _ = calibrated(name, inputs=inputs)
    assert all(used(model, features).values())


@pytest.mark.parametrize("name", NAMES)
def test_a_few_steps_of_training_help(name):
    config = {"ncde-fno": {"form": "published", "solver": "heun", "hidden": 8, "width": 16}}.get(name, {})
    model, features, u = calibrated(name, inputs="u0+xi", **config)
    model.train()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    first = errors(model(features), u).mean().item()
    for _ in range(30):
        optimiser.zero_grad()
        errors(model(features), u).mean().backward()
        optimiser.step()
    assert errors(model(features), u).mean().item() < first / 2
