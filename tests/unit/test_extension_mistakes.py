"""Mistakes in an equation, model, metric or scheme of the user's own are told in one line."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

import spdebench as sb
from spdebench.equations import EQUATIONS
from spdebench.metrics.base import METRICS
from spdebench.models.base import MODELS, Config
from spdebench.models.meanings import meaning
from spdebench.paper import Table, register_table
from spdebench.paper.catalogue import TABLES


@pytest.fixture(autouse=True)
def registries():
    """What a test declares is forgotten at its end."""
    known = [(each, dict(each._items)) for each in (EQUATIONS, METRICS, MODELS) if list(each)]
    yield
    for each, items in known:
        each._items.clear()
        each._items.update(items)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    phi = sb.equation("phi41", points=16, frames=10, steps=10, truncation=8)
    return sb.generate(phi, n=20, out=tmp_path_factory.mktemp("data"))


def test_a_missing_method_is_named_with_its_signature():
    with pytest.raises(sb.UserError, match=r"equation 'e1': class E1 has no method symbol\(self, grid: Grid, device"):

        class E1(sb.Equation, name="e1"):
            def initial(self, grid, seed, samples, device="cpu"): ...

    with pytest.raises(
        sb.UserError, match=r"model 'm1': class M1 has no method forward\(self, features: Features\) ->"
    ):

        class M1(sb.OperatorModel, name="m1"):
            def prepare(self, batch): ...

    with pytest.raises(sb.UserError, match=r"metric 'k1': class K1 has no method measure\(self, pair: Pair, \*, sam"):

        class K1(sb.Metric, name="k1"):
            pass

    with pytest.raises(sb.UserError, match=r"scheme 's1': class S1 has no method field\(self, state: State\)"):

        class S1(sb.Scheme, name="s1"):
            pass


def test_a_method_that_takes_other_arguments_is_named_with_those_it_must_take():
    """Otherwise it would end in a traceback, at the place where the package calls it."""
    with pytest.raises(
        sb.UserError, match=r"equation 'e2': E2.symbol must take \(self, grid, device\); it takes \(self, g"
    ):

        class E2(sb.Equation, name="e2"):
            def symbol(self, grid): ...

            def initial(self, grid, seed, samples, device="cpu"): ...

    with pytest.raises(sb.UserError, match=r"'e3': E3.drift must take \(self, grid, device\); it takes \(self, u\)"):

        class E3(sb.Equation, name="e3"):
            def symbol(self, grid, device="cpu"): ...

            def initial(self, grid, seed, samples, device="cpu"): ...

            def drift(self, u): ...

    with pytest.raises(
        sb.UserError, match=r"model 'm2': M2.forward must take \(self, features\); it takes \(self, u0, w\)"
    ):

        class M2(sb.OperatorModel, name="m2"):
            def prepare(self, batch): ...

            def forward(self, u0, w): ...

    with pytest.raises(sb.UserError, match=r"M3.__init__ must take \(self, setting, config\); it takes \(self, config"):

        class M3(Scaled, name="m3"):
            def __init__(self, config): ...

            def forward(self, features): ...

    with pytest.raises(sb.UserError, match=r"K2.measure must take \(self, pair, samples\); it takes \(self, pair"):

        class K2(sb.Metric, name="k2"):
            def measure(self, pair): ...


def test_a_method_of_a_class_without_a_name_is_compared_too_and_a_decorated_one_by_its_decorator(data):
    class Above(sb.Equation):
        def symbol(self, grid): ...

        def initial(self, grid, seed, samples, device="cpu"): ...

    with pytest.raises(
        sb.UserError, match=r"'e4': Above.symbol must take \(self, grid, device\); it takes \(self, grid\)"
    ):

        class E4(Above, name="e4"): ...

    def on_the_processor(method):
        @functools.wraps(method)
        def decorated(self, grid, device="cpu"):
            return method(self, grid).to(device)

        return decorated

    class E5(Above, name="e5"):
        @on_the_processor
        def symbol(self, grid):
            return torch.full(grid.spectral_shape, -1.0, dtype=torch.float64)

        def initial(self, grid, seed, samples, device="cpu"):
            return torch.ones(len(samples), *grid.points, dtype=torch.float64, device=device)

    fields = {"points": 16, "truncation": 8, "frames": 4, "steps": 4, "sigma": 0.0, "edition": "converged"}
    u = sb.simulate(E5(**fields), 0, [0], out_dtype=torch.float64).u[0, :, 0]
    torch.testing.assert_close(u, torch.exp(-torch.linspace(0, 1, 5, dtype=torch.float64)))


def test_a_prediction_without_a_gradient_is_one_line(data, tmp_path):
    class Constant(Scaled, name="constant"):
        def forward(self, features):
            return features["dw"]

    with pytest.raises(sb.UserError, match="does not depend on parameters of the model"):
        sb.train("constant", data, out=tmp_path, epochs=1, progress=False)


class Scaled(sb.OperatorModel):
    """w dW, with a mistake in the shape that subclasses make."""

    title = "Scaled"

    def __init__(self, setting, config):
        super().__init__(setting, config)
        self.w = torch.nn.Parameter(torch.ones(1))

    def prepare(self, batch):
        return {"dw": batch.dw}


def test_a_wrong_output_shape_is_told_with_the_expected_one(data, tmp_path):
    class NoFirstFrame(Scaled, name="no_first_frame"):
        def forward(self, features):
            return self.w * features["dw"][:, 1:]

    class OnePoint(Scaled, name="one_point"):  # would be broadcast
        def forward(self, features):
            return self.w * features["dw"][..., :1]

    class NoTensors(Scaled, name="no_tensors"):
        def prepare(self, batch):
            return [batch.dw]

        def forward(self, features): ...

    for model, expected, got in (("no_first_frame", 11, r"10, 16\)"), ("one_point", 11, r"11, 1\)")):
        with pytest.raises(sb.UserError, match=rf"must return u .*, {expected}, 16\); it returned \(\d+, {got}"):
            sb.train(model, data, out=tmp_path, epochs=1, progress=False)
        with pytest.raises(sb.UserError, match=f"model '{model}' must return u"):
            task = sb.Task(data)
            sb.model(model, task).predict(task.val.batch())
    with pytest.raises(sb.UserError, match="prepare must return a dictionary of tensors, it returned"):
        sb.train("no_tensors", data, out=tmp_path, epochs=1, progress=False)


def test_a_metric_may_return_a_number(data):
    class Number(sb.Metric, name="number"):
        def measure(self, pair, *, samples=True):
            return torch.tensor(3.5)

    class Array(sb.Metric, name="array"):
        def measure(self, pair, *, samples=True):
            return torch.zeros(4)

    ds = sb.open_dataset(data)
    assert sb.evaluate(ds.u, ds.u, ds.grid, metrics=["number"])["number"].value == 3.5
    with pytest.raises(
        sb.UserError, match=r"metric 'array' must return a number or a Measurement.*Tensor of shape \(4"
    ):
        sb.evaluate(ds.u, ds.u, ds.grid, metrics=["array"])


def test_names_and_files_stand_for_equations_and_tasks(data, tmp_path):
    path = sb.generate("phi41", n=2, out=tmp_path)
    assert sb.open_dataset(path).equation == sb.equation("phi41")
    run = sb.train("mean", str(data), out=tmp_path)
    assert run.finished and run.spec == sb.train("mean", sb.Task(data), out=tmp_path).spec


def test_a_field_of_a_type_that_cannot_be_set_is_one_line(data):
    @dataclass(frozen=True, kw_only=True)
    class Listed(Config):
        sizes: list = field(default_factory=list)  # type: ignore[type-arg]

    class Sized(Scaled, name="sized"):
        config_class = Listed

        def forward(self, features): ...

    with pytest.raises(sb.UserError, match=r"sizes: the type of a field is int, float, bool, .*, not list$"):
        sb.build("sized", sb.Task(data))

    @dataclass(frozen=True, kw_only=True)
    class Untyped(Config):
        size: Number = 1  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(sb.UserError, match="class Untyped: the type of a field cannot be read: name 'Number' is not d"):
        Untyped()


def test_a_table_with_a_name_that_is_taken_is_one_line():
    assert "core" in [each.name for each in TABLES]
    with pytest.raises(sb.UserError, match=r"^table 'core' is declared twice; choose another name$"):
        register_table(Table(name="core", title="Mine", source="not in the paper", wants=()))


def test_a_setting_of_an_own_model_is_not_explained_by_that_of_another_model():
    """``kernel`` is the semigroup of an equation in `linear`, and the width of a convolution here."""

    @dataclass(frozen=True, kw_only=True)
    class Sizes(Config):
        width: int = 8
        kernel: int = 3

    class Convolved(Scaled, name="convolved"):
        config_class = Sizes

        def forward(self, features): ...

    assert (meaning("convolved", "width"), meaning("convolved", "kernel")) == ("number of channels of the layers", "")
    assert meaning("linear", "kernel").startswith("exact: the semigroup")
