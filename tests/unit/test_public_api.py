"""What `import spdebench` offers: every name is documented, and what an extension needs is there."""

from __future__ import annotations

import inspect
import tomllib
import types
from pathlib import Path

import spdebench as sb
from spdebench.errors import EXTRAS, needs_extra

ROOT = Path(__file__).parents[2]


def test_every_exported_name_is_there_and_documented():
    for name in sb.__all__:
        value = getattr(sb, name)
        assert not isinstance(value, types.ModuleType), name
        if name != "__version__":
            text = inspect.getdoc(value) or ""
            assert text and not text.startswith(f"{name}("), name  # a dataclass without a docstring has its signature


def test_model_is_built_by_name_and_build_is_its_former_name():
    assert sb.build is sb.model
    task_setting = sb.Setting(sb.equation("phi41", points=16).grid, (0.0, 0.1, 0.2), "xi")
    assert isinstance(sb.model("fno", task_setting, width=4, modes=(4, 2)), sb.OperatorModel)


def test_what_an_extension_derives_from_is_exported():
    for registry, base in ((sb.EQUATIONS, sb.Equation), (sb.MODELS, sb.OperatorModel), (sb.METRICS, sb.Metric)):
        assert all(issubclass(registry[name], base) for name in registry)
    assert all(issubclass(sb.SCHEMES[name], sb.Scheme) for name in sb.SCHEMES)
    assert all(isinstance(table, sb.Table) for table in sb.TABLES) and callable(sb.register_table)
    assert all(issubclass(sb.MODELS[name].config_class, sb.Config) for name in sb.MODELS)


def test_the_hint_for_an_optional_package_is_its_requirement():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {extra: [requirement] for extra, requirement in EXTRAS.items()} == {key: declared[key] for key in EXTRAS}
    assert str(needs_extra("the hub", "hub")).endswith("pip install 'huggingface_hub>=0.30'")
