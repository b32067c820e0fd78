"""One page of the documentation site for each equation: formula, picture, laws, numbers of its problems, literature."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from spdebench.data.identity import dataset_of
from spdebench.equations import EQUATIONS, Equation
from spdebench.equations.meanings import choices, meaning
from spdebench.paper.base import Cell
from spdebench.paper.filled import Filled
from spdebench.paper.layout import FINE_REFERENCE, MORE_ACCURATE
from spdebench.records.summary import MAIN, number
from spdebench.report.formatting import title
from spdebench.report.handbook.formula import display
from spdebench.report.handbook.prose import escaped, markdown
from spdebench.report.handbook.references import BENCHMARK, OF_EQUATIONS
from spdebench.report.markup import md, md_table
from spdebench.solvers import SCHEMES
from spdebench.suites import CORE
from spdebench.suites.numbers import measured
from spdebench.suites.paper import ROWS
from spdebench.training.overrides import as_arguments


@dataclass(frozen=True)
class Law:
    """A test of the solver against mathematics: its name as a sentence, and its formula."""

    name: str
    formula: str = ""


def own_equations() -> list[str]:
    """The equations of the package: those of the paper first."""
    ours = [name for name in EQUATIONS if EQUATIONS[name].__module__.startswith("spdebench.")]
    return sorted(ours, key=lambda name: (not in_paper(name), name))


def in_paper(name: str) -> bool:
    return any(row.equation == name for row in ROWS)


def shown(name: str) -> Equation:
    """The equation of the page's picture: its problem in the core suite, and its default dataset if it has none."""
    problem = next((p for p in CORE.problems if p.equation == name), None)
    return problem.build() if problem else EQUATIONS[name]()


def samples_shown(equation: Equation) -> int:
    """How many samples the picture shows."""
    return 3 if equation.dim == 1 else 2


def equation_page(name: str, tables: Sequence[Filled], laws: Sequence[Law], pictures: Mapping[str, str]) -> str:
    """The page as Markdown. ``pictures``: files of the light and of the dark picture, as the page links them."""
    cls = EQUATIONS[name]
    formula, _, description = (inspect.getdoc(cls) or "").partition("\n")
    parts: list[str] = [f"# {title(cls.title)}", f"$$\n{display(formula, _parameters(cls))}\n$$"]
    parts += [_picture(name, pictures), markdown(description)]
    if cls.remarks:
        heading = "Where the data differ from the paper's" if in_paper(name) else "Remarks"
        parts += [f"## {heading}", escaped(cls.remarks)]
        if in_paper(name):
            parts.append("[Data](../data.md#departures-from-the-authors-data) lists every difference, with numbers.")
    parts += ["## Fields", f"Set as `key=value`: `spdebench generate {name} sigma=0.5 -n 1200`.", _fields(cls)]
    parts += ["## Schemes", _schemes(cls())]
    parts += ["## Laws that are tested", *_laws(name, laws)]
    parts += ["## Reference errors of its problems", *_problems(name, tables)]
    parts += ["## Literature", _literature(name)]
    return "\n\n".join(part for part in parts if part) + "\n"


def equation_index() -> str:
    """The list of the equations, with the contents of this part of the site."""
    rows = []
    for name in own_equations():
        cls = EQUATIONS[name]
        formula = f"${display(cls.formula, _parameters(cls))}$"
        link = f"[{title(cls.title)}]({name}.md)"
        rows.append([link, f"`{name}`", formula, str(cls.dim), "yes" if in_paper(name) else "no"])
    contents = "```{toctree}\n:hidden:\n\n" + "\n".join(own_equations()) + "\n```"
    about = (
        "xi is the noise, the time derivative of a Wiener process W ([noise](../concepts/noise.md)). Other words are "
        "fields of the equation, such as `viscosity`. This page and those of the equations are computed from the "
        "code. [Add an equation](../add-an-equation.md) explains how to write your own."
    )
    header = ["equation", "name", "formula", "dimensions", "paper"]
    return "\n\n".join(["# The equations", about, md_table(header, rows), contents]) + "\n"


def _parameters(cls: type[Equation]) -> list[str]:
    return [field.name for field in dataclasses.fields(cls)]


def _picture(name: str, pictures: Mapping[str, str]) -> str:
    """The pictures of a few samples, and the commands that make them."""
    equation = shown(name)
    values = {f.name: getattr(equation, f.name) for f in dataclasses.fields(equation)}
    default = dataclasses.asdict(EQUATIONS[name]())
    changed = {key: value for key, value in values.items() if value != default[key] and key not in _FILLED}
    what = "its problem in the [core suite](../core.md)" if changed else "its default dataset"
    images = "\n".join(f"![Solutions of {name}]({file}){{.only-{mode}}}" for mode, file in pictures.items())
    words = f"spdebench generate {' '.join(filter(None, (name, as_arguments(changed))))} -n {samples_shown(equation)}"
    made = " \\\n".join(textwrap.wrap(words, 76, subsequent_indent="    ", break_on_hyphens=False))
    return f"{images}\n\nSamples of {what}:\n\n```bash\n{made}\nspdebench plot solution FILE\n```"


_FILLED = ("solve_points", "substeps", "basis")
"""Fields that follow from others unless they are given."""


def _fields(cls: type[Equation]) -> str:
    """A table of the equation's fields: default, meaning, choices, and whether all equations have it."""
    common = {field.name for field in dataclasses.fields(Equation)}
    fields = sorted(dataclasses.fields(cls), key=lambda field: field.name in common)
    made = cls()
    rows = []
    for field in fields:
        words = ", ".join(f"`{word}`" for word in choices(cls, field.name))
        used_by = "all equations" if field.name in common else "this equation"
        about = escaped(meaning(cls, field.name))
        rows.append([f"`{field.name}`", f"`{getattr(made, field.name)}`", about, words, used_by])
    return md_table(["field", "default", "meaning", "choices", "used by"], rows)


def _schemes(equation: Equation) -> str:
    """A table of the schemes of both editions."""
    rows = []
    for edition, scheme in type(equation).schemes.items():
        line = (inspect.getdoc(SCHEMES[scheme]) or "").splitlines()[0]
        rows.append([f"`{edition}`", f"`{scheme}`", escaped(line)])
    about = "[Editions](../concepts/editions.md) explains the two editions."
    return md_table(["edition", "scheme", "one step"], rows) + f"\n\n{about}"


def _laws(name: str, laws: Sequence[Law]) -> Iterator[str]:
    """The laws that tests check for the equation, as a list."""
    if not laws:
        yield "The contract tests of all equations apply; there is no file of laws for this one."
        return
    yield f"Each line is a test in `tests/laws/test_{name}.py`; statistical ones state their number of standard errors."
    lines = [
        f"- **{escaped(law.name[:1].upper() + law.name[1:])}**" + (f": {escaped(law.formula)}" if law.formula else "")
        for law in laws
    ]
    yield "\n".join(lines)


def _problems(name: str, tables: Iterable[Filled]) -> Iterator[str]:
    """A table of the reference errors of the equation's problems."""
    yield (
        "Relative L2 errors. [Floors](../concepts/floors.md) explains the columns; *discretisation* is the distance of "
        f"the data to {MORE_ACCURATE}."
    )
    rows = [*_core_rows(name), *(row for filled in tables for row in _table_rows(name, filled))]
    header = ["problem", "floor", "nonlinearity", "identifiability", "discretisation"]
    yield md_table(header, rows) if rows else "No run of this equation is recorded yet."


def _core_rows(name: str) -> Iterator[list[str]]:
    """The rows of the equation's problems in the core suite."""
    for problem in CORE.problems:
        known = measured().get(problem.name)
        if problem.equation == name and known:
            numbers = [number(known[key]) for key in ("floor", "linear", "step", "residual")]
            yield [f"core suite: `{problem.name}`", *numbers]


def _table_rows(name: str, filled: Filled) -> Iterator[list[str]]:
    """The rows of the equation's problems in another table."""
    if filled.table.name == CORE.name:
        return
    for group in filled.groups:
        for column in group.columns:
            errors = [e for e in group.column(column) if e.cell.metric == MAIN and equation_of(e.cell) == name]
            numbers = group.numbers(column)
            finer = next((e.mean for e in errors if e.cell.row == FINE_REFERENCE), None)
            values = [numbers.floor, numbers.nonlinearity, numbers.identifiability, finer]
            if errors and any(value is not None for value in values):
                label = ", ".join(filter(None, (filled.table.name, group.name, column)))
                yield [md(label), *map(number, values)]


def equation_of(cell: Cell) -> str:
    """The equation of the data that a cell's runs were trained on; empty for a cell without runs."""
    datasets = cell.runs[0].datasets if cell.runs else ()
    return dataset_of(datasets[0]).equation.name if datasets else ""


def _literature(name: str) -> str:
    known = [*([BENCHMARK] if in_paper(name) else []), *OF_EQUATIONS.get(name, ())]
    return "\n".join(f"- {line}" for line in known)
