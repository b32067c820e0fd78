"""One page of the documentation site for each model: formula, numbers of parameters, settings, results, literature."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType

from spdebench import spec
from spdebench.models import MODELS, OperatorModel
from spdebench.models.counts import counts
from spdebench.models.meanings import meaning
from spdebench.paper.filled import Entry, Filled
from spdebench.records.record import TEST
from spdebench.records.summary import MAIN, count, number
from spdebench.report.handbook.formula import display
from spdebench.report.handbook.prose import Kind, blocks, escaped, joined
from spdebench.report.handbook.references import OF_MODELS
from spdebench.report.markup import md, md_table
from spdebench.report.model_settings import model_settings, settings_by_value
from spdebench.report.numbers import is_best, measured, multiple, published
from spdebench.tasks import TASK_TEXT
from spdebench.training.options import learns_laws


def own_models() -> list[str]:
    """The models of the package: networks first, then the baselines without one."""
    ours = [name for name in MODELS if MODELS[name].__module__.startswith("spdebench.")]
    return sorted(ours, key=lambda name: (not MODELS[name].trainable, name))


def model_page(name: str, tables: Sequence[Filled]) -> str:
    """The page as Markdown."""
    cls = MODELS[name]
    parts = [f"# {cls.title}", *_about(cls), "## What it can do", _abilities(cls)]
    if spec.fields_of(cls.config_class):
        parts += ["## Options", f"Set as `key=value`: `spdebench train {name} DATA KEY=VALUE`.", _options(cls)]
    if cls.trainable:
        parts += ["## Number of parameters", _counts(name), "## Settings", *_settings(name)]
    parts += ["## Results", *_results(name, tables)]
    if name in OF_MODELS:
        parts += ["## Literature", "\n".join(f"- {line}" for line in OF_MODELS[name])]
    return "\n\n".join(part for part in parts if part) + "\n"


def model_index() -> str:
    """The list of the models, with the contents of this part of the site."""
    rows = [
        [f"[{MODELS[n].title}]({n}.md)", f"`{n}`", escaped((inspect.getdoc(MODELS[n]) or "").splitlines()[0])]
        for n in own_models()
    ]
    contents = "```{toctree}\n:hidden:\n\n" + "\n".join(own_models()) + "\n```"
    about = (
        "The page of a model has its formula, its numbers of parameters, where it differs from the authors' code and "
        "why, and its results. All of it is computed from the code and the run records. [Models](../models.md) "
        "describes the interface, and [your own model](../howto/own-model.md) explains how to add one."
    )
    return "\n\n".join(["# The models", about, md_table(["model", "name", ""], rows), contents]) + "\n"


def _about(cls: type[OperatorModel]) -> Iterator[str]:
    """Text from the docstrings of the model's class and file: a sentence, the formula, the description, and then the
    differences from other code."""
    module = inspect.getdoc(sys.modules[cls.__module__]) or ""
    summary, _, own = (inspect.getdoc(cls) or "").partition("\n")
    yield escaped(summary)
    shared = sum(MODELS[other].__module__ == cls.__module__ for other in MODELS) > 1
    first, _, later = module.partition("\n")
    if shared:  # each model of the file has its own formula there
        later = "\n\n".join(p for p in later.split("\n\n") if not p.strip("\n").startswith("    "))
        texts = [own, later]
    else:
        texts = [later if ":  " in first else module, own]
    texts += [doc for base in _bases(cls) if "\n\n" in (doc := inspect.getdoc(base) or "")]
    described = [_split_docstring(text) for text in texts]
    if shared or ":  " in first:
        yield f"$$\n{display(cls.formula())}\n$$"
    for same, _ in described:
        yield joined(same, formulas=not shared and ":  " not in first and same is described[0][0])
    parent = next((name for base in cls.__mro__[1:] if (name := base.__dict__.get("name")) in MODELS), None)
    if parent is not None:
        yield f"It is built on [{MODELS[parent].title}]({parent}.md)."
    named = [_split_docstring(inspect.getdoc(module) or "") for module in _named_modules(texts)]
    differences = [joined(other) for _, other in (*described, *named) if other]
    if differences:
        yield "## Where it differs from the authors' code, and why"
        yield from differences


Blocks = list[tuple[Kind, str]]


def _split_docstring(text: str) -> tuple[Blocks, Blocks]:
    """The parts of a docstring about the model and about the authors' code; a list stays with its introduction."""
    same: Blocks = []
    other: Blocks = []
    current = same
    for kind, content in blocks(text):
        if kind == "text":
            current = other if re.search(r"authors' .*code|The reference ", content) else same
        current.append((kind, content))
        if kind == "text" and not content.endswith(":"):
            current = same
    return same, other


def _bases(cls: type[OperatorModel]) -> list[type]:
    """Classes between the model and `OperatorModel`, without those that are models themselves."""
    between = [base for base in cls.__mro__[1:] if issubclass(base, OperatorModel) and base is not OperatorModel]
    return [base for base in between if base.__dict__.get("name") not in MODELS]


def _named_modules(texts: Iterable[str]) -> list[ModuleType]:
    """Modules of the package that docstrings name in full."""
    names = dict.fromkeys(name for text in texts for name in re.findall(r"`(spdebench\.models\.[\w.]+)`", text))
    return [importlib.import_module(name) for name in names]


def _abilities(cls: type[OperatorModel]) -> str:
    """A table of the tasks, dimensions and grids that the model supports."""
    tasks = ", ".join(
        TASK_TEXT[task] + (" (not in the paper)" if task in cls.added_inputs else "") for task in cls.inputs
    )
    laws = "draws members by itself" if cls.generative else f"with `loss={cls.law_loss}`" if learns_laws(cls) else "no"
    rows = [
        ["tasks", md(tasks)],
        ["the law of u, if part of the noise is seen ([why](../concepts/observation.md))", laws],
        ["space dimensions", ", ".join(map(str, cls.dims))],
        ["u(t) depends on the noise", "up to t" if cls.causal else "at all times"],
        ["predicts on other grids", "yes" if cls.any_grid else "no"],
        ["predicts more frames than it was trained on", "yes" if cls.any_horizon else "no"],
        ["knows the equation", "yes" if cls.needs_equation else "no"],
        ["fitted by", "gradient steps" if cls.trainable else "least squares or a mean, without gradient steps"],
    ]
    return md_table(["", ""], rows)


def _options(cls: type[OperatorModel]) -> str:
    """A table of the model's options: general default and meaning."""
    made = cls.config_class()
    values = {key: getattr(made, key) for key in spec.fields_of(cls.config_class)}
    texts = {k: ",".join(map(str, v)) if isinstance(v, tuple) else str(v) for k, v in values.items()}
    rows = [[f"`{key}`", f"`{text}`", escaped(meaning(cls.name, key))] for key, text in texts.items()]
    return md_table(["option", "default", "meaning"], rows)


def _counts(name: str) -> str:
    """A table of numbers of parameters, the paper's and ours."""
    rows = []
    for row in counts(name):
        config = " ".join(f"{k}={v}" for k, v in row["config"].items())
        cells = [f"{row[form][kind]:,}" for form in ("published", "default") for kind in ("parameters", "real")]
        rows.append([md(f"{row['equation']} {config}".strip()), f"{row['paper']:,}" if row["paper"] else "", *cells])
    header = ["data", "paper", "form published", "in real numbers", "form default", "in real numbers"]
    about = "The paper counts a complex number once; *in real numbers* it counts twice."
    return md_table(header, rows) + f"\n\n{about}"


def _settings(name: str) -> Iterator[str]:
    """The settings of the model on each equation, in a part of the page that a reader can open."""
    yield (
        "Used where nothing else is given, on the default dataset of each equation. Sources are stated in brackets; "
        f"`spdebench show {name}` prints the same."
    )
    lines = []
    for data, config, training, source in settings_by_value(model_settings(name)):
        lines.append(f"- {escaped(data)}\n  - model: `{config}`\n  - training: `{training}`\n  - ({escaped(source)})")
    yield "```{raw} html\n<details><summary>The settings</summary>\n```"
    yield "\n".join(lines)
    yield "```{raw} html\n</details>\n```"


def _results(name: str, tables: Iterable[Filled]) -> Iterator[str]:
    """A table of the model's errors in all tables."""
    rows = [_row(filled, entry) for filled in tables for entry in filled.entries if _is_result(entry, name)]
    if not rows:
        yield f"No run is recorded yet. `spdebench table core --plan --only {name}` lists runs that are missing."
        return
    yield (
        "Relative L2 on the test part: mean ± s.d. over training seeds (number of seeds), the paper's number and our "
        "multiple of it, next to the floor of the problem. Bold: the best of its column. [Results](../results.md) has "
        "all models side by side."
    )
    yield md_table(["table", "problem", "ours", "published", "ratio", "floor", "parameters"], rows)


def _is_result(entry: Entry, name: str) -> bool:
    cell = entry.cell
    return cell.model == name and bool(entry.values) and cell.metric == MAIN and cell.part == TEST


def _row(filled: Filled, entry: Entry) -> list[str]:
    """One error of the model: table, problem, ours, published, ratio, floor and parameters."""
    cell = entry.cell
    group = next(g for g in filled.groups if g.name == cell.group)
    ours = f"**{measured(entry)}**" if is_best(filled, group, cell.row, cell.column) else measured(entry)
    variant = "" if cell.row.lower() in (cell.model, MODELS[cell.model].title.lower()) else cell.row
    where = ", ".join(filter(None, (cell.group, cell.column, variant)))
    floor = group.numbers(cell.column).floor
    values = [ours, published(entry), multiple(entry), number(floor) if floor else "", count(entry.parameters)]
    return [f"`{filled.table.name}`", md(where), *values]
