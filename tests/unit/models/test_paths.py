"""Controlled differential equations on increments: exact steps, orders, gradients, log-signatures, normalisers."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

from spdebench.errors import UserError
from spdebench.models.layers.normalise import Scale, Standard
from spdebench.models.paths import MatrixField, integrate, log_ode, logode, partial_log_signatures, product
from spdebench.signatures import log_signature, signature
from speed.models import ncde as bench

ORDERS = {"euler": 1, "heun": 2, "rk4": 4}


def paths(batch: int = 3, steps: int = 7, channels: int = 4) -> torch.Tensor:
    generator = torch.Generator().manual_seed(5)
    return 0.3 * torch.randn(batch, steps, channels, generator=generator, dtype=torch.float64)


def field(hidden: int, channels: int) -> MatrixField:
    torch.manual_seed(2)
    made = MatrixField(hidden, channels, 16).double()
    made.outer.weight.data.mul_(10)
    return made


# --- integrate ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("solver", ORDERS)
def test_a_linear_equation_is_multiplied_by_the_exponentials_taylor_polynomial(solver):
    """dz = z dX: each step, with the increment of its own interval, is sum_{k <= order} dX^k / k!."""
    dx = paths(channels=1)
    factors = sum(dx**k / math.factorial(k) for k in range(ORDERS[solver] + 1))
    z = integrate(lambda z, d: z * d, torch.ones(3, 1, dtype=torch.float64), dx, solver)
    torch.testing.assert_close(z[:, 1:], factors.cumprod(1))
    assert torch.equal(z[:, 0], torch.ones(3, 1, dtype=torch.float64))


@pytest.mark.parametrize("solver", ORDERS)
def test_order_of_convergence(solver):
    """dz = (1 + z^2) dX along X = sin: z = tan(sin t)."""
    gaps = []
    for steps in (20, 40, 80):
        t = torch.linspace(0, 1.2, steps + 1, dtype=torch.float64)
        z = integrate(lambda z, d: (1 + z * z) * d, torch.zeros(1, 1).double(), t.sin().diff()[None, :, None], solver)
        gaps.append(float((z[0, :, 0] - t.sin().tan()).abs().max()))
    rates = [math.log2(a / b) for a, b in pairwise(gaps)]
    assert rates[-1] == pytest.approx(ORDERS[solver], abs=0.15)


@pytest.mark.parametrize("solver", ORDERS)
def test_it_is_causal_and_uses_every_increment(solver):
    f, dx = field(3, 4), paths()
    z = integrate(product(f), torch.ones(3, 3).double(), dx, solver)
    for n in range(dx.shape[1]):
        other = dx.clone()
        other[:, n] += 1.0
        moved = integrate(product(f), torch.ones(3, 3).double(), other, solver)
        assert torch.equal(moved[:, : n + 1], z[:, : n + 1])
        assert bool((moved[:, n + 1] != z[:, n + 1]).all())


@pytest.mark.parametrize("solver", ORDERS)
def test_gradients_are_those_of_the_steps(solver):
    f, dx = field(2, 2), paths(2, 3, 2)
    start = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda s, w: integrate(product(f), s, w, solver), (start, dx.requires_grad_()))


def test_an_unknown_solver_is_refused():
    with pytest.raises(UserError, match="euler, heun, rk4, got 'midpoint'"):
        integrate(lambda z, d: z, torch.zeros(1, 1), torch.zeros(1, 1, 1), "midpoint")


@pytest.mark.parametrize("solver", ["euler", "rk4"])
def test_torchcde_agrees_when_it_looks_into_the_interval(solver):
    """With ``perturb`` slopes at frames are those of the interval being stepped over."""
    torchcde = pytest.importorskip("torchcde")
    f, dx, start = field(3, 4), paths(), torch.ones(3, 3).double()
    path = torch.cat([torch.zeros(3, 1, 4).double(), dx.cumsum(1)], dim=1)
    control = torchcde.LinearInterpolation(path)
    t = torch.arange(8.0, dtype=torch.float64)
    options = {"perturb": True}
    z = torchcde.cdeint(control, lambda _, z: f(z), start, t, adjoint=False, method=solver, options=options)
    torch.testing.assert_close(z, integrate(product(f), start, dx, solver), atol=1e-12, rtol=1e-12)


def test_torchcde_as_the_reference_calls_it_lags_by_one_increment():
    torchcde = pytest.importorskip("torchcde")
    f, dx, start = field(3, 4), paths(), torch.ones(3, 3).double()
    path = torch.cat([torch.zeros(3, 1, 4).double(), dx.cumsum(1)], dim=1)
    t = torch.arange(8.0, dtype=torch.float64)
    z = torchcde.cdeint(torchcde.LinearInterpolation(path), lambda _, z: f(z), start, t, adjoint=False, method="euler")
    lagged = torch.cat([dx[:, :1], dx[:, :-1]], dim=1)
    torch.testing.assert_close(z, integrate(product(f), start, lagged, "euler"), atol=1e-12, rtol=1e-12)


# --- log-signatures -----------------------------------------------------------------------------------------------
def test_partial_log_signatures_are_log_signatures_of_the_parts():
    dx = paths(2, 5, 4)
    path = torch.cat([torch.zeros(2, 1, 4).double(), dx.cumsum(1)], dim=1)
    partial = partial_log_signatures(dx)
    for n in range(5):
        torch.testing.assert_close(partial[:, n], log_signature(path[:, : n + 2]))


def test_partial_log_signatures_against_pysiglib():
    pytest.importorskip("pysiglib")
    dx = paths(2, 5, 4)
    path = torch.cat([torch.zeros(2, 1, 4).double(), dx.cumsum(1)], dim=1)
    levels = signature(path, 2, backend="pysiglib")
    square = levels[:, 4:].view(2, 4, 4)
    i, j = torch.triu_indices(4, 4, 1)
    expected = torch.cat([levels[:, :4], (square[:, i, j] - square[:, j, i]) / 2], dim=1)
    torch.testing.assert_close(partial_log_signatures(dx)[:, -1], expected)


@pytest.mark.parametrize("window", [1, 2, 3, 7])
def test_log_ode_frame_by_frame(window):
    """z_n = z_k + f(z_k) LogSig_{k,n}, each log-signature taken of the path itself."""
    dx, f = paths(), field(3, 10)
    path = torch.cat([torch.zeros(3, 1, 4).double(), dx.cumsum(1)], dim=1)
    expected = [torch.ones(3, 3).double()]
    for n in range(1, 8):
        k = (n - 1) // window * window
        piece = log_signature(path[:, k : n + 1])
        expected.append(expected[k] + torch.einsum("bhc,bc->bh", f(expected[k]), piece))
    z = log_ode(f, expected[0], dx, window)
    torch.testing.assert_close(z, torch.stack(expected, dim=1))


@pytest.mark.parametrize("numbers", [1, 60, 1 << 20])
def test_log_ode_does_not_depend_on_how_many_windows_are_formed_together(numbers, monkeypatch):
    dx, f = paths(), field(3, 10)
    start = torch.ones(3, 3).double()
    one = torch.cat([start[:, None], torch.zeros(3, 7, 3).double()], dim=1)
    for first in range(0, 7, 2):  # by hand, window by window
        piece = partial_log_signatures(dx[:, first : first + 2])
        one[:, first + 1 : first + 3] = one[:, [first]] + piece @ f(one[:, first]).mT
    monkeypatch.setattr(logode, "_AT_ONCE", {"cpu": numbers})
    torch.testing.assert_close(log_ode(f, start, dx, 2), one, atol=1e-14, rtol=1e-13)


def test_log_ode_sees_the_order_of_increments_but_never_later_ones():
    dx, f = paths(), field(3, 10)
    start = torch.ones(3, 3).double()
    f.requires_grad_(False)
    z = log_ode(f, start, dx, 3)
    swapped = log_ode(f, start, dx[:, [1, 0, 2, 3, 4, 5, 6]], 3)
    assert float((swapped[:, 3] - z[:, 3]).abs().min()) > 1e-6  # same sum, another area
    for n in range(7):
        other = dx.clone()
        other[:, n:] += 1.0
        assert torch.equal(log_ode(f, start, other, 3)[:, : n + 1], z[:, : n + 1])


# --- normalisers --------------------------------------------------------------------------------------------------
def test_normalisers():
    torch.manual_seed(0)
    values = 3 + 2 * torch.randn(50, 4, 5)
    scale, number, mean = Scale(), Standard(), Standard((4, 5))
    for n in (scale, number, mean):
        assert torch.equal(n(values), values)  # identity before fit
        n.fit(values)
    assert float(scale(values).square().mean()) == pytest.approx(1, rel=1e-5)
    for n in (number, mean):
        torch.testing.assert_close(n.inverse(n(values)), values)
        assert float(n(values).square().mean()) == pytest.approx(1, rel=1e-5)
    torch.testing.assert_close(mean.inverse(torch.zeros(1, 4, 5))[0], values.mean(0))
    copy = Standard((4, 5))
    copy.load_state_dict(mean.state_dict())
    assert torch.equal(copy(values), mean(values))


def test_data_that_do_not_vary_are_not_blown_up():
    constant = torch.linspace(0, 1, 5).expand(7, 5)
    field_mean = Standard((5,))
    field_mean.fit(constant)
    assert float(field_mean.size) == 1.0 and float(field_mean(constant).abs().max()) < 1e-6


# --- the plain side of the speed case -----------------------------------------------------------------------------
def test_the_speed_case_runs_and_its_adjoint_is_torchdiffeqs():
    one = bench.case(batch=2)
    one.ours()
    one.plain()
    torchdiffeq = pytest.importorskip("torchdiffeq")
    f, dx = field(3, 4), paths()
    t = torch.arange(8.0, dtype=torch.float64)
    parameters = tuple(f.parameters())

    def slope(t, z):
        return (f(z) @ dx[:, int(t.clamp(max=6)), :, None]).squeeze(2)

    grads = []
    for solve in (
        lambda s: bench._Adjoint.apply(slope, s, t, *parameters),
        lambda s: torchdiffeq.odeint_adjoint(slope, s, t, method="euler", adjoint_params=parameters),
    ):
        start = torch.ones(3, 3).double().requires_grad_()
        out = solve(start)
        grads.append(torch.autograd.grad(out.sin().sum(), [start, *parameters]))
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, atol=1e-10, rtol=1e-10)
