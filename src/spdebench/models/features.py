"""Compute the features of a whole part (train, val or test) once, in chunks.

They stay on the device if they fit. Otherwise they stay in page-locked memory of the host, from which batches are
copied asynchronously. Features that are expensive to compute can be cached on disk.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spdebench import spec, tensors
from spdebench.equations.identity import to_dict as equation_to_dict
from spdebench.errors import UserError
from spdebench.models.base import Features, OperatorModel
from spdebench.tasks import Part
from spdebench.version import __version__

CHUNK_BYTES = 64 << 20  # of increments per chunk
WIDTH = 64  # assumed number of channels per output value, for choosing the batch size of evaluation


@dataclass
class Prepared:
    """Features and targets of a part, all on one device."""

    features: Features
    target: Tensor

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
    """(features, target) of a part, chunk by chunk where the model is; the part is never held whole."""

    model: OperatorModel
    part: Part

    def __iter__(self) -> Iterator[tuple[Features, Tensor]]:
        device = self.model.device
        for batch, u in self.part.chunks():
            yield self.model.prepare(batch.to(device)), u.to(device)


def evaluation_batch(shape: tuple[int, ...]) -> int:
    """Batch size for evaluation of samples (T X..): 100 as in the paper, or fewer so that it needs at most 2 GB."""
    return max(1, min(100, (2 << 30) // (4 * WIDTH * math.prod(shape))))


def prepare_part(
    model: OperatorModel,
    part: Part,
    *,
    place: torch.device | str | None = None,
    cache: Path | None = None,
) -> Prepared:
    """Features and targets of all samples on the device ``place`` (by default the model's).

    ``cache`` is a folder in which features of models with ``costly_features`` are kept between runs.
    """
    where = torch.device(place) if place is not None else model.device
    features = _cached(model, part, where, cache) if cache and model.costly_features else _computed(model, part, where)
    return Prepared(features, _put(part.u, where, model))


def fits(model: OperatorModel, parts: tuple[Part, ...], share: float) -> bool:
    """Whether features and targets of these parts need at most this share of the free memory of the model's device."""
    if model.device.type != "cuda":
        return True
    one = _features(model, parts[0], slice(0, 1))
    each = sum(t.nbytes for t in one.values()) + 4 * math.prod(parts[0].shape)
    free, _ = torch.cuda.mem_get_info(model.device)
    return each * sum(len(part) for part in parts) <= share * free


def _features(model: OperatorModel, part: Part, rows: slice) -> Features:
    with torch.no_grad():  # not inference_mode, whose tensors cannot be used with autograd later
        found = model.prepare(part.batch(rows).to(model.device))
    if not isinstance(found, dict) or not all(isinstance(v, Tensor) for v in found.values()):
        raise UserError(f"model '{model.name}': prepare must return a dictionary of tensors, it returned {found!r:.80}")
    return found


def _computed(model: OperatorModel, part: Part, where: torch.device) -> Features:
    """Features computed in chunks whose size does not depend on free memory, so that the bits do not either."""
    size = max(1, min(256, CHUNK_BYTES // (4 * math.prod(part.shape))))
    out: Features = {}
    for start in range(0, len(part), size):
        for key, values in _features(model, part, slice(start, start + size)).items():
            if key not in out:
                shape = (len(part), *values.shape[1:])
                out[key] = torch.empty(shape, dtype=values.dtype, device=where, pin_memory=_pinned(where, model))
            if len(values) != len(out[key][start : start + size]):
                raise UserError(
                    f"model '{model.name}': feature '{key}' has {len(values)} rows for "
                    f"{len(out[key][start : start + size])} samples; its first axis must be the samples"
                )
            out[key][start : start + size] = values
    return out


def _pinned(where: torch.device, model: OperatorModel) -> bool:
    """Whether tensors at ``where`` will be copied to a GPU later."""
    return where.type == "cpu" and model.device.type == "cuda"


def _put(values: Tensor, where: torch.device, model: OperatorModel) -> Tensor:
    return values.pin_memory() if _pinned(where, model) else values.to(where)


# --- on disk ------------------------------------------------------------------------------------------------------
def features_key(model: OperatorModel, part: Part) -> str:
    """A hash of everything that features depend on: the model, its configuration and the input data."""
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
        "device": model.device.type,
    }
    return spec.digest(identity, 16)


def _cached(model: OperatorModel, part: Part, where: torch.device, folder: Path) -> Features:
    path = Path(folder) / f"{model.name}-{features_key(model, part)}.safetensors"
    if path.exists():
        try:
            return {key: _put(values, where, model) for key, values in _read(path, len(part)).items()}
        except (OSError, ValueError) as error:
            warnings.warn(f"{path} cannot be read ({error}); the features are computed again", stacklevel=2)
    features = _computed(model, part, where)
    try:
        tensors.save(path, {key: values.cpu() for key, values in features.items()})
    except UserError as error:  # the run can continue without the cache, for example if the disk is full
        warnings.warn(f"features are not cached: {error}", stacklevel=2)
    return features


def _read(path: Path, rows: int) -> Features:
    found = tensors.load(path)
    for key, values in found.items():
        if not isinstance(values, Tensor) or values.ndim == 0 or len(values) != rows or not values.is_contiguous():
            raise ValueError(f"'{key}' is no feature of {rows} samples")
    return found
