"""What every registered model promises, for every dimension and task that it declares, on tiny grids."""

from __future__ import annotations

import dataclasses
import functools
import io
import itertools

import pytest
import torch

import spdebench as sb
from spdebench.errors import UserError
from spdebench.metrics import causality_gap
from spdebench.models import MODELS, OperatorModel, build
from spdebench.tasks import Batch, Setting, TaskSpec

EQUATIONS = {
    1: ("phi41", {"points": 16, "frames": 11, "steps": 11, "truncation": 8, "sigma": 0.5}),
    2: ("phi42", {"points": 8, "frames": 8, "steps": 8, "truncation": 4, "horizon": 8e-3, "sigma": 1.0}),
    3: ("phi43", {"points": 7, "frames": 8, "steps": 8, "truncation": 6, "horizon": 8 * 1.384e-4}),
}
CASES = [(name, dim, inputs) for name in MODELS for dim in MODELS[name].dims for inputs in MODELS[name].inputs]
TRAINABLE = [case for case in CASES if MODELS[case[0]].trainable]


@functools.cache
def data(dim: int, inputs: str) -> tuple[Setting, Batch, torch.Tensor]:
    """Four samples of the dimension's equation."""
    name, fields = EQUATIONS[dim]
    one = sb.equation(name, **fields, kappa=0.1 if inputs == "u0+xi" else 0.0)
    out = sb.simulate(one, 0, range(4))
    batch = Batch(out.u0, out.dw, (one,), torch.zeros(4, dtype=torch.long))
    return TaskSpec(inputs=inputs).setting(one), batch, out.u  # type: ignore[arg-type]


def make(name: str, dim: int, inputs: str, seed: int = 0, **config: object) -> OperatorModel:
    """A calibrated model."""
    setting, batch, u = data(dim, inputs)
    torch.manual_seed(seed)
    model = build(name, setting, **config)
    model.calibrate(model.prepare(batch), u)
    return model


def relative(v: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """|v - u| / |u| of each sample over t_1..t_T."""
    gap, size = ((x[:, 1:]).flatten(1).norm(dim=1) for x in (v - u, u))
    return gap / size


@pytest.mark.parametrize(("name", "dim", "inputs"), CASES)
def test_shape_type_and_batch(name, dim, inputs):
    """All frames, float32; a sample's prediction does not know of its batch; features have the samples first."""
    model, (_, batch, u) = make(name, dim, inputs), data(dim, inputs)
    features = model.prepare(batch)
    assert all(len(f) == len(batch) for f in features.values())
    v = model.predict(batch)
    assert v.shape == u.shape and v.dtype == torch.float32 and torch.isfinite(v).all()
    assert batch.source is not None
    alone = model.predict(Batch(batch.u0[1:2], batch.dw[1:2], batch.equations, batch.source[1:2]))
    torch.testing.assert_close(alone[0], v[1], rtol=1e-4, atol=1e-4 * float(v.abs().max()))


@pytest.mark.parametrize(("name", "dim", "inputs"), TRAINABLE)
def test_a_step_makes_no_tensor_from_values_of_the_host_and_reads_none(name, dim, inputs, monkeypatch):
    """Such copies cannot be part of a CUDA graph: the steps of training would be launched one by one."""
    model, (_, batch, u) = make(name, dim, inputs), data(dim, inputs)
    features = model.train().prepare(batch)
    relative(model(features), u).mean().backward()  # builds what is kept

    def refuse(*_, **__):
        raise AssertionError("a copy between host and device")

    for function in ("tensor", "as_tensor", "from_numpy"):
        monkeypatch.setattr(torch, function, refuse)
    for method in ("new_tensor", "item", "tolist", "numpy", "__bool__", "__float__", "__int__"):
        monkeypatch.setattr(torch.Tensor, method, refuse)
    relative(model(features), u).mean().backward()


@pytest.mark.parametrize(("name", "dim", "inputs"), TRAINABLE)
def test_every_parameter_learns(name, dim, inputs):
    model, (_, batch, u) = make(name, dim, inputs), data(dim, inputs)
    model.train()
    batch = dataclasses.replace(batch, u0=batch.u0 + 1)  # weights that multiply phi43's u0 = 0 would have no gradient
    relative(model(model.prepare(batch)), u).mean().backward()
    dead = [k for k, p in model.named_parameters() if p.grad is None or not bool((p.grad != 0).any())]
    assert not dead, dead
    assert all(bool(torch.isfinite(p.grad).all()) for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize(("name", "dim", "inputs"), TRAINABLE)
def test_every_input_counts(name, dim, inputs):
    """Other noise, or (task u0+xi) another initial datum, gives another prediction after t_0."""
    model, (_, batch, _) = make(name, dim, inputs), data(dim, inputs)
    v = model.predict(batch)
    other = model.predict(Batch(batch.u0, batch.dw.flip(0), batch.equations, batch.source))
    assert float((v - other)[:, 1:].abs().max()) > 1e-6
    if inputs == "u0+xi":
        other = model.predict(Batch(batch.u0.flip(0), batch.dw, batch.equations, batch.source))
        assert float((v - other)[:, 1:].abs().max()) > 1e-6


@pytest.mark.parametrize("name", [n for n in MODELS if MODELS[n].trainable])
def test_half_precision_runs_and_is_near(name):
    """Under bfloat16 autocast a model computes the same up to its rounding, and every gradient is finite."""
    _, batch, u = data(1, "u0+xi")
    model = make(name, 1, "u0+xi")
    features = model.prepare(batch)
    full = model(features)
    with torch.autocast("cpu", torch.bfloat16):
        half = model(features)
    assert float((half.float() - full).detach().norm() / full.detach().norm()) < 0.05
    relative(half.float(), u).mean().backward()
    assert all(p.grad is not None and bool(torch.isfinite(p.grad).all()) for p in model.parameters())


def learned(model: OperatorModel, features: dict, u: torch.Tensor, lr: float, steps: int) -> float:
    """The least relative L2 that Adam reaches on one batch."""
    optimiser = torch.optim.Adam(model.parameters(), lr=lr, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=lr, total_steps=steps)
    model.train()
    best = float("inf")
    for _ in range(steps):
        loss = relative(model(features), u).mean()
        best = min(best, float(loss.detach()))
        if best < 0.05:
            break
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    return best


SLOW_TO_LEARN = [
    ("gt", 3, "xi"),
    ("gt", 2, "u0+xi"),
    *(("ncde-fno", *case) for case in ((2, "xi"), (3, "xi"), (3, "u0+xi"))),
    *(("flow-fno", dim, inputs) for dim in (1, 2, 3) for inputs in ("xi", "u0+xi") if (dim, inputs) != (1, "u0+xi")),
]
"""Attention and the many evaluations of a controlled equation take long on a processor in several dimensions; one task
in two dimensions is always tested. The layers of flow-fno are those of fno, which is always tested."""


@pytest.mark.parametrize(
    ("name", "dim", "inputs"),
    [pytest.param(*case, marks=pytest.mark.slow) if case in SLOW_TO_LEARN else case for case in TRAINABLE],
)
def test_one_batch_can_be_learned(name, dim, inputs):
    """Below 5 % relative L2 on four samples; wide models (DeepONet) ask for the smaller step."""
    _, batch, u = data(dim, inputs)
    first, second = (2e-3, 1e-2) if name == "deeponet" else (1e-2, 2e-3)
    best = float("inf")
    quick = {"deeponet": (200, 2e-3), "gt": (300, 2e-2), "nrde": (500, 1e-2)}.get(name, (110, 1e-2))  # mostly enough
    lengths = (500,) if name in ("gt", "deeponet") else (150, 500)
    for steps, lr in (quick, *itertools.product(lengths, (first, second))):
        model = make(name, dim, inputs)
        best = learned(model, model.prepare(batch), u, lr, steps)
        if best < 0.05:
            break
    assert best < 0.05


@pytest.mark.parametrize(("name", "dim", "inputs"), CASES)
def test_two_runs_agree_and_a_saved_model_is_the_same(name, dim, inputs):
    """One seed, one result, to the bit; weights and fitted scales are in the state."""
    _, batch, u = data(dim, inputs)
    states = []
    for _ in range(2):
        model = make(name, dim, inputs)
        if model.trainable:
            optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
            features = model.train().prepare(batch)
            for _ in range(2):
                optimiser.zero_grad()
                relative(model(features), u).mean().backward()
                optimiser.step()
        states.append((model, model.predict(batch)))
    assert torch.equal(states[0][1], states[1][1])
    file = io.BytesIO()
    torch.save(states[0][0].state_dict(), file)
    file.seek(0)
    torch.manual_seed(99)
    copy = build(name, data(dim, inputs)[0])
    copy.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(copy.predict(batch), states[0][1])


@pytest.mark.parametrize(("name", "dim", "inputs"), CASES)
def test_causality_is_as_declared(name, dim, inputs):
    """Changing the noise after t_c moves nothing before t_c if the model is declared causal."""
    model, (_, batch, _) = make(name, dim, inputs), data(dim, inputs)
    gap = causality_gap(
        lambda u0, dw: model.predict(Batch(u0, dw, batch.equations, batch.source)), batch.u0, batch.dw, cuts=2
    )
    if model.causal:
        assert gap.value < 1e-5
    else:
        assert gap.value > 1e-7, "declared as not causal, measured as causal: declare it"


@functools.cache
def tiny(equation: str, noise_type: str) -> tuple[Setting, Batch, torch.Tensor] | None:
    """Four short samples of a one-dimensional equation; None if it has no such type of noise."""
    own = {"noise_type": noise_type} if hasattr(sb.EQUATIONS[equation], "noise_type") else {}
    if noise_type == "multiplicative" and not own:
        return None
    one = sb.equation(equation, points=16, truncation=8, frames=8, steps=8, horizon=0.02, kappa=0.1, **own)
    out = sb.simulate(one, 0, range(4))
    batch = Batch(out.u0, out.dw, (one,), torch.zeros(4, dtype=torch.long))
    return TaskSpec(inputs="u0+xi").setting(one), batch, out.u


@pytest.mark.parametrize("noise_type", ["additive", "multiplicative"])
@pytest.mark.parametrize("equation", [n for n in sb.EQUATIONS if sb.EQUATIONS[n].dim == 1])
def test_every_model_takes_every_equation_or_says_why_not(equation, noise_type):
    """Four samples are fitted and predicted with finite values; a refusal is one line that names a model instead."""
    if (known := tiny(equation, noise_type)) is None:
        return
    setting, batch, u = known
    refused = []
    for name in MODELS:
        torch.manual_seed(0)
        try:
            model = build(name, setting)
        except UserError as error:
            assert "\n" not in str(error) and f"model '{name}'" in str(error)
            refused.append(name)
            continue
        if not model.streams:
            model.calibrate(model.prepare(batch), u)
            assert torch.isfinite(model.predict(batch)).all(), name
    assert set(refused) <= {"nspde-s"}


@pytest.mark.parametrize("name", [n for n in MODELS if 2 not in MODELS[n].dims])
def test_refuses_dimensions_it_lacks(name):
    with pytest.raises(UserError, match=rf"model '{name}' works in 1 .* Models for 2-D: .*fno"):
        build(name, data(2, "xi")[0])


@pytest.mark.parametrize("name", [n for n in MODELS if "modes" in MODELS[n].config_class.__dataclass_fields__])
def test_refuses_modes_beyond_the_grid(name):
    with pytest.raises(UserError, match="do not fit the grid"):
        build(name, data(1, "xi")[0], modes=(400, 3))
    with pytest.raises(UserError, match="must have 2 entries"):
        build(name, data(1, "xi")[0], modes=(4, 4, 4))


@pytest.mark.parametrize("name", list(MODELS))
def test_refuses_sizes_below_one(name):
    for field, value in MODELS[name].config_class.__dataclass_fields__.items():
        if value.type in ("int", "tuple[int, ...]"):
            wrong = -1 if value.type == "int" else (0, 0)
            with pytest.raises(UserError, match="at least"):
                build(name, data(1, "xi")[0], **{field: wrong})


@pytest.mark.parametrize("name", list(MODELS))
def test_says_what_it_is(name):
    cls = MODELS[name]
    assert cls.__doc__ and cls.title and cls.__doc__ != OperatorModel.__doc__
    with pytest.raises(UserError, match=r"did you mean|unknown key"):
        build(name, data(1, "xi")[0], widht=3)
