"""Gathered weight gradients: those of plain autograd, whatever is asked for, and nothing stays behind."""

from __future__ import annotations

import copy
import gc
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from overfit import calibrated
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from spdebench.models import Features, OperatorModel
from spdebench.models.paths import gather, gathered, integrate, log_ode, product
from spdebench.models.paths.gather import _GradientSums

CASES: list[tuple[str, dict[str, Any]]] = [
    *(("ncde", {"hidden": 5, "solver": solver}) for solver in ("euler", "heun", "rk4")),
    *(("nrde", {"hidden": 4, "window": window}) for window in (1, 3, 10)),
    *(
        ("ncde-fno", {"hidden": 6, "width": 8, "solver": solver, "form": form})
        for solver in ("euler", "heun", "rk4")
        for form in ("default", "published")
    ),
]
ONE_EACH = [CASES[0], CASES[4], CASES[-1]]
KEYS = {
    "ncde": "lift readout field.inner field.outer",
    "nrde": "lift readout field.inner field.outer",
    "ncde-fno": "lift readout.0 readout.2 field.lift field.skip field.inner field.outer field.noise field.norm",
}


@pytest.fixture(autouse=True)
def every_weight_is_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU."""
    monkeypatch.setattr(gather, "_LARGE", 0)


def double(name: str, config: dict[str, Any]) -> tuple[OperatorModel, Features, Tensor]:
    model, features, u = calibrated(name, inputs="u0+xi", **config)
    if name != "ncde-fno":
        model.field.outer.weight.data.mul_(10)
    features = {k: v.double().requires_grad_() for k, v in features.items()}
    return model.double(), features, u.double()


# --- the formulas, by layers and plain autograd -------------------------------------------------------------------
def convolution(layer: Any, v: Tensor) -> Tensor:
    """K * v on ``(B, X, h)`` by FFT."""
    points = v.shape[1]
    spectrum, weight = torch.fft.fft(v, dim=1), torch.view_as_complex(layer.weight)
    out = torch.zeros((), dtype=torch.complex128)
    x = torch.arange(points, dtype=torch.float64) / points
    for j in range(weight.shape[2] if layer.published else len(weight)):
        k = j - layer.modes // 2 if layer.published else j
        matrix = weight[:, :, j] if layer.published else weight[j]
        twice = 1 if layer.published or k in (0, points / 2) else 2
        wave = torch.polar(torch.full_like(x, twice / points), 2 * math.pi * k * x)
        out = out + wave[:, None] * (spectrum[:, k] @ matrix)[:, None]
    return out.real


def plain(model: Any, features: Features) -> Tensor:
    u0, dw = features["u0"], features["dw"]
    if model.name == "ncde":
        states = integrate(product(model.field), model.lift(model.initial(u0)), model.control(dw), model.solver)
    elif model.name == "nrde":
        start = model.lift(model.initial(u0))
        states = log_ode(model.field, start, model.control(dw), model.window, model.area_weight)
    else:
        f = model.field

        def rate(z: Tensor, d: Tensor) -> Tensor:
            v = f.lift(z)
            drift = f.outer(functional.gelu(f.inner(f.skip(v) + convolution(f.kernel, v)))).tanh()
            return f.step * drift + f.norm(f.noise(z).flatten(0, 1)).view_as(z).tanh() * d[..., None]

        start = model.lift(model.initial(u0)[..., None])
        states = integrate(rate, start, model.noise(dw[:, 1:]), model.solver)
    u = model.solution.inverse(model.readout(states).reshape(*u0.shape[:1], -1, u0.shape[1]))
    return torch.cat([u0[:, None], u[:, 1:]], dim=1)


def gradients(out: Tensor, u: Tensor, model: OperatorModel, features: Features) -> dict[str, Tensor]:
    wanted = {**dict(model.named_parameters()), **features}
    wanted = {k: v for k, v in wanted.items() if v.requires_grad}
    return dict(zip(wanted, torch.autograd.grad((out * u.sin()).sum(), list(wanted.values())), strict=True))


def assert_same(got: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """To 1e-12 of the largest of all: a bias before a BatchNorm has no gradient but rounding."""
    assert got.keys() == expected.keys() and got
    size = max(float(g.abs().max()) for g in expected.values())
    for key, value in expected.items():
        scale = max(float(value.abs().max()), 1e-3 * size)
        assert float((got[key] - value).abs().max()) < 1e-12 * scale, key


# --- the models ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("name", "config"), CASES)
def test_value_and_gradients_are_those_of_plain_autograd(name, config, training):
    model, features, u = double(name, config)
    model.train(training)
    out, expected = model(features), plain(model, features)
    torch.testing.assert_close(out, expected, rtol=1e-12, atol=1e-12)
    if name == "ncde":
        assert torch.equal(out, expected)
    assert_same(gradients(out, u, model, features), gradients(expected, u, model, features))


@pytest.mark.parametrize(("name", "config"), ONE_EACH)
def test_the_value_does_not_depend_on_the_requested_gradients(name, config):
    model, features, _ = double(name, config)
    model.eval()
    out = model(features).detach()
    with torch.no_grad():
        without = model(features)
    assert not without.requires_grad
    torch.testing.assert_close(without, out, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("kept", ["", "field.outer.weight", "field.inner.bias", "lift.weight"])
@pytest.mark.parametrize(("name", "config"), ONE_EACH)
def test_weights_that_stand_still(name, config, kept):
    """Only u0 and dw are asked for, or one parameter besides."""
    model, features, u = double(name, config)
    for key, parameter in model.named_parameters():
        parameter.requires_grad_(key == kept)
    got = gradients(model(features), u, model, features)
    assert set(got) == {"u0", "dw", kept} - {""}
    assert_same(got, gradients(plain(model, features), u, model, features))


@pytest.mark.parametrize(("name", "config"), ONE_EACH)
def test_two_solves_before_one_pass_and_two_passes_over_one_solve(name, config):
    model, features, u = double(name, config)
    model.eval()
    other = {k: v.detach().flip(0) for k, v in features.items()}
    ((model(features) + 2 * model(other)) * u.sin()).sum().backward()
    one = {k: p.grad for k, p in model.named_parameters()}
    model.zero_grad()
    for given, factor in ((features, 1), (other, 2)):  # gradients add up over passes
        (factor * model(given) * u.sin()).sum().backward()
    assert_same({k: p.grad for k, p in model.named_parameters()}, one)
    model.zero_grad()
    out = model(features)
    (out * u.sin()).sum().backward(retain_graph=True)
    first = {k: p.grad.clone() for k, p in model.named_parameters()}
    (out[:, :5] * u[:, :5].cos()).sum().backward()  # the last frames are not met
    second = {k: p.grad - first[k] for k, p in model.named_parameters()}
    model.zero_grad()
    (plain(model, features)[:, :5] * u[:, :5].cos()).sum().backward()
    assert_same(second, {k: p.grad for k, p in model.named_parameters()})


@pytest.mark.parametrize(("name", "config"), ONE_EACH)
def test_names_copies_and_states(name, config):
    model, features, u = double(name, config)
    model.eval()
    before = set(vars(model)), set(vars(model.field))
    model(features)  # a pass that never comes
    (model(features) * u).sum().backward()
    assert (set(vars(model)), set(vars(model.field))) == before
    made = {key.rpartition(".")[0] for key, _ in model.named_parameters()} - {"field.kernel"}
    assert made == set(KEYS[name].split())
    twin = copy.deepcopy(model)
    twin.load_state_dict(model.state_dict())
    assert_same(gradients(twin(features), u, twin, features), gradients(plain(model, features), u, model, features))


@pytest.mark.parametrize(("name", "config"), ONE_EACH)
def test_compiled_and_half_precision_take_the_plain_way(name, config):
    model, features, u = double(name, config)
    model.eval()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert_same(
        gradients(compiled(features), u, model, features), gradients(plain(model, features), u, model, features)
    )
    start = torch.zeros(2, 3)
    with torch.autocast("cpu", torch.bfloat16):
        same, _ = gathered(start, (torch.ones(3, 3, requires_grad=True), None))
    assert same is start


# --- the piece by itself ------------------------------------------------------------------------------------------
def solve(maps: Callable[..., Any], weights: list[Tensor], start: Tensor, steps: int) -> tuple[Tensor, list[Tensor]]:
    """``steps`` evaluations of two layers and one matrix per mode, from a start of (B, modes, h)."""
    z, (inner, mix) = maps(start, (weights[0], weights[1]), (weights[2], None))
    frames = [z]
    for _ in range(steps):
        frames.append(frames[-1] + mix(inner(frames[-1]).tanh()).sin())
    return torch.stack(frames), frames


def by_hand(start: Tensor, *layers: Any) -> Any:
    (weight, bias), (matrices, _) = layers
    return start, (lambda x: x @ weight.T + bias, lambda x: torch.einsum("bki,koi->bko", x, matrices))


def example(batch: int = 3) -> tuple[list[Tensor], Tensor]:
    generator = torch.Generator().manual_seed(3)
    shapes = (7, 4), (7,), (5, 4, 7), (batch, 5, 4)
    *weights, start = (torch.randn(s, generator=generator, dtype=torch.float64) / 2 for s in shapes)
    return [w.requires_grad_() for w in weights], start


@pytest.mark.parametrize(("many", "held"), [(1024, 1 << 28), (1, 1 << 28), (1, 3000), (1024, 3000), (1024, 1)])
def test_products_in_one_in_sections_and_in_parts(many, held, monkeypatch):
    monkeypatch.setattr(gather, "_MANY", many)
    monkeypatch.setattr(gather, "_HELD", held)
    weights, start = example()
    grads = [torch.autograd.grad(solve(m, weights, start, 9)[0].square().sum(), weights) for m in (gathered, by_hand)]
    for got, expected in zip(*grads, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)


def test_a_pass_that_does_not_reach_the_start_leaves_nothing_behind():
    weights, start = example()
    expected = torch.autograd.grad(solve(by_hand, weights, start, 4)[0][:3].sum(), weights)
    out, frames = solve(gathered, weights, start, 4)
    torch.autograd.grad(out.sum(), frames[2], retain_graph=True)

    def fail(_: Tensor) -> None:
        raise ArithmeticError

    hook = frames[1].register_hook(fail)
    with pytest.raises(ArithmeticError):
        out.sum().backward(retain_graph=True)
    hook.remove()
    for _ in range(2):
        for got, right in zip(torch.autograd.grad(out[:3].sum(), weights, retain_graph=True), expected, strict=True):
            torch.testing.assert_close(got, right, rtol=1e-12, atol=1e-12)


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def alive() -> list[_GradientSums]:
    return [o for o in gc.get_objects() if type(o) is _GradientSums]


def test_notes_go_with_the_graph(no_collector):
    """Without the collector of cycles, whether or not there was a pass."""
    weights, start = example()
    out, frames = solve(gathered, weights, start, 4)
    assert len(alive()) == 2
    del out, frames
    assert not alive()
    out, frames = solve(gathered, weights, start, 4)
    torch.autograd.grad(out.sum(), frames[2], retain_graph=True)  # pairs are held now
    del out, frames
    assert not alive()
    out, frames = solve(gathered, weights, start, 4)
    out.sum().backward(retain_graph=True)
    assert all(not notes._pairs and notes._sums == [None, None] for notes in alive())
    del out, frames
    assert not alive()


def test_second_derivatives_are_refused():
    weights, start = example()
    (grad,) = torch.autograd.grad(solve(gathered, weights, start, 2)[0].sum(), weights[0], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


def test_weights_changed_before_the_pass_are_noticed():
    weights, start = example()
    out, _ = solve(gathered, weights, start, 2)
    with torch.no_grad():
        weights[0].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


class Operations(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


def test_one_product_a_weight_and_not_one_an_evaluation():
    """Backward passes of 10 evaluations: g W in each, and for each of two layers one g^T x and one sum."""
    model, features, _ = double("ncde", {"hidden": 5, "solver": "euler"})
    start, increments = model.lift(model.initial(features["u0"])), model.control(features["dw"])
    loss = model.trajectory(start.detach(), increments.detach()).square().sum()
    with Operations() as backward:
        loss.backward()
    assert backward.counts["mm"] == 2 * 10 + 2
    assert backward.counts["sum"] == 2


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "config"), ONE_EACH)
def test_a_replayed_graph_gives_the_gradients(name, config):
    model, features, u = double(name, config)
    expected = gradients(plain(model.eval(), features), u, model, features)
    model.cuda()
    features = {k: v.detach().cuda().requires_grad_() for k, v in features.items()}
    wanted, weight = [*model.parameters(), *features.values()], u.sin().cuda()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            torch.autograd.grad((model(features) * weight).sum(), wanted)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        got = torch.autograd.grad((model(features) * weight).sum(), wanted)
    graph.replay()
    assert_same(dict(zip(expected, (g.cpu() for g in got), strict=True)), expected)
