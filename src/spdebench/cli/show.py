"""``spdebench list`` and ``spdebench show``: names and descriptions of equations, models, metrics, schemes, tables."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spdebench import spec
from spdebench.cli.output import Json, SpecFields, check_file_option, print_json, print_table, size
from spdebench.errors import UnknownName, UserError, unknown
from spdebench.registry import command

if TYPE_CHECKING:
    from spdebench.equations import Equation
    from spdebench.models import OperatorModel


def _lists() -> dict[str, dict[str, str]]:
    """For each kind of thing the names with a one-line description."""
    from spdebench.equations import EQUATIONS
    from spdebench.metrics import METRICS
    from spdebench.models import MODELS
    from spdebench.paper.catalogue import TABLES
    from spdebench.paper.catalogue import table as find
    from spdebench.report import KINDS, LAW_KINDS
    from spdebench.report.animation import LINE as ANIMATION
    from spdebench.report.paper_figures import FIGURES
    from spdebench.solvers import SCHEMES

    return {
        "equations": {n: f"{EQUATIONS[n].title}: {EQUATIONS[n].formula}" for n in EQUATIONS},
        "models": {n: "\n".join(_model_lines(MODELS[n])) for n in MODELS},
        "metrics": {n: METRICS[n].formula().splitlines()[0] for n in METRICS},
        "schemes": {n: (SCHEMES[n].__doc__ or "").splitlines()[0] for n in SCHEMES},
        "tables": {t.name: t.title for t in TABLES},
        "plots": {"animation": ANIMATION}
        | {n: line for n, (_, line) in (KINDS | LAW_KINDS).items()}
        | {n: find(n).title for n in FIGURES},
    }


def list_names(
    kind: Annotated[
        str, typer.Argument(help="equations, models, metrics, schemes, tables or plots; all if left out.")
    ] = "",
    as_json: Json = False,
) -> None:
    """List equations, models, metrics, schemes, tables and plots."""
    lists = _lists()
    if kind and kind not in lists:
        raise unknown("list", kind, lists)
    chosen = {kind: lists[kind]} if kind else lists
    if as_json:
        print_json(chosen)
        return
    from spdebench.metrics.base import SYMBOLS

    for title, entries in chosen.items():
        typer.echo(f"{title}")
        for name, line in entries.items():
            typer.echo(f"  {name:<22} " + line.replace("\n", f"\n  {'':<22} "))
        if title == "metrics":
            typer.echo("  " + SYMBOLS.replace("\n", "\n  "))


def show(
    name: Annotated[str, typer.Argument(help="An equation, model, metric, scheme or the folder of a run.")],
    overrides: SpecFields = None,
    out: Annotated[
        Path | None,
        typer.Option(
            callback=check_file_option, help="For a run of the model step: draw its coefficients as PNG, SVG or PDF."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show an equation, a model, a metric, a scheme or a run.

    Equations are shown with their fields and constants, models with their settings and numbers of parameters. A table
    is shown by 'spdebench table NAME'.
    """
    from spdebench.cli.show_run import show_run
    from spdebench.equations import EQUATIONS
    from spdebench.metrics import METRICS
    from spdebench.models import MODELS
    from spdebench.solvers import SCHEMES
    from spdebench.training.folder import is_run

    if is_run(name):
        if overrides:
            raise UserError(f"show takes no key=value for a run, whose settings are fixed; got {' '.join(overrides)}")
        show_run(name, as_json, out)
        return
    if out is not None:
        raise UserError(f"--out draws the coefficients of a run of the model step; '{name}' is not the folder of a run")
    if name in MODELS and name not in EQUATIONS:
        _show_model(name, overrides or [], as_json)
        return
    if name in METRICS and name not in EQUATIONS:
        _show_metric(name, overrides or [], as_json)
        return
    if name in SCHEMES and name not in EQUATIONS:
        _show_scheme(name, overrides or [], as_json)
        return
    if Path(name).is_dir():
        raise UserError(f"{name} is a folder, but not that of a run: give one run, such as {name}/fno-phi41-0123456789")
    if name not in EQUATIONS:
        _refuse_other_kinds(name)
        raise UnknownName("equation, model, metric or scheme", name, [*EQUATIONS, *MODELS, *METRICS, *SCHEMES])
    chosen = spec.build(EQUATIONS[name], spec.parse_overrides(overrides or []), name)
    facts = _equation_facts(chosen)
    if as_json:
        print_json(facts)
        return
    described = _docstring(type(chosen)) or chosen.formula
    heading = chosen.title if described.startswith(chosen.formula) else f"{chosen.title}: {chosen.formula}"
    typer.echo(f"{heading}\n\n{described}\n")
    for title in ("fields", "derived", "constants"):
        if facts[title]:
            typer.echo("fields (set as key=value)" if title == "fields" else title)
            for key, value in facts[title].items():
                text = f"{value:.6g}" if isinstance(value, float) else str(value)
                about = _about_field(type(chosen), key) if title == "fields" else ""
                typer.echo(f"  {key:<22} {text:<11} {about}".rstrip())
    typer.echo(f"\nnext: {command(' '.join(['generate', name, *(overrides or []), '-n 1200']))}")


def _refuse_other_kinds(name: str) -> None:
    """Raise an error that names the command, if ``name`` is a table, a suite or a kind of plot."""
    from spdebench.suites import SUITES

    lists = _lists()
    if name in lists["tables"]:
        raise UserError(f"'{name}' is a table: {command(f'table {name}')} prints it")
    if name in SUITES:
        raise UserError(f"'{name}' is a suite: {command(f'suite {name}')} prints it")
    if name in lists["plots"]:
        raise UserError(f"'{name}' is a kind of plot: {command(f'plot {name} ...')} draws it; see 'plot --help'")


def _about_field(cls: type[Equation], field: str) -> str:
    """The meaning of a field and the words that it can be set to."""
    from spdebench.equations.meanings import choices, meaning

    words = ", ".join(choices(cls, field))
    return "; ".join(filter(None, [meaning(cls, field), words and f"choices: {words}"]))


def _equation_facts(equation: Equation) -> dict[str, Any]:
    """Fields, derived values and renormalisation constants of an equation."""
    from spdebench.data import DatasetSpec
    from spdebench.equations import renormalise
    from spdebench.tasks import TASK_TEXT

    identity = DatasetSpec(equation=equation, n=1)
    derived: dict[str, Any] = {
        "scheme": equation.scheme,
        "task": TASK_TEXT[equation.task],
        "driving noise": equation.noise_label,
        "noise functions": equation.series().functions,
        "aliased": bool(equation.aliasing_message()),
        "noise step": equation.horizon / equation.noise_steps,
        "trace of Q": None if equation.aliasing_message() else equation.wiener().trace,
        "stored sample": size(identity.sample_bytes),
    }
    if message := equation.caution():
        derived["caution"] = message
    return {
        "name": equation.name,
        "formula": equation.formula,
        "fields": dataclasses.asdict(equation),
        "derived": {k: v for k, v in derived.items() if v is not None},
        "constants": renormalise.constants(equation),
    }


def _model_lines(cls: type[OperatorModel]) -> list[str]:
    """Title and description of a model, and its formula if its file has one."""
    return [f"{cls.title}: {_first_line(cls)}", *filter(None, [_one_backtick(cls.formula())])]


def _first_line(cls: type) -> str:
    return _docstring(cls).splitlines()[0]


def _docstring(documented: object) -> str:
    """A docstring for the terminal, with one backtick on each side of code."""
    return _one_backtick(inspect.getdoc(documented) or "")


def _one_backtick(text: str) -> str:
    return text.replace("``", "`")


def _show_model(name: str, overrides: list[str], as_json: bool) -> None:
    """Print what a model supports, its numbers of parameters next to the paper's, and its settings by equation."""
    from spdebench.models import MODELS
    from spdebench.models.counts import counts
    from spdebench.models.meanings import meaning
    from spdebench.report.model_settings import model_settings, settings_by_value
    from spdebench.training.options import learns_laws

    if overrides:
        raise UserError(f"show {name} takes no key=value; a model's settings follow from its data: spdebench train")
    cls = MODELS[name]
    facts: dict[str, Any] = {
        "name": name,
        "title": cls.title,
        "dims": list(cls.dims),
        "inputs": list(cls.inputs),
        "added_inputs": list(cls.added_inputs),
        "causal": cls.causal,
        "any_grid": cls.any_grid,
        "trainable": cls.trainable,
        "laws": "draws members" if cls.generative else f"loss={cls.law_loss}" if learns_laws(cls) else "no",
        "options": {key: getattr(cls.config_class(), key) for key in spec.fields_of(cls.config_class)},
        "counts": counts(name),
        "settings": model_settings(name),
    }
    if as_json:
        print_json(facts)
        return
    formula = _docstring(sys.modules[cls.__module__])  # a model's file opens with its formula
    summary, _, details = _docstring(cls).partition("\n")
    typer.echo("\n\n".join(filter(None, (f"{cls.title}: {summary}", formula, details.strip("\n")))) + "\n")
    for key, about in ABILITIES.items():
        value = facts[key]
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        typer.echo(f"  {key:<10} {text:<14} {about}")
    if cls.added_inputs:
        typer.echo(
            f"  {'added':<10} {', '.join(cls.added_inputs):<14} inputs that the paper does not use with this model"
        )
    if facts["options"]:
        typer.echo("\noptions (set as key=value of 'spdebench train') and their general defaults")
        for key, value in facts["options"].items():
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            typer.echo(f"  {key:<13} {text:<11} {meaning(name, key)}".rstrip())
    if cls.trainable:
        typer.echo("\nparameters (a complex number counts once; real: twice)")
        print_table([_count_row(row) for row in facts["counts"]])
        typer.echo("\nsettings that are used for the default dataset of each equation, and when others apply")
        for data, config, training, source in settings_by_value(facts["settings"]):
            typer.echo("\n    ".join(filter(None, [f"  {data}", config, training, source and f"({source})"])))
    typer.echo(f"\nnext: {command(f'train {name} DATA')}")


ABILITIES = {
    "dims": "space dimensions",
    "inputs": "tasks: xi is xi -> u, u0+xi is (u0, xi) -> u",
    "causal": "whether u(t) depends only on the noise up to t",
    "any_grid": "whether it can predict on another grid than that of its training data",
    "laws": "how it learns the law of u if part of the noise is unseen",
}
"""What `show` prints about the abilities of a model, with the meaning of each."""


def _count_row(row: dict[str, Any]) -> dict[str, Any]:
    """One row of the table of parameters."""
    config = " ".join(f"{k}={v}" for k, v in row["config"].items())
    out = {"data": f"{row['equation']} {config}".strip(), "paper": row["paper"] or "-"}
    for form in ("published", "default"):
        out |= {form: row[form]["parameters"], f"{form} real": row[form]["real"]}
    return out


def _show_scheme(name: str, overrides: list[str], as_json: bool) -> None:
    """Print the formula and description of a scheme."""
    from spdebench.solvers import SCHEMES

    if overrides:
        raise UserError(f"show {name} takes no key=value; a scheme has no fields, its equations have them")
    text = _docstring(SCHEMES[name])
    print_json({"name": name, "formula": text}) if as_json else typer.echo(text)


def _show_metric(name: str, overrides: list[str], as_json: bool) -> None:
    """Print the formula, description and options of a metric."""
    from spdebench.metrics import METRICS
    from spdebench.metrics.base import SYMBOLS

    metric = spec.build(METRICS[name], spec.parse_overrides(overrides), f"metric {name}")
    options = {key: getattr(metric, key) for key in spec.fields_of(METRICS[name])}
    if as_json:
        shown = {"name": name, "title": METRICS[name].title, "formula": METRICS[name].formula(), "options": options}
        print_json(shown)
        return
    typer.echo(f"{METRICS[name].title}: {_one_backtick(METRICS[name].formula())}")
    typer.echo(f"\n{SYMBOLS}")
    if options:
        typer.echo("")
        print_table([{"option": k, "value": v} for k, v in options.items()])
