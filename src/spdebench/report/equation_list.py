"""README's table of the equations, from the registry: those of the paper first."""

from __future__ import annotations

from spdebench.equations import EQUATIONS, Equation
from spdebench.report.markup import md_table
from spdebench.suites.paper import ROWS

MARKS = ("<!-- equations -->", "<!-- /equations -->")
"""Lines of README around the table."""


def equation_list() -> str:
    """One row for each equation of the package: name, formula, noise, and whether the paper has it."""
    paper = {row.equation for row in ROWS}
    ours = [n for n in EQUATIONS if EQUATIONS[n].__module__.startswith("spdebench.")]
    rows = [
        [f"`{n}`", f"`{EQUATIONS[n].formula}`", _noise(EQUATIONS[n]()), "yes" if n in paper else "no"] for n in ours
    ]
    rows.sort(key=lambda row: row[-1] == "no")
    return md_table(["name", "equation", "noise", "in the paper"], rows) + "\n"


def _noise(equation: Equation) -> str:
    """``cylindrical or Q-Wiener; Fourier, sine or Haar basis``: the default kind first."""
    kinds = [equation.noise_label]
    kinds += [equation.replace(noise=kind).noise_label for kind in equation.noises if kind != equation.noise]
    names = [{"fourier": "Fourier", "haar": "Haar"}.get(basis, basis) for basis in equation.bases]
    bases = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return " or ".join(kinds) + (f"; {bases} basis" if len(names) > 1 else "")
