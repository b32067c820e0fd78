"""CPU and CUDA draw and solve the same realisation: largest differences for every equation.

python benchmarks/same_on_gpu.py
"""

from __future__ import annotations

import warnings

import torch

from spdebench.cli.output import print_table
from spdebench.equations import EQUATIONS
from spdebench.errors import AliasingWarning
from spdebench.solvers import simulate


def main() -> None:
    torch.set_num_threads(8)
    warnings.simplefilter("ignore", AliasingWarning)
    rows = []
    for name in EQUATIONS:
        eq = EQUATIONS[name]()
        here, there = (simulate(eq, 0, range(2), out_dtype=torch.float64, device=d) for d in ("cpu", "cuda"))
        rows.append(
            {
                "equation": name,
                "max|dw| difference": float((here.dw - there.dw.cpu()).abs().max()),
                "max|u| difference": float((here.u - there.u.cpu()).abs().max()),
                "max|u|": float(here.u.abs().max()),
            }
        )
    print_table(rows)


if __name__ == "__main__":
    main()
