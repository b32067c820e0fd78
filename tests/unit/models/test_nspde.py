"""NSPDE and NSPDE-S: counts, the kernel as a semigroup and a real convolution, the scaling by a(t)."""

from __future__ import annotations

import math

import pytest
import torch
from overfit import calibrated, tiny

from spdebench import build, equation
from spdebench.equations import renormalise
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.models.layers import linear
from spdebench.models.nspde import ComplexKernel, RealKernel
from spdebench.models.nspde_s import constant, linear_variance
from spdebench.tasks import Batch, Setting, TaskSpec


def _convolve(kernel, h, frames):
    lengths = (frames, *h.shape[1:-2])
    return kernel.inverse(kernel(h, lengths), lengths, frames)


def _fill(kernel: RealKernel, spectrum: torch.Tensor) -> None:
    """Give a kernel the symbol spectrum(w, k..) times the identity."""
    flat, eye = spectrum.reshape(-1)[kernel.dropped :], torch.eye(len(kernel.mean))
    with torch.no_grad():
        kernel.mean.copy_(flat[0].real * eye)
        kernel.pairs.copy_(torch.view_as_real(flat[1:]).T[..., None, None] * eye)


@pytest.mark.parametrize(
    ("modes", "count"), [((64, 50), 3_283_457), ((8, 8, 8), 530_945), ((16, 8, 8), 1_055_233), ((16, 16, 8), 2_103_809)]
)
def test_counts(modes, count):
    setting = Setting(Grid.unit(128 if len(modes) == 2 else 32, len(modes) - 1), tuple(n / 50 for n in range(51)), "xi")
    assert build("nspde", setting, form="published", modes=modes).counts()["parameters"] == count


def test_semigroup_and_its_convolution():
    """With K the transform of exp(-l_k t_n): S_t z_0 is the semigroup, S * H its circular convolution in time."""
    frames, points = 11, 16
    kernel = RealKernel((5, 5), 2, (frames, points))
    rate = 0.1 * torch.tensor(kernel.fourier.modes.numbers(0)) ** 2
    decay = torch.exp(-rate * torch.arange(frames)[:, None])
    _fill(kernel, torch.fft.fft(decay, dim=0)[: kernel.fourier.modes.time])
    x, n = 2 * math.pi * torch.arange(points) / points, torch.arange(frames)[:, None]
    waves = 1.3 + 0 * x, torch.cos(2 * x), torch.sin(5 * x)
    parts = [torch.exp(-0.1 * k**2 * n) * wave for k, wave in zip((0, 2, 5), waves, strict=True)]
    z0 = sum(waves)[None, :, None, None].expand(1, points, 3, 2)
    flow = _convolve(kernel, z0, frames)
    torch.testing.assert_close(flow, sum(parts)[..., None, None].expand(flow.shape), rtol=1e-5, atol=1e-5)

    h = torch.zeros(frames, points, 3, 2)
    h[4], h[9] = z0[0], -2 * z0[0]
    torch.testing.assert_close(
        _convolve(kernel, h, frames), flow.roll(4, 0) - 2 * flow.roll(9, 0), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize(("tops", "lengths"), [((2, 3), (7, 6)), ((1, 2, 2), (5, 4, 5)), ((1, 1, 1, 1), (3, 3, 3, 3))])
def test_kernel_has_neither_dead_nor_redundant_parameters(tops, lengths):
    """As many numbers as modes, and each moves the response to an impulse in its own direction."""
    kernel = RealKernel(tops, 1, lengths)
    numbers = kernel.mean.numel() + kernel.pairs.numel()
    assert numbers == math.prod(2 * t + 1 for t in tops)
    impulse = torch.zeros(*lengths, 1, 1)
    impulse.view(-1)[0] = 1
    shapes = [p.shape for p in kernel.parameters()]

    def response(flat):
        mean, pairs = (f.view(s) for f, s in zip(flat.split([s.numel() for s in shapes]), shapes, strict=True))
        out = torch.func.functional_call(kernel, {"mean": mean, "pairs": pairs}, (impulse, lengths))
        return kernel.inverse(out, lengths, lengths[0]).flatten()

    jacobian = torch.stack([response(row) for row in torch.eye(numbers)])
    assert torch.linalg.matrix_rank(jacobian) == numbers


def test_real_and_complex_kernels_agree():
    """A complex kernel with K(-w,-k) = conj K(w,k) is the real one."""
    torch.manual_seed(0)
    frames, points, width = 7, (5, 8), 3
    real, full = RealKernel((2, 2, 3), width, (frames, *points)), ComplexKernel((5, 5, 7), width)
    impulses = torch.zeros(frames, *points, width, width)
    impulses[0, 0, 0] = torch.eye(width)
    response = torch.fft.fftn(_convolve(real, impulses, frames), dim=(0, 1, 2))
    with torch.no_grad():
        full.weight.copy_(response[full._window((frames, *points))])
    h = torch.randn(frames, *points, 4, width)
    torch.testing.assert_close(_convolve(full, h, frames), _convolve(real, h, frames), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(_convolve(full, h[:1], frames), _convolve(real, h[:1], frames), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("form", ["default", "published"])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_commutes_with_translations(dim, form):
    model, _, _ = calibrated("nspde", dim, "u0+xi", hidden=4, picard=2, padding=3, form=form)
    _, batch, _ = tiny(dim, "u0+xi")
    shift, axes = (3, 1, 2)[:dim], tuple(range(-dim, 0))
    moved = Batch(batch.u0.roll(shift, axes), batch.dw.roll(shift, axes))
    torch.testing.assert_close(model.predict(moved), model.predict(batch).roll(shift, axes), rtol=1e-4, atol=1e-4)


def test_kernel_acts_alike_on_a_finer_grid():
    torch.manual_seed(0)
    kernel = RealKernel((3, 4), 2, (9, 8))
    z = torch.randn(9, 3, 2, 2, dtype=torch.complex64)
    coarse, fine = (torch.fft.irfft(z, n=n, dim=1, norm="forward") for n in (8, 32))
    torch.testing.assert_close(_convolve(kernel, fine, 9)[:, ::4], _convolve(kernel, coarse, 9), rtol=1e-4, atol=1e-6)


def test_evaluation_is_what_was_trained_for_every_number_of_iterates():
    """The statistics of one iterate do not spoil those of another."""
    for picard in (1, 3):
        model, features, _ = calibrated("nspde", picard=picard)
        model.train()
        trained = model(features)
        model.eval()
        gap = (model(features) - trained).norm() / (trained - trained.mean()).norm()
        assert gap < 1e-2


def test_other_frames_are_refused():
    model, _, _ = calibrated("nspde")
    assert model.predict(Batch(torch.randn(2, 24), torch.randn(2, 11, 24))).shape == (2, 11, 24)
    with pytest.raises(UserError, match="11 frames"):
        model.predict(Batch(torch.randn(2, 16), torch.randn(2, 13, 16)))


# --- NSPDE-S ------------------------------------------------------------------------------------------------------
def test_constant_is_the_variance_of_the_linear_solution():
    times = torch.linspace(0, 0.025, 4, dtype=torch.float64)
    for truncation in (8, 32):  # the second aliases on 16 points
        exact = equation("phi42", truncation=truncation, points=16, frames=10, steps=10, renormalisation="exact")
        expected = exact.sigma**2 * renormalise.relaxed(*renormalise.mode_rates(exact), times)
        torch.testing.assert_close(linear_variance(exact, times), expected)
    paper = equation("phi42", truncation=8)
    torch.testing.assert_close(constant(paper, tuple(times.tolist())), renormalise.ball_variance(paper, times))

    sine = equation("phi41", boundary="dirichlet", truncation=6, points=16, edition="converged")
    rates = (math.pi * torch.arange(1, 7, dtype=torch.float64)) ** 2
    expected = sine.sigma**2 * renormalise.relaxed(rates, torch.ones_like(rates), times)
    torch.testing.assert_close(linear_variance(sine, times), expected)


def test_scaling_is_that_of_each_samples_own_equation():
    setting, batch, u = tiny(2)
    small, large = (setting.equation.replace(truncation=j) for j in (4, 8))
    mixed = Batch(batch.u0, batch.dw, (small, large), torch.tensor([0, 1, 1, 0]))
    torch.manual_seed(0)
    model = build("nspde-s", setting)
    features = model.prepare(mixed)
    model.calibrate(features, u)
    a = features["renorm"]
    assert a.shape == (4, 11) and (a[1, 1:] > a[0, 1:]).all() and (a[0] == a[3]).all()
    assert model.largest == a.max()
    alone = model.predict(Batch(batch.u0[1:2], batch.dw[1:2], (large,), torch.tensor([0])))
    torch.testing.assert_close(alone[0], model.predict(mixed)[1], rtol=1e-4, atol=1e-5)

    model.eval()
    plain = build("nspde", setting, modes=model.config.modes, picard=model.config.picard)
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if k != "largest"})
    plain.eval()
    torch.testing.assert_close(model({**features, "renorm": 0 * a}), plain(features))
    z = model.latent(features["dw"], features["u0"])
    factor = 2 * torch.sigmoid(a / a.max())
    expected = model.decode(z * factor.T[:, None, None, :, None])
    torch.testing.assert_close(model(features), expected)
    assert factor.min() == 1 and factor.max() < 1.463
    assert model.counts() == plain.counts()


@pytest.mark.parametrize("name", ["nspde", "ncde-fno"])
def test_networks_too_wide_for_a_kernel_train_on_a_gpu(name, monkeypatch):
    """There the linear layers of a perceptron have gradients of their own, summed over pieces of the rows."""
    model, features, _ = calibrated(name, hidden=40)

    def gradients():
        return torch.autograd.grad(model(features).square().mean(), list(model.parameters()))

    expected, several = gradients(), [1, 2, 4]
    monkeypatch.setattr(linear, "splitting_pays", lambda x, rows: True)
    monkeypatch.setattr("spdebench.accel.rows.pieces", lambda rows: max(k for k in several if rows % k == 0))
    monkeypatch.setattr("spdebench.accel.rows.splitting_pays", lambda x, rows: True)
    for got, wanted in zip(gradients(), expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5 * float(wanted.abs().max()))


@pytest.mark.parametrize("name", ["kdv", "wave", "phi43"])
def test_equations_without_a_settling_variance_are_refused(name):
    with pytest.raises(UserError, match="nspde-s"):
        build("nspde-s", TaskSpec().setting(equation(name)))
