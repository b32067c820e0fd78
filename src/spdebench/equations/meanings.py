"""What the fields of equations mean, in one line each, and which values they can have.

An equation of a user says it in the metadata of its fields.
"""

from __future__ import annotations

from typing import Literal, get_args, get_origin, get_type_hints

from spdebench.equations.base import Equation
from spdebench.spec import declared_meaning, has_field_of_package

MEANINGS = {
    "edition": "the discretisation: that of the paper, or a more accurate one with the same noise",
    "boundary": "the boundary condition",
    "noise": "the eigenvalues of the noise: all 1 (white in space), or decaying",
    "basis": "the functions in which the noise is expanded",
    "truncation": "J, the truncation of the noise: Fourier modes |k| <= J/2, or the first J functions",
    "sigma": "strength of the noise",
    "kappa": "size of the random part of u0; 0: u0 is the same for all samples",
    "horizon": "T, the last time",
    "points": "stored grid points per axis",
    "frames": "stored time intervals; the file has frames + 1 times",
    "steps": "time steps of edition paper",
    "solve_points": "grid points per axis that the solver uses",
    "substeps": "time steps of the solver in each interval of the noise",
    "noise_type": "whether the noise is multiplied by a function of u",
    "calculus": "the sense of multiplicative noise",
    "renormalisation": "the counter-term",
    "diffusivity": "factor of the second derivative",
    "viscosity": "factor of the second derivatives",
    "dispersion": "factor of the third derivative",
    "rate": "factor of the reaction term u - u^3",
    "mass": "factor of the linear term u",
    "coupling": "factor of (h_x)^2; lambda in the paper",
    "resolve_mollifier": "keep all modes up to the support of the mollifier, not only |k| <= J/2",
    "wave.forcing": "factor of cos(pi u) + u^2",
    "nse.forcing": "amplitude of the force f",
    "nse.alpha": "rate of decay of the eigenvalues of the noise",
    "nse.spectrum": "the eigenvalues of the noise: of the authors' code (reference) or of the paper's text",
    "nse.fields": "number of independent copies of W that are summed",
    "nse.scale": "variance scale of the random initial vorticity",
    "nse.storage": "store every n-th point, or the Fourier modes that the stored grid resolves",
}
"""By field, or by ``equation.field`` where one equation uses a name in its own sense."""


def meaning(cls: type[Equation], field: str) -> str:
    """The meaning of a field: ``field(metadata={"meaning": ..})`` of the equation, or the one above.

    A field that only an equation of a user has is not explained by a field of the same name of another equation.
    """
    if own := declared_meaning(cls, field):
        return own
    if not has_field_of_package(cls, field):
        return ""
    return MEANINGS.get(f"{cls.name}.{field}") or MEANINGS.get(field, "")


def choices(cls: type[Equation], field: str) -> tuple[str, ...]:
    """The words that a field can be set to; empty if it is not one of several words."""
    offered = {"boundary": cls.boundaries, "noise": cls.noises, "basis": cls.bases, "edition": tuple(cls.schemes)}
    kind = get_type_hints(cls)[field]
    words = offered.get(field, get_args(kind) if get_origin(kind) is Literal else ())
    return tuple(map(str, words)) if len(words) > 1 else ()
