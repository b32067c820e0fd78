"""The settings that a model gets on each equation, with their sources: for ``spdebench show`` and the site's pages."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from spdebench.equations import EQUATIONS, equation
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.models import MODELS, build
from spdebench.tasks import default_setting, recommended
from spdebench.tasks.defaults import conditions
from spdebench.training.overrides import as_arguments


def model_settings(name: str) -> list[dict[str, Any]]:
    """The settings of a model on each equation's default dataset and on datasets with other settings, with sources.

    ``when`` are the field values of the equation for which they apply; empty: its defaults and all other values.
    """
    rows: list[dict[str, Any]] = []
    for each in EQUATIONS:
        for when in ({}, *conditions(name, each)):
            with without_aliasing_warning():
                setting = default_setting(equation(each, **when))
            try:
                MODELS[name].supports(setting)
            except UserError:
                continue
            advice = recommended(name, setting)
            found = {
                "config": dataclasses.asdict(MODELS[name].configure(setting, {})),
                "training": advice.training,
                "source": "; ".join(advice.sources),
                "parameters": build(name, setting).counts()["parameters"],
            }
            here = [row for row in rows if row["equation"] == each]
            if not any({key: row[key] for key in found} == found for row in here):
                rows.append({"equation": each, "when": when, **found})
    return rows


def settings_by_value(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str, str, str]]:
    """Equal settings together: (on which data and with how many parameters, the model, the training, the source)."""
    groups: dict[tuple[str, ...], dict[int, list[str]]] = {}
    for row in rows:
        when, config, training = (as_arguments(row[part]) for part in ("when", "config", "training"))
        group = groups.setdefault((config, training, row["source"]), {})
        group.setdefault(row["parameters"], []).append(f"{row['equation']} {when}".strip())
    for (config, training, source), by_count in groups.items():
        data = "; ".join(f"{', '.join(names)}: {count:,} parameters" for count, names in by_count.items())
        yield data, config, training, source
