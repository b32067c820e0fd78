"""The loop: what an epoch does, what it keeps, when it stops, what it costs."""

from __future__ import annotations

import functools
import gc
import math
import shutil
import time
import weakref

import pytest
import torch

import spdebench as sb
from spdebench.models.features import Prepared, prepare_part
from spdebench.training import Diverged, Fit, RelativeLoss, TrainOptions
from spdebench.training.loop import epoch_seed
from spdebench.training.steps import Snapshot, Streamed


def make_fit(task, *, streamed=False, dropout=0.0, **options) -> Fit:
    torch.manual_seed(3)
    model = sb.build("tiny", task, dropout=dropout)
    train, val = (prepare_part(model, part) for part in (task.train, task.val))
    model.calibrate(train.features, train.target)
    fit = Fit(model, train, val, TrainOptions(**{"epochs": 5, "batch_size": 8, "learning_rate": 1e-2, **options}))
    if streamed:
        fit._make_steps()
        for size, step in fit._steps.items():
            step.feed = Streamed(train, fit._train_scale, size, fit.device)
    return fit


def run(fit: Fit) -> dict[str, torch.Tensor]:
    while not fit.finished:
        fit.run_epoch()
    return fit.model.state_dict()


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(a[key], b[key]) for key in a)


def test_the_loop_is_the_hand_written_one(task):
    """Relative L2 by hand, plain Adam, the same permutations: the same weights to rounding."""
    fit = make_fit(task, scheduler="cosine", clip_norm=0.5, min_learning_rate=0.0)
    torch.manual_seed(3)
    model = sb.build("tiny", task)
    features, u = model.prepare(task.train.batch()), task.train.u
    model.calibrate(features, u)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 5)
    for epoch in range(5):
        order = torch.randperm(len(u), generator=torch.Generator().manual_seed(epoch_seed(0, epoch)))
        total = 0.0
        for rows in order.split(8):
            v = model({k: f[rows] for k, f in features.items()})
            error = (v - u[rows])[:, 1:].flatten(1).norm(dim=1) / u[rows][:, 1:].flatten(1).norm(dim=1)
            optimiser.zero_grad()
            error.mean().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimiser.step()
            total += float(error.detach().sum())
        scheduler.step()
        entry = fit.run_epoch()
        assert entry["train"] == pytest.approx(total / len(u), rel=1e-5)
    for key, value in fit.model.state_dict().items():
        assert torch.allclose(value.float(), model.state_dict()[key].float(), rtol=1e-3, atol=5e-4), key
    truth = sb.evaluate(model.predict(task.val.batch()), task.val.u, task.val.grid, metrics=["rel_l2"], resamples=0)
    assert entry["val"] == pytest.approx(truth["rel_l2"].value, rel=1e-3)


def test_every_sample_is_used_once_an_epoch_in_another_order(task):
    fit = make_fit(task)
    orders = []
    for _ in range(3):
        batches = list(fit._batches())
        assert [len(rows) for rows in batches] == [8, 8, 8, 4]  # 28 samples: the partial batch counts
        orders.append(torch.cat(batches))
        fit.epoch += 1
    assert all(sorted(order.tolist()) == list(range(28)) for order in orders)
    assert not torch.equal(orders[0], orders[1]) and epoch_seed(0, 1) != epoch_seed(1, 0)


def test_streamed_from_the_host_gives_the_same_bits(task):
    assert same(run(make_fit(task, dropout=0.2)), run(make_fit(task, dropout=0.2, streamed=True)))


def test_what_a_warm_up_does_is_undone(task):
    """Weights, batch statistics and optimiser state, before any step and in the middle of a run."""
    for epochs in (0, 2):
        fit, plain = make_fit(task), make_fit(task)
        for _ in range(epochs):
            fit.run_epoch()
            plain.run_epoch()
        fit._make_steps()
        before = Snapshot(fit.model, fit.learner.optimiser)
        fit.model.train()
        for rows in fit._batches():
            fit._steps[len(rows)](rows)
        before.restore()
        assert same(fit.model.state_dict(), plain.model.state_dict())
        assert same(run(fit), run(plain))


def test_a_resumed_fit_has_the_same_bits(task):
    whole = make_fit(task, dropout=0.3, plateau_patience=0, decay_factor=0.5)
    run(whole)
    first = make_fit(task, dropout=0.3, plateau_patience=0, decay_factor=0.5)
    for _ in range(3):
        first.run_epoch()
    second = make_fit(task, dropout=0.3, plateau_patience=0, decay_factor=0.5)
    second.load(first.state())
    assert same(run(second), whole.model.state_dict())
    strip = lambda log: [{k: v for k, v in e.items() if k != "seconds"} for e in log]  # noqa: E731
    assert strip(second.log) == strip(whole.log) and same(second.best_weights, whole.best_weights)


def scripted(task, vals: list[float], *, go: bool = True, **options) -> Fit:
    """A fit whose validations are these."""
    fit = make_fit(task, epochs=len(vals), **options)
    rest = iter(vals)

    def validate() -> None:
        fit._totals[1] = next(rest) * fit._val_kept

    fit.validate = validate  # type: ignore[method-assign]
    if go:
        run(fit)
    return fit


def test_stopping_is_relative_and_the_best_is_kept_at_any_improvement(task):
    slow = [1e-3 * (1 - 0.004) ** k for k in range(12)]  # each 0.4 % better: no absolute delta of 1e-4 would see it
    fit = scripted(task, slow, early_stop_patience=3, early_stop_delta=0.01)
    assert fit.epoch == 12 and fit.best_epoch == 12 and fit.best == pytest.approx(slow[-1])
    fit = scripted(task, [1.0, 0.999, 0.998, 0.997, 0.5], early_stop_patience=3, early_stop_delta=0.01)
    assert fit.epoch == 4 and fit.best_epoch == 4 and fit.best == pytest.approx(0.997)
    fit = scripted(task, [1.0, 0.9, 0.95, 0.95, 0.8, 0.9, 0.9, 0.9, 0.7], early_stop_patience=3, early_stop_delta=0.0)
    assert fit.epoch == 8 and fit.best_epoch == 5
    assert scripted(task, [1.0] * 6, early_stop_patience=0).epoch == 6  # never


def test_best_weights_are_those_of_the_best_epoch(task):
    fit = scripted(task, [0.9, 0.5, 0.8, 0.4, 0.6], go=False)
    seen = {}
    while not fit.finished:
        fit.run_epoch()
        seen[fit.epoch] = {k: v.clone() for k, v in fit.model.state_dict().items()}
    assert fit.best_epoch == 4 and same(fit.best_weights, seen[4]) and not same(fit.best_weights, seen[5])


def test_a_loss_that_is_no_number_stops(task):
    fit = make_fit(task, learning_rate=1e30)
    with pytest.raises(Diverged, match=r"loss became non-finite at epoch \d; try a smaller learning_rate"):
        run(fit)


def test_w12_trains_the_gradient(task):
    def final(loss: str) -> tuple[float, float]:
        fit = make_fit(task, loss=loss, epochs=30, early_stop_patience=0, scheduler="none", weight_decay=0)
        run(fit)
        with torch.no_grad():
            v = fit.model.eval()(fit.train_data.features)
        return tuple(
            float(measure(v, task.train.u, measure.scale(task.train.u)))
            for measure in (RelativeLoss(kind, task.train.grid) for kind in ("rel_l2", "w12"))
        )

    (plain_l2, plain_w12), (_, sobolev_w12) = final("rel_l2"), final("w12")
    assert plain_l2 < 0.2 and sobolev_w12 < plain_w12


def test_bfloat16_learns_much_the_same(path):
    task = sb.Task(path, split="70:15:15")
    full, half = (make_fit(task, precision=p, epochs=15) for p in ("float32", "bfloat16"))
    run(full), run(half)
    assert half.best == pytest.approx(full.best, rel=0.1) and half.best != full.best
    assert all(p.dtype == torch.float32 for p in half.model.parameters())


def test_a_model_that_cannot_run_in_bfloat16_says_so(task, monkeypatch):
    def forward(self, features):
        raise RuntimeError(f"no kernel for {self.first(features['w'].flatten(1)).dtype}")

    monkeypatch.setattr(sb.MODELS["tiny"], "forward", forward)
    with pytest.raises(
        sb.UserError, match=r"does not run in bfloat16 \(no kernel for torch.bfloat16\); use precision=float32"
    ):
        make_fit(task, precision="bfloat16")


def compiled_and_plain(task) -> None:
    plain, compiled = make_fit(task, epochs=2), make_fit(task, epochs=2, compile=True)
    assert compiled.learner.forward is not compiled.model
    run(compiled), run(plain)
    assert compiled.best == pytest.approx(plain.best, rel=1e-2)
    assert compiled.model.state_dict().keys() == plain.model.state_dict().keys()


def test_compiled_gives_the_same_to_rounding(task, monkeypatch):
    """Traced but not turned into machine code, which takes a minute; the slow test below does."""
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))
    compiled_and_plain(task)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler")
def test_compiled_to_machine_code_gives_the_same_to_rounding(task):
    compiled_and_plain(task)


def test_an_empty_validation_is_refused(task):
    model = sb.build("tiny", task)
    data = prepare_part(model, task.train)
    nothing = Prepared({k: v[:0] for k, v in data.features.items()}, data.target[:0])
    with pytest.raises(sb.UserError, match="validation part has no samples"):
        Fit(model, data, nothing, TrainOptions())


@pytest.mark.slow  # not for its length: it compares times, which the process beside it in `make test` would disturb
def test_the_loop_costs_little(tmp_path):
    """Against the same steps by hand, with room for noise; `benchmarks/loop.py` has the true figure."""
    phi = sb.equation("phi41", points=64, frames=20, steps=20, truncation=8)
    task = sb.Task(sb.generate(phi, n=200, out=tmp_path), split="60:20:20")
    fit = make_fit(task, epochs=10**6, early_stop_patience=0, batch_size=20)
    model, loss = fit.model, fit.learner.loss
    features, u = fit.train_data.features, fit.train_data.target
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4, fused=True)

    def bare() -> None:
        model.train()
        total = 0.0
        for rows in torch.randperm(len(u)).split(20):
            v = model({k: f[rows] for k, f in features.items()})
            value = loss(v, u[rows], loss.scale(u[rows]))
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
            total += value.item() * len(rows)
        model.eval()
        with torch.no_grad():
            v = model(fit.val_data.features)
            loss(v, fit.val_data.target, loss.scale(fit.val_data.target)).item()

    times: dict[str, float] = {"bare": math.inf, "ours": math.inf}
    for _ in range(12):
        for name, work in (("bare", bare), ("ours", fit.run_epoch)):
            start = time.process_time()
            work()
            times[name] = min(times[name], time.process_time() - start)
    assert times["ours"] < 1.25 * times["bare"], times


def test_a_fit_that_is_dropped_frees_its_memory_at_once(task):
    """No cycles: the next run of a sweep finds the device's memory free."""
    fit = make_fit(task, precision="bfloat16")
    fit.run_epoch()
    seen = weakref.ref(fit)
    gc.disable()
    try:
        del fit
        assert seen() is None
    finally:
        gc.enable()
