"""Models that map noise and initial data to solutions, one file per model; importing this package registers them."""

from __future__ import annotations

import importlib

from spdebench.models.base import MODELS, Config, Features, OperatorModel, build, model

_MODULES: tuple[str, ...] = (
    "baselines",
    "climatology",
    "deeponet",
    "dlr_net",
    "flow_fno",
    "fno",
    "gt",
    "ncde",
    "ncde_fno",
    "nors",
    "nrde",
    "nspde",
    "nspde_s",
    "step",
    "wno",
)
for _module in _MODULES:
    importlib.import_module(f"spdebench.models.{_module}")

__all__ = ["MODELS", "Config", "Features", "OperatorModel", "build", "model"]
