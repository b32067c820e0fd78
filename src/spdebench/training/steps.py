"""One optimiser step, eager or replayed as a CUDA graph, on data that are on the device or streamed from the host.

A step has a fixed number of samples: `stage` selects them (outside the graph) and `read` returns them (inside it).
Nothing in a step waits for the device; the losses are summed there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from spdebench.errors import UserError, first_line
from spdebench.models.base import Features
from spdebench.models.features import Prepared
from spdebench.training.losses import Loss

WARM_UP = 3  # eager steps before a capture, in which libraries choose algorithms and allocate workspaces


class Feed(Protocol):
    """Returns the staged samples: features, targets and the scales of the targets, on the model's device."""

    def stage(self, rows: Tensor) -> None: ...

    def read(self) -> tuple[Features, Tensor, Tensor]: ...


class Resident:
    """All data are on the device; a batch is selected there."""

    def __init__(self, data: Prepared, scale: Tensor, size: int) -> None:
        self._features, self._target, self._scale = data.features, data.target, scale
        self._draws, self._samples = data.draws, len(data)
        self.rows = torch.zeros(size, dtype=torch.long, device=data.device)

    def stage(self, rows: Tensor) -> None:
        self.rows.copy_(rows)

    def read(self) -> tuple[Features, Tensor, Tensor]:
        rows = of_all_draws(self.rows, self._draws, self._samples)
        features = {key: values.index_select(0, rows) for key, values in self._features.items()}
        return features, self._target.index_select(0, self.rows), self._scale.index_select(0, self.rows)


class Streamed:
    """A batch is gathered in page-locked memory of the host and copied to fixed buffers on the device.

    The allocator of page-locked memory does not reuse a block before the copy from it has ended.
    """

    def __init__(self, data: Prepared, scale: Tensor, size: int, device: torch.device) -> None:
        self._names = list(data.features)
        self._host = [*data.features.values(), data.target, scale]
        self._draws, self._samples = data.draws, len(data)
        counts = [size * data.draws] * len(self._names) + [size, size]
        self._buffers = [
            torch.zeros((count, *t.shape[1:]), dtype=t.dtype, device=device)
            for t, count in zip(self._host, counts, strict=True)
        ]
        self._pinned = device.type == "cuda"

    def stage(self, rows: Tensor) -> None:
        drawn = of_all_draws(rows, self._draws, self._samples)
        for source, target in zip(self._host, self._buffers, strict=True):
            gathered = torch.empty(target.shape, dtype=target.dtype, pin_memory=self._pinned)
            torch.index_select(source, 0, rows if len(target) == len(rows) else drawn, out=gathered)
            target.copy_(gathered, non_blocking=True)

    def read(self) -> tuple[Features, Tensor, Tensor]:
        *features, target, scale = self._buffers
        return dict(zip(self._names, features, strict=True)), target, scale


def of_all_draws(rows: Tensor, draws: int, samples: int) -> Tensor:
    """The rows of the features of these samples, one draw of the unseen noise after the other."""
    if draws == 1:
        return rows
    return (rows + samples * torch.arange(draws, device=rows.device)[:, None]).flatten()


def make_feed(data: Prepared, scale: Tensor, size: int, device: torch.device) -> Feed:
    """The feed for batches of ``size`` samples: `Resident` if the data are on the device, else `Streamed`."""
    return Resident(data, scale, size) if data.device == device else Streamed(data, scale, size, device)


@dataclass
class Learner:
    """The model with its optimiser and loss."""

    model: nn.Module
    forward: Callable[[Features], Tensor]  # the model, compiled if wanted
    optimiser: torch.optim.Optimizer
    loss: Loss
    clip: float
    autocast: Callable[[], AbstractContextManager[Any]]
    total: Tensor  # sum over samples of the losses of an epoch


class TrainingStep:
    """forward, backward, clip, optimiser step on ``size`` samples."""

    def __init__(self, learner: Learner, feed: Feed, size: int) -> None:
        self.learner, self.feed, self.size = learner, feed, size
        self.replay: Callable[[], None] | None = None  # replays the graph, once it is captured

    def __call__(self, rows: Tensor) -> None:
        self.feed.stage(rows)
        (self.replay or self.run)()

    def run(self) -> None:
        a = self.learner
        features, target, scale = self.feed.read()
        a.optimiser.zero_grad(set_to_none=True)
        with a.autocast():
            prediction = a.forward(features)
        loss = a.loss(prediction, target, scale)
        if not loss.requires_grad:
            raise UserError("the prediction does not depend on parameters of the model, so there is no gradient")
        loss.backward()
        if a.clip:
            torch.nn.utils.clip_grad_norm_(a.model.parameters(), a.clip)
        a.optimiser.step()
        a.total.add_(loss.detach(), alpha=self.size)


def bfloat16(device: torch.device) -> AbstractContextManager[Any]:
    """Mixed precision, without the cache of casts, because a captured graph must cast the weights in every replay."""
    return torch.autocast(device.type, dtype=torch.bfloat16, cache_enabled=False)


def full_precision() -> AbstractContextManager[Any]:
    return nullcontext()


def adam(model: nn.Module, lr: float, weight_decay: float, device: torch.device) -> torch.optim.Adam:
    """Adam with L2-coupled weight decay.

    On CUDA the learning rate is a tensor and nothing is read back, so that a step can be captured (and gives the same
    numbers if it is not). The fused kernel is used unless there are complex parameters, which it does not support.
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    fused = all(p.is_floating_point() for p in parameters)
    cuda = device.type == "cuda"
    rate: float | Tensor = torch.tensor(lr, device=device) if cuda else lr
    foreach = True if cuda and not fused else None
    return torch.optim.Adam(
        parameters, lr=rate, weight_decay=weight_decay, fused=fused, foreach=foreach, capturable=cuda
    )


def set_rate(optimiser: torch.optim.Optimizer, lr: float) -> None:
    """Set the learning rate, in place if it is a tensor."""
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(lr)
        else:
            group["lr"] = lr


# --- CUDA graphs --------------------------------------------------------------------------------------------------
class Snapshot:
    """A copy of weights, buffers and optimiser state, which is restored after the warm-up steps."""

    def __init__(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        self._optimiser = optimiser
        self._tensors = [*model.parameters(), *model.buffers()]
        self._values = [t.detach().clone() for t in self._tensors]
        self._state = {
            p: {k: v.clone() for k, v in state.items() if isinstance(v, Tensor)} for p, state in optimiser.state.items()
        }

    @torch.no_grad()
    def restore(self) -> None:
        """Restore in place, since a captured graph uses the addresses. State that is new since then is set to zero."""
        for tensor, value in zip(self._tensors, self._values, strict=True):
            tensor.copy_(value)
        for parameter, state in self._optimiser.state.items():
            before = self._state.get(parameter, {})
            for key, value in state.items():
                if isinstance(value, Tensor):
                    value.copy_(before[key]) if key in before else value.zero_()


def capture(
    learner: Learner, steps: Sequence[TrainingStep], validation: Sequence[Callable[[], None]] = ()
) -> list[Any] | None:
    """CUDA graphs of the steps and of ``validation``, in this order; None if capture fails.

    Warm-up and capture use one side stream and one memory pool: graphs are replayed one after the other and share no
    data through the pool. Weights, buffers and optimiser state are restored at the end.
    """
    before = Snapshot(learner.model, learner.optimiser)
    works = [*(step.run for step in steps), *validation]
    graphs: list[Any] = []
    stream, usual = torch.cuda.Stream(), torch.cuda.current_stream()
    try:
        stream.wait_stream(usual)
        with torch.cuda.stream(stream):
            for work in works:
                for _ in range(WARM_UP):
                    work()
        usual.wait_stream(stream)
        for work in works:
            learner.optimiser.zero_grad(set_to_none=True)  # gradients are then allocated in the pool of the graph
            graph = torch.cuda.CUDAGraph()
            pool = graphs[0].pool() if graphs else None
            with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
                work()
            graphs.append(graph)
    except RuntimeError as error:
        warnings.warn(f"the step cannot become a CUDA graph ({first_line(error)}); it runs eagerly", stacklevel=2)
        torch.cuda.set_stream(usual)  # a failed capture may leave its own stream current
        graphs = []
    learner.optimiser.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    before.restore()
    learner.total.zero_()
    return graphs or None
