"""A run is a folder with spec, log, best weights, predictions, scores and record; `open_run` opens it.

spec.json         the spec; its hash is in the folder's name
source.json       the version of the user's own file that declares the model, if it is not a model of this package
log.jsonl         epoch, train, val, lr, seconds
last.safetensors  during training: the state from which it is resumed
best.safetensors  after training: the weights with the smallest validation error
predictions.npy   u of the test part, float32 (N T X..), if kept; where members of a law are drawn, their mean
members.npy       the members that were drawn for the first inputs of the test part, float32 (4 m T X..), if kept
scores.json       all metrics on the test part with intervals and per-sample values
record.json       one object with everything that tables need; it is there if and only if the run is finished
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spdebench.data.checks import check_device
from spdebench.display import Displayed, TableRows, facts
from spdebench.engines import check_free_memory
from spdebench.equations import Equation
from spdebench.errors import UserError
from spdebench.files import check_regular
from spdebench.metrics import Scores
from spdebench.models import MODELS, OperatorModel
from spdebench.models.base import evaluation_batch
from spdebench.noise import UnseenNoise
from spdebench.records import MetricValue, Provenance, Record
from spdebench.records.codec import decode
from spdebench.spec import is_whole_number
from spdebench.tasks import Batch, Setting
from spdebench.training import checkpoints
from spdebench.training.folder import checkpoint_file, read_json, read_log, read_record
from spdebench.training.identity import RunSpec, from_dict
from spdebench.training.limits import check_types, parameters_at_most
from spdebench.training.members import TEST_MEMBERS, draw
from spdebench.training.overrides import as_arguments


class Run(Displayed):
    """A training run: ``run.scores``, ``run.log``, ``run.record``, ``run.model``, ``run.predict(u0, dw)``, and, for
    laws, ``run.sample(u0, dw_seen)``."""

    def __init__(self, path: Path, spec: RunSpec) -> None:
        self.path, self.spec = path, spec

    def overview(self) -> tuple[str, TableRows]:
        record = self.record if self.finished else None
        score, law = (record.scores.get(name) if record else None for name in ("rel_l2", "energy_score"))
        done = f"{len(self.log)} of {self.spec.options.get('epochs')} epochs"
        return f"Run {self.path}", facts(
            model=self.spec.model,
            config=as_arguments(self.spec.config) or None,
            equation=self.spec.equation,
            parameters=record and record.parameters,
            state="finished" if record else "trained, not tested" if self.trained else f"not finished, {done}",
            best_epoch=record and f"{record.best_epoch} of {record.epochs}",
            rel_l2_of_the_test_part=score and _with_interval(score),
            energy_score_of_the_test_part=law and _with_interval(law),
        )

    @property
    def name(self) -> str:
        return self.spec.name

    def file(self, name: str) -> Path:
        return self.path / name

    @property
    def weights_file(self) -> Path:
        """The best weights; written when training ends."""
        return checkpoint_file(self.path, "best")

    # --- state and files ------------------------------------------------------------------------------------------
    @property
    def trained(self) -> bool:
        return self.weights_file.exists()

    @property
    def finished(self) -> bool:
        """Whether the run is trained and tested."""
        return self.file("record.json").exists()

    @property
    def log(self) -> list[dict[str, Any]]:
        return read_log(self.file("log.jsonl"))

    @cached_property
    def best(self) -> dict[str, Any]:
        """The content of `weights_file`: weights, val, best_epoch, epochs, seconds, peak_memory_mb and provenance."""
        if not self.trained:
            done = self.log
            where = f"epoch {done[-1]['epoch']} of {self.spec.options.get('epochs')}" if done else "not begun"
            raise UserError(f"{self.path} is not trained to its end ({where}); repeat its train command to continue")
        content = checkpoints.load(self.weights_file, self.spec.digest)
        try:
            check_best(content)
        except (ValueError, UserError) as error:
            raise UserError(f"{self.weights_file} does not fit its run ({error}); train it again") from None
        return content

    @property
    def val(self) -> float | None:
        """The best validation error; None for a model that is not trained."""
        value = self.best.get("val")
        return float(value) if isinstance(value, int | float) else None

    @property
    def record(self) -> Record:
        if not self.finished:
            raise UserError(f"{self.path} is not finished; repeat its train command to continue")
        record = read_record(self.file("record.json"))
        if record.digest != self.spec.digest:
            raise UserError(f"{self.file('record.json')} belongs to run {record.digest}; train it again")
        return record

    @property
    def scores(self) -> Scores:
        """The scores on the test part of its own task."""
        self.record  # noqa: B018  (refuses a run that is not finished)
        return Scores.from_dict(read_json(self.file("scores.json")))

    @property
    def predictions(self) -> np.ndarray | None:
        """u of the test part, mapped from its file; None if the predictions were not kept."""
        return self._mapped("predictions.npy")

    @property
    def members(self) -> np.ndarray | None:
        """Drawn members of the law for the first inputs of the test part, (4, m, T, X..), mapped from their file.

        None if the run does not draw members, or if they were not kept.
        """
        return self._mapped("members.npy")

    def _mapped(self, name: str) -> np.ndarray | None:
        """The array in a file, mapped into memory; None if there is no such file."""
        path = self.file(name)
        try:
            if not path.exists():
                return None
            check_regular(path)
            found: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
            return found
        except Exception as error:  # a damaged header raises whatever its damage leads to
            raise UserError(f"{path} cannot be read as an array ({error}); train the run again") from None

    # --- predictions ----------------------------------------------------------------------------------------------
    @property
    def task_setting(self) -> Setting:
        return self.spec.setting

    @cached_property
    def model(self) -> OperatorModel:
        """The model with its best weights, in evaluation mode."""
        weights = self.best.get("weights")
        try:
            with parameters_at_most(4 * sum(w.numel() for w in weights.values())):  # type: ignore[union-attr]
                model = self.spec.build()
            model.load_state_dict(weights)  # type: ignore[arg-type]
            check_types(model, weights)  # type: ignore[arg-type]
        except (RuntimeError, TypeError, AttributeError, MemoryError) as error:
            line = str(error).partition("\n")[0]
            raise UserError(f"{self.weights_file} does not fit its run ({line}); train it again") from None
        return model.eval()

    def predict(self, u0: Any, dw: Any, *, equation: Equation | None = None, device: str = "cpu") -> np.ndarray:
        """u (N T X..) at all frames t_0..t_T for initial data u0 (N X..) and increments dw (N T X..), dw[:,0] = 0.

        ``equation`` is that of the new samples, if it is not the equation of the (first) training dataset. For a run
        that draws members of a law, dw is the seen noise and u the mean of 64 members.
        """
        check_device(device)
        start, noise = self._inputs(u0, dw)
        what = f"{self.name}: predictions for {len(noise)} inputs"
        check_free_memory(noise.nbytes, what, "predict for fewer inputs at a time")
        out = np.empty(tuple(noise.shape), dtype=np.float32)
        if self.model.draws_members:
            for rows, drawn in self._drawn(start, noise, TEST_MEMBERS, 0, None, device):
                out[rows] = drawn.mean(1)
            return out
        known = equation or self.task_setting.equation
        model = self.model.to(device)
        size = evaluation_batch(tuple(noise.shape[1:]))
        for first in range(0, len(noise), size):
            rows = slice(first, first + size)
            source = torch.zeros(len(noise[rows]), dtype=torch.long)
            batch = Batch(start[rows], noise[rows], (known,) if known else (), source)
            out[rows] = model.predict(batch).cpu().numpy()
        return out

    def sample(
        self, u0: Any, dw_seen: Any, *, members: int = 64, seed: int = 0, seen: int | None = None, device: str = "cpu"
    ) -> np.ndarray:
        """Members of the law of u given initial data u0 (N X..) and the seen noise dw_seen (N T X..): (N m T X..).

        For a network that was trained with loss=energy or loss=flow, for a model that draws members itself, and, with
        ``seen=K``, for a model that was trained with all of the noise: then the noise modes that truncation K does not
        keep are drawn from their true law. Member i of row n is a function of (seed, n, i).
        """
        check_device(device)
        if not is_whole_number(members) or members < 1:
            raise UserError(f"{self.name}: members must be a whole number, at least 1, got {members}")
        if not hasattr(seed, "__index__"):
            raise UserError(f"{self.name}: seed must be a whole number, got {seed!r}")
        if seen is not None and not is_whole_number(seen):
            raise UserError(f"{self.name}: seen must be a whole number, got {seen!r}")
        members = int(members)
        start, noise = self._inputs(u0, dw_seen)
        completed_by = self.completion(seen)
        what = f"{self.name}: {members} members for each of {len(noise)} inputs"
        instead = "draw fewer members, or for fewer inputs at a time and with another seed each time"
        both = len(noise) + min(len(noise), _inputs_at_a_time(noise, members))  # all members, and those being drawn
        check_free_memory(4 * both * members * math.prod(noise.shape[1:]), what, instead)
        out = np.empty((len(noise), members, *noise.shape[1:]), dtype=np.float32)
        for rows, drawn in self._drawn(start, noise, members, seed, completed_by, device):
            out[rows] = drawn
        return out

    def _drawn(
        self, u0: Tensor, dw: Tensor, members: int, seed: int, completed_by: UnseenNoise | None, device: str
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """(Rows, their members (B m T X..)), for a few inputs at a time."""
        model, known = self.model.to(device), self.task_setting.equation
        size = _inputs_at_a_time(dw, members)
        for first in range(0, len(dw), size):
            rows = slice(first, min(first + size, len(dw)))
            numbers = torch.arange(rows.start, rows.stop)
            batch = Batch(u0[rows], dw[rows], (known,) if known else (), torch.zeros_like(numbers))
            yield rows, draw(model, batch, members, seed, numbers, completed_by).cpu().numpy()

    def completion(self, seen: int | None) -> UnseenNoise | None:
        """The law from which the unseen noise is drawn for a model that was trained with all of the noise.

        None if the model draws members itself; a run that can do neither is refused.
        """
        setting = self.task_setting
        if self.model.draws_members:
            if seen not in (None, setting.seen):
                raise UserError(f"{self.name} was trained with seen={setting.seen}, it has no law for seen={seen}")
            return None
        if setting.partial:
            raise UserError(
                f"{self.name} predicts one solution and not a law; train it with loss={self.model.law_loss}, or "
                f"another model that draws members: {', '.join(n for n in MODELS if MODELS[n].generative) or 'none'}"
            )
        if seen is None:
            raise UserError(
                f"{self.name} was trained with all of the noise; in Python run.sample(u0, dw_seen, seen=K) draws the "
                f"part of it that is not in dw_seen"
            )
        if setting.equation is None:
            raise UserError(f"{self.name} was trained on imported data, so that the law of their noise is not known")
        return setting.unseen(law=True, seen=seen)

    def _inputs(self, u0: Any, dw: Any) -> tuple[Tensor, Tensor]:
        """u0 and dw as tensors in float32, if the model can predict for them."""
        try:
            start, noise = (torch.as_tensor(np.asarray(a), dtype=torch.float32) for a in (u0, dw))
        except (TypeError, ValueError) as error:
            raise UserError(f"{self.name}: u0 and dw must be arrays of numbers ({error})") from None
        self._check(tuple(start.shape), tuple(noise.shape))
        return start, noise

    def _check(self, u0: tuple[int, ...], dw: tuple[int, ...]) -> None:
        """Raise an error unless the model can predict for u0 and dw of these shapes."""
        setting = self.task_setting
        layout = " ".join("XYZ"[: setting.dim])
        fixed_horizon = not type(self.model).any_horizon
        if len(dw) != 2 + setting.dim or (fixed_horizon and dw[1] != setting.frames):
            raise UserError(
                f"{self.name}: dw must be (N T {layout}) with {setting.frames} frames, t_0 among them, got {dw}"
            )
        if dw[2:] != setting.grid.points and not type(self.model).any_grid:
            raise UserError(
                f"{self.name}: model '{self.spec.model}' works on the {setting.grid.points} points it was trained on, "
                f"got {dw[2:]}"
            )
        if u0 != (dw[0], *dw[2:]):
            raise UserError(f"{self.name}: u0 must be (N {layout}) = {(dw[0], *dw[2:])} to go with dw, got {u0}")


def _inputs_at_a_time(dw: Tensor, members: int) -> int:
    """For how many inputs members are drawn together, at least one."""
    return max(1, evaluation_batch(tuple(dw.shape[1:])) // members)


def _with_interval(score: MetricValue) -> str:
    """'0.1234 [0.12, 0.13]', or the value alone."""
    known = score.low is not None and score.high is not None
    return f"{score.value:.4g} [{score.low:.4g}, {score.high:.4g}]" if known else f"{score.value:.4g}"


def check_best(content: dict[str, Any]) -> None:
    """Raise an error unless the file of the best weights has all entries, of the right types, and finite weights."""
    weights = content.get("weights")
    if not isinstance(weights, dict) or not all(isinstance(w, torch.Tensor) for w in weights.values()):
        raise ValueError("it has no weights")
    if not all(bool(torch.isfinite(w).all()) for w in weights.values()):
        raise ValueError("its weights are not finite")
    types = {"val": float | None, "best_epoch": int, "epochs": int, "seconds": float, "peak_memory_mb": float | None}
    for key, kind in {**types, "provenance": Provenance}.items():
        if key not in content:
            raise ValueError(f"{key} is missing")
        decode(kind, content[key], key)


def open_run(path: str | os.PathLike[str]) -> Run:
    """Open a run's folder, of which only the spec is read at first, or a file of one model (`write_model`)."""
    folder = Path(path)
    if folder.suffix == ".safetensors":
        from spdebench.training.share import open_file

        return open_file(folder)
    file = folder / "spec.json"
    if not file.is_file():
        raise UserError(f"no such run: {folder} (a run is a folder with a spec.json, as 'spdebench train' makes it)")
    return Run(folder, from_dict(read_json(file), str(folder)))
