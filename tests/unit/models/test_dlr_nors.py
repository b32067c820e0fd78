"""DLR-Net and NORS: the paper's counts, what reaches what, other grids, and the plain formulation as an oracle."""

from __future__ import annotations

import pytest
import torch

import spdebench as sb
from spdebench.models import build
from spdebench.models.dlr_net import DLRNet
from spdebench.models.layers.coordinates import coordinates
from spdebench.tasks import Batch, Setting, TaskSpec
from speed.models.dlr_net import PlainDLR, dense
from speed.models.features import anew

EQUATIONS = {
    "phi41": {"points": 16, "frames": 10, "steps": 10, "truncation": 8},
    "phi42": {"points": 8, "frames": 10, "steps": 10, "truncation": 4, "horizon": 1e-3},
    "kdv": {"points": 16, "frames": 10, "steps": 10, "truncation": 8},
    "kpz": {"points": 16, "frames": 10, "steps": 10, "truncation": 8},
    "wave": {"points": 16, "frames": 10, "steps": 50, "truncation": 8},
    "nse": {"points": 8, "frames": 10, "steps": 20, "truncation": 8},
}


def data(name: str, n: int = 3, **fields: object) -> tuple[Setting, Batch, torch.Tensor]:
    equation = sb.equation(name, **{**EQUATIONS[name], **fields})
    out = sb.simulate(equation, 0, range(n))
    setting = TaskSpec(inputs="u0+xi" if equation.kappa else "xi").setting(equation)
    return setting, Batch(out.u0, out.dw, (equation,), torch.zeros(n, dtype=torch.long)), out.u


def calibrated(model: str, name: str, **fields: object) -> tuple[sb.OperatorModel, Batch, torch.Tensor]:
    setting, batch, u = data(name, **fields)
    torch.manual_seed(0)
    made = build(model, setting)
    made.calibrate(made.prepare(batch), u)
    return made, batch, u


@pytest.mark.parametrize(("model", "count", "real"), [("dlr-net", 133_178, 264_250), ("nors", 6_300_449, 12_591_905)])
def test_counts_are_the_papers(model, count, real):
    setting = TaskSpec().setting(sb.equation("phi41"))
    assert build(model, setting, form="published").counts() == {"parameters": count, "real": real}
    assert build(model, setting).counts()["real"] == real


@pytest.mark.parametrize("model", ["dlr-net", "nors"])
@pytest.mark.parametrize("name", EQUATIONS)
@pytest.mark.parametrize("kappa", [0.0, 0.1])
def test_every_parameter_and_input_counts(model, name, kappa):
    made, batch, u = calibrated(model, name, kappa=kappa)
    v = made(made.prepare(batch))
    assert v.shape == u.shape and bool(torch.isfinite(v).all())
    (v - u).square().mean().backward()
    assert all(p.grad is not None and float(p.grad.abs().max()) > 0 for p in made.parameters())
    moved = made.predict(Batch(batch.u0, batch.dw.flip(0), batch.equations, batch.source))
    assert float((moved - v.detach()).abs().max()) > 1e-6 * float(v.detach().abs().max())


def test_forms_differ_in_how_they_keep_their_weights_only():
    setting, batch, _ = data("phi41")
    torch.manual_seed(0)
    ours, published = build("dlr-net", setting), build("dlr-net", setting, form="published")
    state = {k: v.clone() for k, v in ours.state_dict().items()}
    for key, value in published.state_dict().items():
        if value.is_complex():
            state[key] = torch.view_as_complex(state[key].movedim(0, -1).contiguous())
    published.load_state_dict(state)
    gap = (ours.predict(batch) - published.predict(batch)).abs().max()
    assert float(gap) < 1e-5


def test_dense_matrices_give_the_same_trees():
    setting, batch, _ = data("phi41")
    model = build("dlr-net", setting)
    assert isinstance(model, DLRNet)
    kernel = model.trees.kernel
    plain = anew(model.trees, batch, *(dense(f, setting.shape) for f in (kernel.drift, kernel.noise)))
    ours = model.prepare(batch)["trees"]
    assert bool(((plain - ours).abs().amax((0, 1, 2)) <= 1e-5 * ours.abs().amax((0, 1, 2))).all())


def test_dense_second_pass_is_ours():
    """The plain form, written for phi41 by hand, on a grid that fits its trunk."""
    setting, batch, _ = data("phi41", points=32, frames=50, steps=50)
    model = build("dlr-net", setting)
    assert isinstance(model, DLRNet)
    known = model.prepare(batch)["trees"]
    names, inside = model.trees.names, model.trees.with_datum
    fixed = [i for i in range(len(names)) if i not in inside]
    plain = PlainDLR(dense(model.trees.kernel.drift, setting.shape), coordinates(setting).transpose(0, 1))
    v = torch.randn(known.shape[:-1], generator=torch.Generator().manual_seed(0))
    by_hand = plain._with(v, known[..., fixed])
    ours = model.trees.trees_with_datum(known, v)
    assert [names[i] for i in inside] == [
        "I_c", "I[I_c]", "I[I[xi] I_c]", "I[I_c^2]", "I[I[xi]^2 I_c]", "I[I[xi] I_c^2]",
    ]  # fmt: skip
    assert bool(((by_hand - ours).abs().amax((0, 1, 2)) <= 1e-5 * ours.abs().amax((0, 1, 2))).all())
    assert sum(p.numel() for p in plain.parameters()) == 133_178


@pytest.mark.parametrize("model", ["dlr-net", "nors", "trees"])
def test_predicts_on_another_grid(model):
    """Trees of the finer grid; the smooth part of the solution is seen alike on both."""
    made, batch, _ = calibrated(model, "phi41", sigma=0.0)
    _, fine, _ = data("phi41", sigma=0.0, points=32)
    v, w = made.predict(batch), made.predict(fine)
    assert w.shape == (3, 11, 32)
    assert float((w[..., ::2] - v).norm() / v.norm()) < 0.05


def test_refuses_other_frames():
    made, batch, _ = calibrated("nors", "phi41")
    with pytest.raises(sb.UserError, match="integrates over 11 frames; got 6"):
        made.predict(Batch(batch.u0, batch.dw[:, ::2]))
