"""The spec of a run: model, configuration, datasets, task and options; its JSON, hash and folder name."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from spdebench import spec
from spdebench.data import DatasetSpec
from spdebench.data.identity import dataset_of
from spdebench.equations import Equation
from spdebench.equations.identity import from_dict as equation_from_dict
from spdebench.errors import UnknownName, UserError
from spdebench.grids import Grid
from spdebench.models import MODELS, OperatorModel
from spdebench.tasks import Setting, Task, TaskSpec, subsampling
from spdebench.training.options import LAW_LOSSES, TrainOptions, options_for

LARGEST_FIELD = 1 << 16
"""The largest width, depth or rank that the configuration of a stored model may have."""
VERSION = 1
"""Version of the run folder and of the training protocol; other versions are refused."""


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """Everything that a run's numbers depend on; device, workers, graph capture and folders are not part of it.

    ``initial`` is a digest of the initial weights if the caller built the model; otherwise they follow from the seed.
    """

    model: str
    config: dict[str, Any]
    datasets: tuple[dict[str, Any], ...]
    task: dict[str, Any]
    options: dict[str, Any]
    version: int = VERSION
    initial: str = ""

    def __post_init__(self) -> None:
        for key in ("config", "datasets", "task", "options"):  # with the types that JSON gives them, to compare equal
            object.__setattr__(self, key, json.loads(spec.canonical_json(getattr(self, key))))
        object.__setattr__(self, "datasets", tuple(self.datasets))

    def __hash__(self) -> int:
        return hash(self.digest)

    def to_dict(self) -> dict[str, Any]:
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        values["datasets"] = list(self.datasets)
        if not self.initial:
            del values["initial"]
        return values

    @cached_property
    def digest(self) -> str:
        return spec.digest(self.to_dict())

    @property
    def equation(self) -> str:
        """The equation's name, as in messages and file names; 'imported' if it is not known."""
        of_task = self.task.get("equation")
        name = of_task.get("name", "imported") if isinstance(of_task, dict) else "imported"
        return str(self.datasets[0].get("equation") or name)

    @property
    def name(self) -> str:
        return f"{self.model}-{self.equation}-{self.digest}"

    @property
    def train_options(self) -> TrainOptions:
        return spec.build(TrainOptions, self.options, "training", stored=True)

    @property
    def task_spec(self) -> TaskSpec:
        return spec.build(TaskSpec, {k: v for k, v in self.task.items() if k != "equation"}, "task", stored=True)

    @property
    def setting(self) -> Setting:
        """The description of the data that the model was built for; no data are read."""
        try:
            return self._setting()
        except UnknownName as error:
            raise UserError(f"the run {self.name} {error.needed}") from None
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise UserError(f"the run {self.digest} does not describe its data ({error}); train it again") from None

    def _setting(self) -> Setting:
        first, task = self.datasets[0], self.task_spec
        if "published" not in first:
            return task.setting(dataset_of(first).equation)
        grid = Grid.from_dict(first["grid"])
        grid = grid.with_points([n // task.stride for n in grid.points])
        equation = equation_from_dict(self.task["equation"]) if "equation" in self.task else None
        times = tuple(float(t) for t in first["times"][:: task.every])
        if len(times) < 2 or times[1] <= times[0]:
            raise ValueError("the times do not rise")
        return Setting(grid, times, task.inputs, equation, task.seen)

    def build(self) -> OperatorModel:
        """The untrained model. Its weights are a function of the seed; the caller's random state does not change."""
        try:
            cls = MODELS[self.model]
        except UnknownName as error:
            raise UserError(f"the run {self.name} {error.needed}") from None
        config = spec.build(cls.config_class, self.config, f"model {self.model}", stored=True)
        for key, value in self.config.items():
            if isinstance(value, int) and abs(value) > LARGEST_FIELD:
                raise UserError(f"model {self.model}: {key} must be at most {LARGEST_FIELD}, got {value}")
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.train_options.seed)
            model = cls(self.setting, config)
        model.learned_law = self.train_options.loss in LAW_LOSSES
        return model


def from_dict(values: Any, where: str) -> RunSpec:
    """The spec that `to_dict` turned into ``values``; ``where`` names the file in error messages."""
    found = values.get("version") if isinstance(values, dict) else None
    if found != VERSION:
        raise UserError(f"{where} is a run of version {found!r}; this version reads {VERSION}: train it again")
    try:
        out = RunSpec(**{**values, "datasets": tuple(values["datasets"])})
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{where} is not the spec of a run ({error}); train it again") from None
    for key, kind in (("model", str), ("config", dict), ("task", dict), ("options", dict), ("initial", str)):
        if not isinstance(getattr(out, key), kind):
            raise UserError(f"{where} is not the spec of a run (its {key} is {getattr(out, key)!r}); train it again")
    if not out.datasets or not all(isinstance(d, dict) for d in out.datasets):
        raise UserError(f"{where} is not the spec of a run (it names no datasets); train it again")
    return out


def identify(model: str | OperatorModel, task: Task, config: Mapping[str, Any], given: Mapping[str, Any]) -> RunSpec:
    """The spec of training ``model`` (a name, or a built model with its initial weights) on a task."""
    setting = task.setting
    identity = task.identity
    if task.datasets[0].imported and setting.equation is not None:
        identity["task"]["equation"] = setting.to_dict()["equation"]
    if isinstance(model, str):
        cls = MODELS[model]
        cls.supports(setting)
        chosen, initial, name = cls.configure(setting, config), "", model
        if not cls.trainable:
            _refuse_options(model, given)
    else:
        if config:
            raise UserError("the model is built already; give config= with a model's name only")
        if model.setting != setting:
            raise UserError(f"model '{model.name}' was built for other data; build it with this task")
        chosen, name = model.config, model.name
        initial = weights_digest(model) if model.trainable else ""
    if len(task.equations) > 1:
        MODELS[name].check_mixture([dataclasses.replace(setting, equation=each) for each in task.equations], chosen)
    options = options_for(name, setting, **given)
    _check_one_law(options, len(task.datasets))
    return RunSpec(
        model=name,
        config=spec.to_dict(chosen),
        datasets=tuple(identity["datasets"]),
        task=identity["task"],
        options=spec.to_dict(options),
        initial=initial,
    )


def _check_one_law(options: TrainOptions, datasets: int) -> None:
    """Refuse to learn the law of a mixture of datasets."""
    if options.loss in LAW_LOSSES and datasets > 1:
        raise UserError(
            f"loss={options.loss} learns the law of one dataset, got a mixture of {datasets}; train on one of them"
        )


def _refuse_options(model: str, given: Mapping[str, Any]) -> None:
    """Refuse training options, except the seed, for a model without gradient steps, which would ignore them."""
    unused = vars(TrainOptions(epochs=0))
    for key, value in spec.current_names(given, spec.renamed(TrainOptions), "training").items():
        if key != "seed" and key in unused and str(value) != str(unused[key]):
            raise UserError(f"model '{model}' is fitted without gradient steps; it takes no {key}, got {key}={value}")


def plan(
    model: str,
    data: Equation | DatasetSpec | Sequence[Equation | DatasetSpec],
    task: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> RunSpec:
    """The spec of the run that `train` would make with these datasets, which need not exist.

    An equation stands for its dataset of 1200 samples with seed 0.
    """
    several = [data] if isinstance(data, Equation | DatasetSpec) else list(data)
    datasets = [DatasetSpec(equation=d, n=1200) if isinstance(d, Equation) else d for d in several]
    equations = [d.equation for d in datasets]
    defaults = {"inputs": "u0+xi" if any(e.task == "u0+xi" for e in equations) else "xi", **subsampling(equations[0])}
    chosen = spec.build(TaskSpec, {**defaults, **(task or {})}, "task")
    setting = chosen.setting(equations[0])
    cls = MODELS[model]
    cls.supports(setting)
    chosen_config = cls.configure(setting, config or {})
    if len(equations) > 1:
        cls.check_mixture([chosen.setting(each) for each in equations], chosen_config)
    training = options_for(model, setting, **(options or {}))
    _check_one_law(training, len(datasets))
    return RunSpec(
        model=model,
        config=spec.to_dict(chosen_config),
        datasets=tuple(d.to_dict() for d in datasets),
        task=spec.to_dict(chosen),
        options=spec.to_dict(training),
    )


def weights_digest(model: OperatorModel) -> str:
    """A digest of all parameters and persistent buffers, the same on every device."""
    digest = hashlib.sha256()
    for key, value in sorted(model.state_dict().items()):
        digest.update(f"{key} {value.dtype} {tuple(value.shape)};".encode())
        plain = torch.view_as_real(value) if value.is_complex() else value
        digest.update(plain.detach().cpu().flatten().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]
