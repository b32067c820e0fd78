"""The cells of tables that a user asks for: tables, seeds, edition, and the patterns of ``--only``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from spdebench.equations import EQUATIONS
from spdebench.errors import UserError, did_you_mean
from spdebench.models import MODELS
from spdebench.paper.base import Cell, Edition, Table, third_party_models
from spdebench.records import Records
from spdebench.training.solver_row import SOLVER


def cells_of(
    tables: Iterable[Table], seeds: int, edition: Edition, patterns: str = "", records: Records | None = None
) -> list[Cell]:
    """The cells of tables that match ``patterns``; third-party models named there get rows."""
    every = [cell for each in tables for cell in with_named(each, patterns).cells(seeds, edition, records)]
    return matching(every, patterns)


def with_named(table: Table, patterns: str) -> Table:
    """The table with rows of the third-party models that ``patterns`` names."""
    words = {word for pattern in _listed(patterns) for word in (pattern, *pattern.split())}
    return table.with_models(name for name in third_party_models() if name in words)


def _listed(patterns: str) -> list[str]:
    return [word.strip().lower() for word in patterns.split(",") if word.strip()]


def matching(cells: Sequence[Cell], patterns: str) -> list[Cell]:
    """Cells that match one of the patterns (with commas).

    A pattern is one word, or several with blanks that must all fit. The name of a model or an equation means that one;
    any other word is the beginning of a word in the cell's table or label.
    """
    chosen = _listed(patterns)
    if not chosen:
        return list(cells)
    names = {SOLVER, *MODELS, *(cell.model for cell in cells), *EQUATIONS}
    kept = [cell for cell in cells if any(_matches(pattern, cell, names) for pattern in chosen)]
    if not kept:
        words = [word for pattern in chosen for word in pattern.split()]
        alone = [word for word in words if not any(_matches(word, cell, names) for cell in cells)]
        raise _no_match(patterns, alone, cells)
    return kept


def _matches(pattern: str, cell: Cell, names: Collection[str]) -> bool:
    text = f"{cell.table}: {cell.label}".lower()
    exact = {cell.model, *(str(values.get("equation")) for values in cell.runs[0].datasets)}
    return (" " in pattern and _at_word_start(pattern, text)) or all(
        word in exact if word in names else _at_word_start(word, text) for word in pattern.split()
    )


def _at_word_start(pattern: str, text: str) -> bool:
    """Whether the pattern stands in the text at the beginning of a word."""
    return re.search(rf"(?<![a-z0-9]){re.escape(pattern)}", text) is not None


def _no_match(patterns: str, unknown: Sequence[str], cells: Sequence[Cell]) -> UserError:
    """The error if no cell matches; ``unknown`` are the words that match no cell even alone, if there are any."""
    models = list(dict.fromkeys(cell.model for cell in cells))
    equations = list(dict.fromkeys(str(values.get("equation")) for cell in cells for values in cell.runs[0].datasets))
    words = {word for cell in cells for word in re.findall(r"[a-z0-9][^\s,:]*", f"{cell.table} {cell.label}".lower())}
    hint = did_you_mean(unknown[0], {*models, *equations, *words}) if unknown else ""
    return UserError(
        f"--only: no row matches '{patterns}'{hint if 'did you mean' in hint else ';'} the models here are "
        f"{', '.join(models)}, the equations {', '.join(equations)}"
    )
