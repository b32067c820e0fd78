"""Where the time of phi43, edition paper, goes: the whole solver, its three transforms, and the passes between them.

    python benchmarks/phi43_step.py [--device cuda] [-n 1024]

Prints milliseconds per sample: of the solver as it is and without the Triton kernel of its step; then of each piece
alone, done as often as the solver does it. "as pairs" are the two transforms of a step with two samples as real and
imaginary part, which the solver does not do: the rounding of a path would depend on the other path of its pair. Before
that, four samples are solved on the device and on the processor and compared; a difference beyond rounding is an error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from unittest import mock

import torch
from torch import Tensor

from spdebench.cli.output import print_table
from spdebench.engines import keep_freed_memory
from spdebench.equations import Equation, equation
from spdebench.solvers import SemiImplicit, cubic, simulate
from spdebench.solvers.loop import CPU_COEFFICIENTS, CUDA_COEFFICIENTS
from spdebench.timing import best_of

TOLERANCE = 1e-11
"""Largest difference between devices, relative to the largest value, that rounding over 256 steps explains."""


def difference(eq: Equation, device: str) -> float:
    """Largest difference of four samples between the device and the processor, relative to the largest value."""
    here, there = (simulate(eq, 0, range(4), out_dtype=torch.float64, device=d) for d in ("cpu", device))
    return max(float((a - b.cpu()).abs().max() / a.abs().max()) for a, b in ((here.dw, there.dw), (here.u, there.u)))


def pieces(eq: Equation, n: int, device: str) -> dict[str, tuple[Callable[[], object], float]]:
    """What a trajectory consists of: work on n samples, and how often a trajectory does it."""
    grid, steps = eq.grid, eq.noise_steps
    scheme = SemiImplicit(eq, grid, eq.horizon / steps, device)
    budget = CPU_COEFFICIENTS if torch.device(device).type == "cpu" else CUDA_COEFFICIENTS
    length = max(1, min(steps, budget // (n * grid.spectral_shape[0] ** 2 * grid.spectral_shape[-1])))
    u = torch.randn(n, *grid.points, dtype=torch.float64, device=device)
    c = torch.fft.rfftn(u, dim=grid.axes)
    block = torch.randn(n, length, *grid.spectral_shape, dtype=torch.complex128, device=device)
    noise = grid.inverse(block)
    frames = torch.empty(n, length, *grid.points, dtype=torch.float32, device=device)
    both = torch.randn(-(-n // 2), *grid.points, dtype=torch.complex128, device=device)
    process = eq.wiener()

    def drawn() -> None:
        for z in process.blocks(0, range(n), eq.steps, eq.horizon, device=device):
            for part in z.split(length, dim=1):
                process.spectral(part)

    def normals() -> None:
        for _ in process.blocks(0, range(n), eq.steps, eq.horizon, device=device):
            pass

    def damped() -> Tensor:
        return torch.view_as_real(c).mul_(scheme.damping)

    return {
        "transform: forward": (lambda: torch.fft.rfftn(u, dim=grid.axes), steps),
        "transform: back": (lambda: grid.inverse(c), steps),
        "transform: noise back": (lambda: grid.inverse(block), steps / length),
        "step forward and back as pairs": (
            lambda: torch.fft.ifftn(torch.fft.fftn(both, dim=grid.axes), dim=grid.axes, norm="forward"),
            steps,
        ),
        "drift, growth and noise": (lambda: scheme.explicit(u, noise[:, 0], 0), steps),
        "damping": (damped, steps),
        "storing u": (lambda: frames[:, 0].copy_(u), steps),
        "storing dw": (lambda: frames.copy_(noise), steps / length),
        "normals and Levy's construction": (normals, 1),
        "the same and the grid's coefficients": (drawn, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("-n", type=int, default=0, help="samples; 0: 1024 on a GPU, 6 on the processor")
    arguments = parser.parse_args()
    device, n = arguments.device, arguments.n
    n = n or (6 if torch.device(device).type == "cpu" else 1024)
    torch.set_num_threads(1)
    keep_freed_memory()
    eq = equation("phi43")

    apart = difference(eq, device)
    print(f"four samples on {device} and on the processor: largest relative difference {apart:.2g}")

    def solver() -> None:
        simulate(eq, 0, range(n), device=device)

    rows = [("whole solver", 1e3 * best_of(solver, 3, device)[1] / n)]
    with mock.patch.object(cubic, "kernel", lambda *_: None):
        rows.append(("whole solver without the Triton kernel of its step", 1e3 * best_of(solver, 3, device)[1] / n))
    for name, (work, count) in pieces(eq, n, device).items():
        work()
        rows.append((name, 1e3 * best_of(work, 5, device)[1] * count / n))
    three = sum(value for name, value in rows if name.startswith("transform:"))
    rows.insert(2, ("its three transforms alone", three))
    print_table([{f"n = {n}": name, "ms per sample": f"{value:.4g}"} for name, value in rows])
    sys.exit(0 if apart <= TOLERANCE else 1)


if __name__ == "__main__":
    main()
