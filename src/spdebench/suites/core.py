"""The core suite: strongly nonlinear problems in which the noise and the initial datum determine the solution.

All are of edition converged, with noise that is constant on stored intervals and fewer noise modes than points, so that
the solver computes u from the input of a model (floor below 1e-3). The parameters come from
`benchmarks/core_search.py`. Every field is written out, so that no changed default moves a problem; a test compares the
hashes.

The shifts of a problem are other data for models that were trained on it: twice the sigma, twice the random part of u0,
twice the modes of the noise and twice the grid with the same realisation of the noise, and twice the horizon with fresh
noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spdebench.suites.base import Shift, Suite, SuiteProblem

TASK: Mapping[str, Any] = {"split": "blocks", "seed": 3407, "n": 0, "every": 1, "stride": 1, "seen": None}
BOX: Mapping[str, Any] = {"edition": "converged", "boundary": "periodic", "basis": "fourier"}
LINE: Mapping[str, Any] = {**BOX, "points": 64, "solve_points": 128}
"""Fields of all problems in one dimension."""
COUPLED, FRESH = 400, 180
"""Samples of a shift with the problem's noise, of which 60 are in the test part, and of one with fresh noise."""


def frames(horizon: float, count: int, substeps: int) -> dict[str, Any]:
    """A horizon that is cut into ``count`` stored intervals, each solved in ``substeps`` steps."""
    return {"horizon": horizon, "frames": count, "steps": count, "substeps": substeps}


def problem(name: str, why: str, *, modes: bool = True, **fields: Any) -> SuiteProblem:
    """A problem with its shifts; without ``modes`` its noise has a spectrum that J does not change."""
    longer = frames(2 * fields["horizon"], 2 * fields["frames"], fields["substeps"])
    finer = {"points": 2 * fields["points"], "solve_points": max(fields["solve_points"], 2 * fields["points"])}
    shifts = {
        "sigma x2": {"sigma": 2 * fields["sigma"]},
        "u0 x2": {"kappa": 2 * fields["kappa"]},
        "J x2": {"truncation": 2 * fields["truncation"]} if modes else {},
        "grid x2": finer,
    }
    coupled = [Shift(label=label, fields=changed, n=COUPLED) for label, changed in shifts.items() if changed]
    fresh = Shift(label="horizon x2", fields=longer, n=FRESH, seed=1)
    return SuiteProblem(name=name, equation=name, fields=fields, task=TASK, shifts=(*coupled, fresh), why=why)


CORE = Suite(
    name="core",
    title="nonlinear problems that can be learned: floor below 1e-3, error of the linear solution about 0.5 or more",
    problems=(
        problem(
            "phi41",
            "A double well: noise and u0 decide whether u tends to 4.5 or to -4.5; a wrong sign is an error of 200 %.",
            **LINE,
            **frames(1.0, 10, 16),
            noise="cylindrical",
            truncation=24,
            sigma=3.0,
            kappa=2.0,
            mass=20.0,
        ),
        problem(
            "kpz",
            "Growth of an interface with a strong coupling: the square of the slope outweighs diffusion.",
            **LINE,
            **frames(0.1, 20, 64),
            noise="cylindrical",
            truncation=24,
            sigma=2.0,
            kappa=1.0,
            coupling=4.0,
            renormalisation="exact",
            resolve_mollifier=False,
        ),
        problem(
            "burgers",
            "Shocks that the noise creates, moves and merges: steep fronts, and modes that are resolved in time.",
            **LINE,
            **frames(1.0, 20, 16),
            noise="cylindrical",
            truncation=24,
            sigma=0.5,
            kappa=1.0,
            viscosity=0.02,
        ),
        problem(
            "allen_cahn",
            "Multiplicative noise: it vanishes in the phases -1 and 1 and moves, creates and removes interfaces.",
            **LINE,
            **frames(1.0, 20, 32),
            noise="q_wiener",
            noise_type="multiplicative",
            calculus="stratonovich",
            truncation=24,
            sigma=4.0,
            kappa=2.0,
            diffusivity=0.005,
            rate=5.0,
        ),
        problem(
            "kdv",
            "Dispersive waves that keep their energy: the phases must be predicted, and nothing is smoothed.",
            **LINE,
            **frames(0.5, 25, 32),
            noise="q_wiener",
            truncation=24,
            sigma=0.2,
            kappa=0.5,
            dispersion=1.0,
        ),
        problem(
            "ks",
            "Chaos: a small perturbation grows tenfold within the horizon, for every realisation of the noise.",
            **LINE,
            **frames(20.0, 20, 16),
            noise="cylindrical",
            truncation=24,
            sigma=0.5,
            kappa=1.0,
        ),
        problem(
            "phi42",
            "Two dimensions with a counter-term: a cubic drift against noise that needs renormalisation as J grows.",
            **BOX,
            points=32,
            solve_points=32,
            **frames(0.5, 25, 16),
            noise="cylindrical",
            truncation=14,
            sigma=4.0,
            kappa=1.0,
            renormalisation="exact",
        ),
        problem(
            "nse",
            "Turbulent transport over ten time units: vortices are moved by the flow that they make.",
            modes=False,
            **BOX,
            points=32,
            solve_points=64,
            **frames(10.0, 20, 25),
            noise="q_wiener",
            truncation=16,
            sigma=0.05,
            kappa=1.0,
            viscosity=1e-3,
            forcing=0.1,
            alpha=0.005,
            spectrum="reference",
            fields=10,
            scale=162.0,
            storage="spectral",
        ),
    ),
)
