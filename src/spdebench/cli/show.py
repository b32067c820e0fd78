"""``spdebench list`` and ``spdebench show``: what there is, and what it is."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Annotated, Any

import typer

from spdebench import spec
from spdebench.cli.output import Json, Words, print_json, print_table, size
from spdebench.data import DatasetSpec
from spdebench.equations import EQUATIONS, Equation, renormalise
from spdebench.errors import unknown
from spdebench.metrics import METRICS
from spdebench.report import KINDS
from spdebench.solvers import SCHEMES


def _lists() -> dict[str, dict[str, str]]:
    return {
        "equations": {n: f"{EQUATIONS[n].title}: {EQUATIONS[n].formula}" for n in EQUATIONS},
        "metrics": {n: METRICS[n].formula().splitlines()[0] for n in METRICS},
        "schemes": {n: (SCHEMES[n].__doc__ or "").splitlines()[0] for n in SCHEMES},
        "plots": {n: line for n, (_, line) in KINDS.items()},
    }


def list_names(
    kind: Annotated[str, typer.Argument(help="equations, metrics, schemes or plots; all if left out.")] = "",
    as_json: Json = False,
) -> None:
    """List equations, metrics, schemes and plots."""
    lists = _lists()
    if kind and kind not in lists:
        raise unknown("list", kind, lists)
    chosen = {kind: lists[kind]} if kind else lists
    if as_json:
        print_json(chosen)
        return
    for title, entries in chosen.items():
        typer.echo(f"{title}")
        for name, line in entries.items():
            typer.echo(f"  {name:<16} {line}")


def show(
    name: Annotated[str, typer.Argument(help="An equation, metric or scheme.")],
    words: Words = None,
    as_json: Json = False,
) -> None:
    """Show an equation with its spec and constants, a metric with its formula, or a scheme."""
    if name in METRICS and name not in EQUATIONS:
        _show_metric(name, words or [], as_json)
        return
    if name in SCHEMES and not words:
        typer.echo(inspect.getdoc(SCHEMES[name]))
        return
    if name not in EQUATIONS:
        raise unknown("equation, metric or scheme", name, [*EQUATIONS, *METRICS, *SCHEMES])
    equation = spec.build(EQUATIONS[name], spec.parse_words(words or []), name)
    facts = _equation_facts(equation)
    if as_json:
        print_json(facts)
        return
    typer.echo(f"{equation.title}: {equation.formula}\n\n{inspect.getdoc(type(equation))}\n")
    for title in ("fields", "derived", "constants"):
        if facts[title]:
            typer.echo(title)
            for key, value in facts[title].items():
                typer.echo(f"  {key:<22} {value:.6g}" if isinstance(value, float) else f"  {key:<22} {value}")
    typer.echo(f"\nnext: spdebench generate {name} {' '.join(words or [])} -n 1200".replace("  ", " "))


def _equation_facts(equation: Equation) -> dict[str, Any]:
    identity = DatasetSpec(equation=equation, n=1)
    derived: dict[str, Any] = {
        "scheme": equation.scheme,
        "task": equation.task,
        "noise functions": equation.series().functions,
        "folds": bool(equation.folding_message()),
        "noise step": equation.horizon / equation.noise_steps,
        "trace of Q": None if equation.folding_message() else equation.wiener().trace,
        "stored sample": size(identity.sample_bytes),
    }
    return {
        "name": equation.name,
        "formula": equation.formula,
        "fields": dataclasses.asdict(equation),
        "derived": {k: v for k, v in derived.items() if v is not None},
        "constants": renormalise.constants(equation),
    }


def _show_metric(name: str, words: list[str], as_json: bool) -> None:
    metric = spec.build(METRICS[name], spec.parse_words(words), f"metric {name}")
    options = {key: getattr(metric, key) for key in spec.fields_of(METRICS[name])}
    if as_json:
        print_json({"name": name, "formula": METRICS[name].formula(), "options": options})
        return
    typer.echo(inspect.getdoc(METRICS[name]))
    if options:
        typer.echo("")
        print_table([{"option": k, "value": v} for k, v in options.items()])
