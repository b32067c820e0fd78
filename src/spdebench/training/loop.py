"""The training loop.

    each epoch: Adam steps over a random permutation of all samples, including the last partial batch; then the relative
    L2 error on the validation part, which adapts the learning rate, selects the best weights and may stop training.

With loss=energy the unseen noise of all samples is drawn again before each epoch, and validation is the energy score of
draws that stay the same; with loss=flow times and states of a flow are drawn in this way. The random numbers of an
epoch (order, dropout, draws) are a function of (seed, epoch), so that a run is resumed exactly from the weights, the
optimiser's state and a few numbers. The host waits for the device once per epoch, to read two numbers.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from spdebench.errors import UserError, first_line
from spdebench.models import OperatorModel
from spdebench.models.base import evaluation_batch
from spdebench.models.features import FlowPairs, Prepared, Redrawn
from spdebench.training.losses import EnergyLoss, Loss, RelativeLoss, SquaredLoss, mean_norm, variance
from spdebench.training.options import LAW_LOSSES, TrainOptions
from spdebench.training.schedule import Schedule
from spdebench.training.steps import Learner, TrainingStep, adam, bfloat16, capture, full_precision, make_feed, set_rate


class Diverged(UserError):
    """The loss became infinite or NaN."""


class Fit:
    """A model being trained: ``while not fit.finished: fit.run_epoch()``; `state` and `load` resume it later.

    ``graph``: replay the steps as CUDA graphs (None: on CUDA). Results change at most by rounding.
    """

    def __init__(
        self,
        model: OperatorModel,
        train: Prepared,
        val: Prepared,
        options: TrainOptions,
        *,
        graph: bool | None = None,
    ) -> None:
        self.model, self.options, self.device = model, options, model.device
        self.train_data, self.val_data = train, val
        self.graph = self.device.type == "cuda" if graph is None else graph and self.device.type == "cuda"
        grid = model.setting.grid
        loss: Loss
        self._val_loss: Loss
        if options.loss == "flow":
            loss = self._val_loss = SquaredLoss()
            unit = variance(train.target)
            self._train_scale, self._val_scale = (_constant(1 / unit if unit else 0.0, data) for data in (train, val))
        elif options.loss == "energy":
            loss, self._val_loss = EnergyLoss(train.draws), EnergyLoss(val.draws)
            unit = mean_norm(train.target)
            self._train_scale, self._val_scale = (_constant(1 / unit if unit else 0.0, data) for data in (train, val))
        else:
            loss = relative = RelativeLoss(options.loss, grid, self.device)
            self._val_loss = by_l2 = RelativeLoss("rel_l2", grid, self.device)
            self._train_scale = _scales(relative.to(train.device), train)
            self._val_scale = _scales(by_l2.to(val.device), val)
        self._val_kept = int((self._val_scale > 0).sum())
        if not self._val_kept:
            self._check_data()
            if options.loss == "flow" and len(val):
                raise UserError(
                    f"loss=flow needs training samples that differ, u is the same in all {len(train)} of them; use "
                    "another split or dataset"
                )
            raise UserError("the validation part has no samples, or u = 0 in all of them; use another split or dataset")
        self._totals = torch.zeros(2, dtype=torch.float64, device=self.device)  # train, validation
        self.learner = Learner(
            model=model,
            forward=torch.compile(model, dynamic=False) if options.compile else model,
            optimiser=adam(model, options.learning_rate, options.weight_decay, self.device),
            loss=loss,
            clip=options.clip_norm,
            autocast=partial(bfloat16, self.device) if options.precision == "bfloat16" else full_precision,
            total=self._totals[0],
        )
        self.schedule = Schedule(options)
        self.epoch = 0
        self.best = math.inf  # smallest validation error so far, and its epoch and weights
        self.best_epoch = 0
        self.best_weights: dict[str, Tensor] = {}
        self._mark = math.inf  # the error that early stopping must see fall by the relative amount early_stop_delta
        self._waited = 0
        self.log: list[dict[str, Any]] = []
        self._steps: dict[int, TrainingStep] = {}
        self._replay_validation: Callable[[], None] | None = None
        if options.precision != "float32":
            self._try_precision()

    @property
    def val_name(self) -> str:
        """The name of the validation error, for the progress bar."""
        measure = LAW_LOSSES.get(self.options.loss)
        return f"val {measure.replace('_', ' ')}" if measure else "val"

    # --- the loop -------------------------------------------------------------------------------------------------
    @property
    def finished(self) -> bool:
        """Whether all epochs are done or early stopping has ended the training."""
        patience = self.options.early_stop_patience
        return self.epoch >= self.options.epochs or 0 < patience <= self._waited

    def run_epoch(self) -> dict[str, Any]:
        """Run one epoch and return its line of the log: epoch, train, val, lr, seconds."""
        start = time.perf_counter()
        if isinstance(self.train_data, Redrawn | FlowPairs):
            self.train_data.draw(self.epoch)
        if not self._steps:
            if isinstance(self.val_data, FlowPairs):
                self.val_data.draw(None)
            self._make_steps()
        lr = self.schedule.lr
        set_rate(self.learner.optimiser, lr)
        self._totals.zero_()
        with seeded_randomness(self.device, epoch_seed(self.options.seed, self.epoch)):
            self.model.train()
            for rows in self._batches():
                self._steps[len(rows)](rows)
            (self._replay_validation or self.validate)()
        train, val = self._totals.tolist()  # the host waits for the device here only
        train, val = train / len(self.train_data), val / self._val_kept
        self.epoch += 1
        if not (math.isfinite(train) and math.isfinite(val)):
            self._check_data()
            raise Diverged(f"loss became non-finite at epoch {self.epoch}; try a smaller learning_rate (it was {lr:g})")
        self._update_best(val)
        self.schedule.advance(val)
        seconds = round(time.perf_counter() - start, 6)
        self.log.append({"epoch": self.epoch, "train": train, "val": val, "lr": lr, "seconds": seconds})
        if self.options.loss in LAW_LOSSES:
            self.log[-1]["val_metric"] = LAW_LOSSES[self.options.loss]
        return self.log[-1]

    def _check_data(self) -> None:
        """Raise an error if the data are not finite, so that the learning rate is not blamed for the divergence."""
        for name, data in (("training", self.train_data), ("validation", self.val_data)):
            for values in (data.target, *data.features.values()):
                fine = torch.isfinite(values).flatten(1).all(1)
                bad = ~fine.unflatten(0, (len(values) // max(1, len(data)), len(data))).all(0)
                if bad.any():
                    count = int(bad.sum())
                    raise UserError(
                        f"{count} of {len(data)} {name} samples have values that are not finite; check the dataset "
                        f"with 'spdebench data verify'"
                    )

    def _batches(self) -> Iterator[Tensor]:
        """The sample numbers of each batch of this epoch, in random order."""
        generator = torch.Generator().manual_seed(epoch_seed(self.options.seed, self.epoch))
        order = torch.randperm(len(self.train_data), generator=generator).to(self.train_data.device)
        return iter(order.split(self.options.batch_size))

    def _make_steps(self) -> None:
        """A step for full batches and one for the last partial batch; CUDA graphs of both if wanted."""
        n, batch = len(self.train_data), self.options.batch_size
        for size in {min(batch, n), n % batch} - {0}:
            feed = make_feed(self.train_data, self._train_scale, size, self.device)
            self._steps[size] = TrainingStep(self.learner, feed, size)
        if not self.graph:
            return
        for rows in self._batches():
            self._steps[len(rows)].feed.stage(rows)
        steps = list(self._steps.values())
        resident = self.val_data.device == self.device
        self.model.train()
        with seeded_randomness(self.device, 0):
            graphs = capture(self.learner, steps, [self.validate] if resident else [])
        if graphs is None:
            self.graph = False
            return
        for step, graph in zip(steps, graphs, strict=False):
            step.replay = graph.replay
        if resident:
            self._replay_validation = graphs[-1].replay

    def validate(self) -> None:
        """Add the validation errors of all samples to the total on the device."""
        add_errors(self.model, self._val_loss, self.val_data, self._val_scale, self._totals[1])

    def _update_best(self, val: float) -> None:
        """Keep the best weights at any improvement; only one of at least early_stop_delta resets early stopping."""
        if val < self.best:
            self.best, self.best_epoch = val, self.epoch
            self._keep_weights()
        if val < self._mark * (1 - self.options.early_stop_delta):
            self._mark, self._waited = val, 0
        else:
            self._waited += 1

    @torch.no_grad()
    def _keep_weights(self) -> None:
        """Copy the present weights to ``best_weights``."""
        now = self.model.state_dict()
        if not self.best_weights:
            self.best_weights = {key: value.detach().clone() for key, value in now.items()}
        for key, value in self.best_weights.items():
            value.copy_(now[key])

    def _try_precision(self) -> None:
        """Raise an error if the model cannot be evaluated in the chosen precision."""
        feed = make_feed(self.train_data, self._train_scale, 1, self.device)
        feed.stage(torch.zeros(1, dtype=torch.long, device=self.train_data.device))
        try:
            with torch.no_grad(), self.learner.autocast():
                self.model.eval()(feed.read()[0])
        except RuntimeError as error:
            raise UserError(
                f"model '{self.model.name}' does not run in {self.options.precision} ({first_line(error)}); "
                "use precision=float32"
            ) from None

    # --- resuming -------------------------------------------------------------------------------------------------
    def state(self) -> dict[str, Any]:
        """Everything that the next epoch depends on."""
        return {
            "weights": self.model.state_dict(),
            "optimiser": self.learner.optimiser.state_dict()["state"],
            "schedule": self.schedule.state(),
            "epoch": self.epoch,
            "best": self.best,
            "best_epoch": self.best_epoch,
            "best_weights": self.best_weights,
            "mark": self._mark,
            "waited": self._waited,
            "log": self.log,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Resume from `state`, possibly of another device; to be called before the first epoch."""
        for group in (state["weights"], state["best_weights"]):
            if not all(torch.isfinite(value).all() for value in group.values()):
                raise ValueError("its weights are not finite")
        self.model.load_state_dict(state["weights"])
        optimiser = self.learner.optimiser
        moments = {int(index): values for index, values in state["optimiser"].items()}
        optimiser.load_state_dict({**optimiser.state_dict(), "state": moments})
        self.schedule.load(state["schedule"])
        self.epoch, self.best, self.best_epoch = int(state["epoch"]), float(state["best"]), int(state["best_epoch"])
        self.best_weights = {key: value.to(self.device) for key, value in state["best_weights"].items()}
        self._mark, self._waited = float(state["mark"]), int(state["waited"])
        self.log = [dict(entry) for entry in state["log"]]


@torch.no_grad()
def add_errors(model: OperatorModel, loss: Loss, data: Prepared, scale: Tensor, total: Tensor) -> None:
    """Add the errors of all samples to ``total`` on the device, in evaluation mode and full precision."""
    device, size = model.device, max(1, evaluation_batch(model.setting.shape) // data.draws)
    model.eval()
    for start in range(0, len(data), size):
        rows = slice(start, min(start + size, len(data)))
        features = {k: _of_draws(v, rows, data).to(device, non_blocking=True) for k, v in data.features.items()}
        target, weight = (t[rows].to(device, non_blocking=True) for t in (data.target, scale))
        total.add_((loss.errors(model(features), target) * weight).sum())
    model.train()


def _of_draws(values: Tensor, rows: slice, data: Prepared) -> Tensor:
    """The features of some samples, one draw of the unseen noise after the other."""
    if data.draws == 1:
        return values[rows]
    return torch.cat([values[d * len(data) + rows.start : d * len(data) + rows.stop] for d in range(data.draws)])


def validation(model: OperatorModel, data: Prepared) -> float | None:
    """The mean relative L2 error on data; None if there are no samples."""
    loss = RelativeLoss("rel_l2", model.setting.grid, model.device)
    scale = _scales(loss.to(data.device), data)
    total = torch.zeros((), dtype=torch.float64, device=model.device)
    add_errors(model, loss, data, scale, total)
    kept = int((scale > 0).sum())
    return float(total) / kept if kept and math.isfinite(float(total)) else None


def _constant(value: float, data: Prepared) -> Tensor:
    """The same scale for all samples."""
    return torch.full((len(data),), value, device=data.device)


def _scales(loss: RelativeLoss, data: Prepared) -> Tensor:
    """The scale of the loss of each sample."""
    size = 64
    parts = [loss.scale(data.target[start : start + size]) for start in range(0, len(data), size)]
    return torch.cat(parts) if parts else torch.zeros(0, device=data.device)


def epoch_seed(seed: int, epoch: int) -> int:
    """A 63-bit seed for (seed, epoch), unrelated to those of other epochs and seeds."""
    return int.from_bytes(hashlib.sha256(f"spdebench {seed} {epoch}".encode()).digest()[:8], "big") >> 1


@contextmanager
def seeded_randomness(device: torch.device, seed: int) -> Iterator[None]:
    """A context in which torch draws from this seed on the host and on the device; afterwards the random states are
    restored."""
    cuda = device.type == "cuda"
    index = (device.index if device.index is not None else torch.cuda.current_device()) if cuda else 0
    with torch.random.fork_rng(devices=[index] if cuda else []):
        torch.default_generator.manual_seed(seed)
        if cuda:
            torch.cuda.default_generators[index].manual_seed(seed)
        yield
