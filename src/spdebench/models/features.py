"""Compute the features of a whole part (training, validation or test) once, in chunks.

They stay on the device if they fit. Otherwise they stay in page-locked memory of the host, from which batches are
copied asynchronously. Features that are expensive to compute can be cached on disk.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spdebench import spec, tensors
from spdebench.engines import check_free_memory
from spdebench.equations.identity import to_dict as equation_to_dict
from spdebench.errors import UserError
from spdebench.models.base import Features, OperatorModel
from spdebench.noise.unseen import fill_states
from spdebench.registry import source
from spdebench.tasks import Batch, Part
from spdebench.version import __version__

CHUNK_BYTES = 64 << 20  # of increments per chunk


@dataclass
class Prepared:
    """Features and targets of a part, all on one device.

    With several ``draws`` of the unseen noise, row r + d n of the features is draw d of the r-th of n samples.
    """

    features: Features
    target: Tensor
    draws: int = 1

    def __len__(self) -> int:
        return len(self.target)

    @property
    def device(self) -> torch.device:
        return self.target.device

    @property
    def nbytes(self) -> int:
        return sum(t.nbytes for t in (*self.features.values(), self.target))


@dataclass(frozen=True)
class Chunks:
    """(features, target) of a part, chunk by chunk on the model's device; the whole part is never in memory."""

    model: OperatorModel
    part: Part

    def __iter__(self) -> Iterator[tuple[Features, Tensor]]:
        device = self.model.device
        for batch, u in self.part.chunks():
            yield self.model.prepare(batch.to(device)), u.to(device)


def prepare_part(
    model: OperatorModel,
    part: Part,
    *,
    device: torch.device | str | None = None,
    cache: Path | None = None,
) -> Prepared:
    """Features and targets of all samples on ``device`` (by default the model's).

    ``cache`` is a folder in which features of models with ``costly_features`` are kept between runs.
    """
    storage = torch.device(device) if device is not None else model.device
    features = (
        _cached(model, part, storage, cache) if cache and model.costly_features else _computed(model, part, storage)
    )
    return Prepared(features, _on_device(part.u, storage, model))


@dataclass
class Redrawn(Prepared):
    """Features for several draws of the unseen noise, which `draw` replaces in place.

    The tensors stay where they are, so that a captured graph that reads them sees the new values. They take ``draws``
    times the memory of ordinary features; the seen noise and the initial data are kept as well.
    """

    model: OperatorModel = field(kw_only=True)
    given: Batch = field(kw_only=True)  # u0 and the seen noise
    seed: int = field(kw_only=True)
    epoch: int | None = None  # the epoch of the present draws

    @torch.no_grad()
    def draw(self, epoch: int | None) -> None:
        """Draw the unseen noise of all samples: a function of (seed, epoch, sample, draw), or without the epoch."""
        if epoch is not None and epoch == self.epoch:
            return
        n, setting, device = len(self), self.model.setting, self.model.device
        unseen, size = setting.unseen(), _chunk(setting.shape)
        for number in range(self.draws):
            for start in range(0, n, size):
                rows = slice(start, min(start + size, n))
                states = fill_states(self.seed, range(rows.start, rows.stop), number, device, epoch)
                known = _rows(self.given, rows).to(device)
                filled = replace(known, dw=known.dw + unseen.draw(states, setting.frames - 1, setting.dt))
                found = _checked(self.model, self.model.prepare(filled))
                _allocate(self.features, found, n * self.draws, self.model, self.device)
                for key, values in found.items():
                    self.features[key][number * n + rows.start : number * n + rows.stop] = values
        self.epoch = epoch


@dataclass
class FlowPairs(Prepared):
    """The regression data of loss=flow: features that include random times and states, and the targets for them.

    `draw` replaces them in place with the results of `OperatorModel.flow_pair`; row r + d n is draw d of the r-th of n
    samples. Before the first draw the target is u, with which the model is calibrated.
    """

    model: OperatorModel = field(kw_only=True)
    u: Tensor = field(kw_only=True)
    seed: int = field(kw_only=True)
    epoch: int | None = None  # the epoch of the present draws

    def __post_init__(self) -> None:
        self._given = tuple(self.features)

    @torch.no_grad()
    def draw(self, epoch: int | None) -> None:
        """Draw times and states of all samples: functions of (seed, epoch, sample, draw), or without the epoch."""
        if epoch is not None and epoch == self.epoch:
            return
        n, device, size = len(self.u), self.model.device, _chunk(self.model.setting.shape)
        for number, start in itertools.product(range(len(self) // max(1, n)), range(0, n, size)):
            stop = min(start + size, n)
            states = fill_states(self.seed, range(start, stop), number, device, epoch)
            rows = slice(number * n + start, number * n + stop)
            known = {key: self.features[key][rows].to(device) for key in self._given}
            drawn, target = self.model.flow_pair(known, self.u[start:stop].to(device), states)
            _allocate(self.features, drawn, len(self), self.model, self.device)
            for key, values in drawn.items():
                self.features[key][rows] = values
            self.target[rows] = target
        self.epoch = epoch


def flow_part(model: OperatorModel, part: Part, draws: int, seed: int, device: torch.device) -> FlowPairs:
    """The features of a part with ``draws`` rows for each sample, to be filled by `FlowPairs.draw`."""
    data = prepare_part(model, part, device=device)

    def repeated(values: Tensor) -> Tensor:
        return _on_device(values.repeat(draws, *(1,) * (values.ndim - 1)), device, model)

    features = {key: repeated(values) for key, values in data.features.items()}
    return FlowPairs(features, repeated(data.target), model=model, u=data.target, seed=seed)


def redrawn_part(
    model: OperatorModel, part: Part, draws: int, seed: int, epoch: int | None, device: torch.device
) -> Redrawn:
    """The features of a part with ``draws`` draws of the unseen noise for each sample; see `Redrawn.draw`."""
    given = part.batch()
    given = replace(given, u0=_on_device(given.u0, device, model), dw=_on_device(given.dw, device, model))
    data = Redrawn({}, _on_device(part.u, device, model), draws, model=model, given=given, seed=seed)
    data.draw(epoch)
    return data


def fits(model: OperatorModel, parts: Mapping[Part, int], share: float) -> bool:
    """Whether features and targets of these parts need at most this share of the free memory of the model's device.

    ``parts`` maps each part to its number of draws of the unseen noise, 0 if none is drawn.
    """
    if model.device.type != "cuda":
        return True
    first = next(iter(parts))
    each = sum(t.nbytes for t in _features(model, first, slice(0, 1)).values())
    field_bytes = 4 * math.prod(first.shape)
    need = sum(len(part) * (max(1, draws) * each + (2 if draws else 1) * field_bytes) for part, draws in parts.items())
    free, _ = torch.cuda.mem_get_info(model.device)
    return need <= share * free


def _features(model: OperatorModel, part: Part, rows: slice) -> Features:
    """The features of some rows of a part."""
    with torch.no_grad():  # not inference_mode, whose tensors cannot be used with autograd later
        return _checked(model, model.prepare(part.batch(rows).to(model.device)))


def _checked(model: OperatorModel, found: Features) -> Features:
    """What ``prepare`` has returned, if it is a dictionary of tensors."""
    if not isinstance(found, dict) or not all(isinstance(v, Tensor) for v in found.values()):
        raise UserError(f"model '{model.name}': prepare must return a dictionary of tensors, it returned {found!r:.80}")
    return found


def _computed(model: OperatorModel, part: Part, device: torch.device) -> Features:
    """The features of a part, computed in chunks whose size does not depend on free memory, so that the bits do not."""
    size = _chunk(part.shape)
    out: Features = {}
    for start in range(0, len(part), size):
        found = _features(model, part, slice(start, start + size))
        _allocate(out, found, len(part), model, device)
        for key, values in found.items():
            if len(values) != len(out[key][start : start + size]):
                raise UserError(
                    f"model '{model.name}': feature '{key}' has {len(values)} rows for "
                    f"{len(out[key][start : start + size])} samples; its first axis must be the samples"
                )
            out[key][start : start + size] = values
    return out


def _chunk(shape: tuple[int, ...]) -> int:
    """How many samples (T X..) are prepared at a time."""
    return max(1, min(256, CHUNK_BYTES // (4 * math.prod(shape))))


def _allocate(features: Features, found: Features, rows: int, model: OperatorModel, device: torch.device) -> None:
    """Add an uninitialised tensor with ``rows`` rows to ``features`` for each name that only ``found`` has."""
    new = {key: values for key, values in found.items() if key not in features}
    if new and device.type == "cpu":
        need = rows * sum(values[:1].nbytes for values in new.values())
        what = f"model '{model.name}': features in {rows} rows (one per sample and draw of the noise)"
        check_free_memory(need, what, "use n= for fewer samples, every= or stride=")
    for key, values in new.items():
        shape = rows, *values.shape[1:]
        features[key] = torch.empty(shape, dtype=values.dtype, device=device, pin_memory=_pinned(device, model))


def _rows(batch: Batch, rows: slice) -> Batch:
    """Some rows of a batch."""
    source = None if batch.source is None else batch.source[rows]
    return Batch(batch.u0[rows], batch.dw[rows], batch.equations, source)


def _pinned(device: torch.device, model: OperatorModel) -> bool:
    """Whether tensors at ``device`` will be copied to a GPU later."""
    return device.type == "cpu" and model.device.type == "cuda"


def _on_device(values: Tensor, device: torch.device, model: OperatorModel) -> Tensor:
    """The values on a device, in page-locked memory if they will be copied to a GPU later."""
    return values.pin_memory() if _pinned(device, model) else values.to(device)


# --- on disk ------------------------------------------------------------------------------------------------------
def features_key(model: OperatorModel, part: Part) -> str:
    """A hash of everything that features depend on: the model, its configuration, the input data and the versions of
    the user's own files that declare the model or an equation."""
    content = hashlib.sha256()
    batch = part.batch()
    for values in (batch.u0, batch.dw, batch.source):
        assert values is not None
        content.update(values.contiguous().numpy().tobytes())
    identity: dict[str, Any] = {
        "model": model.name,
        "features": model.feature_spec(),
        "setting": model.setting.to_dict(),
        "equations": [equation_to_dict(e) for e in batch.equations],
        "inputs": content.hexdigest(),
        "versions": [__version__, torch.__version__],
        "sources": [source(type(each)) for each in (model, *batch.equations)],
        "device": model.device.type,
    }
    return spec.digest(identity, 16)


def _cached(model: OperatorModel, part: Part, device: torch.device, folder: Path) -> Features:
    """The features of a part from a file in ``folder``; computed and written if there is none."""
    path = Path(folder) / f"{model.name}-{features_key(model, part)}.safetensors"
    if path.exists():
        try:
            return {key: _on_device(values, device, model) for key, values in _read(path, len(part)).items()}
        except (OSError, ValueError) as error:
            warnings.warn(f"{path} cannot be read ({error}); the features are computed again", stacklevel=2)
    features = _computed(model, part, device)
    try:
        tensors.save(path, {key: values.cpu() for key, values in features.items()})
    except UserError as error:  # the run can continue without the cache, for example if the disk is full
        warnings.warn(f"features are not cached: {error}", stacklevel=2)
    return features


def _read(path: Path, rows: int) -> Features:
    """The features in a file; raises ValueError if they do not have this number of rows."""
    found = tensors.load(path)
    for key, values in found.items():
        if not isinstance(values, Tensor) or values.ndim == 0 or len(values) != rows or not values.is_contiguous():
            raise ValueError(f"'{key}' is no feature of {rows} samples")
    return found
