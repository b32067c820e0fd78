"""The kernel that takes all steps of phi43 at once: as plain C++ it gives the paths of the step-by-step solver."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import pytest
import torch

import spdebench as sb
from spdebench.accel.load import compiled, source
from spdebench.noise import Wiener
from spdebench.solvers import SemiImplicit, cubic_walk, loop
from spdebench.solvers.cubic import CubicStep

COMPILER = shutil.which("g++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs g++")

SHIM = """
#define __global__
#define __device__
#define __constant__ static const
#define __shared__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __syncthreads()
struct alignas(16) double2 { double x, y; };
struct { unsigned x; } threadIdx{0}, blockIdx{0}, blockDim{1};
double2 pool[1 << 15];
"""
LOOP = """
extern "C" void run(int blocks, void** a, int* n) {
    for (blockIdx.x = 0; blockIdx.x < (unsigned)blocks; ++blockIdx.x)
        cubic_walk((double2*)a[0], (int*)a[1], (double2*)a[2], (double*)a[3], (double*)a[4], (double*)a[5],
                   (double*)a[6], (OUT*)a[7], (OUT*)a[8], n[0], n[1], n[2]);
}
"""


@pytest.fixture(scope="module")
def one_thread(tmp_path_factory):
    """`compiled` for the processor: the same file, in which one thread does what a thread block does."""
    folder, built = tmp_path_factory.mktemp("kernels"), {}

    def build(file, name, defines, shared, device):
        assert name == "cubic_walk" and shared <= 16 << 15 and torch.device(device).type == "cpu"
        if defines not in built:
            text, library = folder / f"{len(built)}.cpp", folder / f"{len(built)}.so"
            text.write_text(SHIM + source(file, defines) + LOOP)
            flags = ["-std=c++17", "-O1", "-fno-strict-aliasing", "-Wno-unknown-pragmas", "-shared", "-fPIC"]
            subprocess.run([COMPILER, *flags, str(text), "-o", str(library)], check=True)
            built[defines] = ctypes.CDLL(str(library)).run

        def launch(blocks, threads, arguments):
            launch.count += 1
            pointers = (ctypes.c_void_p * 9)(*(x.data_ptr() for x in arguments[:9]))
            built[defines](blocks, pointers, (ctypes.c_int * 3)(*arguments[9:]))

        launch.count = 0
        build.last = launch
        return launch

    return build


def apart(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).abs().max() / b.abs().max())


def both(eq, one_thread, monkeypatch, dtype=torch.float64, samples=range(3)):
    """The same samples step by step, and through the kernel, which must have run."""
    want = sb.simulate(eq, 5, samples, out_dtype=dtype)
    monkeypatch.setattr(cubic_walk, "compiled", one_thread)
    got = sb.simulate(eq, 5, samples, out_dtype=dtype)
    assert one_thread.last.count > 0
    return want, got


@needs_compiler
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"renormalisation": "none"},
        {"kappa": 0.3, "sigma": 0.5},
        {"points": 9, "truncation": 8, "kappa": 1.0},
        {"points": 7, "truncation": 4},  # some coefficients see no member
        {"points": 5, "truncation": 4, "renormalisation": "exact"},
    ],
)
def test_paths_are_those_of_single_steps(changes, one_thread, monkeypatch):
    eq = sb.equation("phi43", **{"frames": 8, "steps": 8, **changes})
    want, got = both(eq, one_thread, monkeypatch)
    assert apart(got.dw, want.dw) < 1e-13 and apart(got.u, want.u) < 1e-12
    assert torch.equal(got.u0, want.u0) and torch.equal(got.u[:, 0], want.u0) and not got.dw[:, 0].any()


@needs_compiler
def test_whole_trajectories_in_single_precision(one_thread, monkeypatch):
    eq = sb.equation("phi43", points=7, truncation=6)
    want, got = both(eq, one_thread, monkeypatch, dtype=torch.float32)
    assert got.u.dtype == torch.float32
    assert apart(got.dw, want.dw) < 1e-6 and apart(got.u, want.u) < 1e-6


@needs_compiler
def test_a_path_does_not_depend_on_blocks_of_time(one_thread, monkeypatch):
    eq = sb.equation("phi43", points=7, truncation=6, frames=12, steps=12, kappa=0.2)
    monkeypatch.setattr(cubic_walk, "compiled", one_thread)
    whole = sb.simulate(eq, 5, range(2), out_dtype=torch.float64)
    assert one_thread.last.count == 1
    blocks = Wiener.blocks
    monkeypatch.setattr(Wiener, "blocks", lambda *a, **k: (part for z in blocks(*a, **k) for part in z.split(5, dim=1)))
    parts = sb.simulate(eq, 5, range(2), out_dtype=torch.float64)
    assert one_thread.last.count == 3
    assert torch.equal(parts.u, whole.u) and torch.equal(parts.dw, whole.dw)


@needs_compiler
@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({}, {"every": 2}),
        ({"steps": 16}, {}),
        ({"points": 8, "truncation": 6}, {}),
        ({"substeps": 2}, {}),
        ({"edition": "converged"}, {}),
        ({}, {"out_dtype": torch.float16}),
    ],
)
def test_what_it_does_not_serve_goes_step_by_step(changes, options, one_thread, monkeypatch):
    eq = sb.equation("phi43", **{"points": 7, "truncation": 6, "frames": 8, "steps": 8, **changes})
    want = sb.simulate(eq, 0, range(2), **options)
    monkeypatch.setattr(cubic_walk, "compiled", lambda *_: pytest.fail("the kernel was asked for"))
    assert torch.equal(sb.simulate(eq, 0, range(2), **options).u, want.u)


def test_a_symbol_that_is_not_even_is_not_served(monkeypatch):
    eq = sb.equation("phi43", points=7, truncation=6, frames=8, steps=8)
    scheme = SemiImplicit(eq, eq.grid, eq.horizon / 8)
    wiener, damping = eq.wiener(), scheme.damping[..., 0].clone()
    monkeypatch.setattr(cubic_walk, "compiled", lambda *_: lambda *_: None)
    step = CubicStep([1.0], -1.0, 1.0)
    assert cubic_walk.CubicWalk.of(damping, step, wiener, torch.float32) is not None
    damping[1] *= 2
    assert cubic_walk.CubicWalk.of(damping, step, wiener, torch.float32) is None


def test_on_the_processor_there_is_no_kernel():
    assert compiled("solvers/cubic_walk", "cubic_walk", (), 0, "cpu") is None


@pytest.mark.gpu
@pytest.mark.parametrize("changes", [{}, {"kappa": 0.3, "renormalisation": "none"}, {"points": 9, "truncation": 8}])
def test_on_a_gpu_it_is_used_and_agrees_with_the_processor(changes, monkeypatch):
    eq, used = sb.equation("phi43", **changes), []
    call = cubic_walk.CubicWalk.__call__
    monkeypatch.setattr(cubic_walk.CubicWalk, "__call__", lambda *a: (used.append(1), call(*a))[1])
    want = sb.simulate(eq, 0, range(4), out_dtype=torch.float64)
    assert not used
    got = sb.simulate(eq, 0, range(4), out_dtype=torch.float64, device="cuda")
    assert used
    assert apart(got.dw.cpu(), want.dw) < 1e-11 and apart(got.u.cpu(), want.u) < 1e-11
    single = sb.simulate(eq, 0, range(4), device="cuda")
    assert apart(single.u, got.u.float()) < 1e-6 and apart(single.dw, got.dw.float()) < 1e-6
    again = sb.simulate(eq, 0, range(4), device="cuda")
    assert torch.equal(single.u, again.u) and torch.equal(single.dw, again.dw)


@pytest.mark.gpu
def test_a_file_that_does_not_compile_is_warned_of_once_and_done_without(monkeypatch):
    monkeypatch.setattr(cubic_walk, "_shape", lambda *_: ((("POINTS", "no number"),), 32, 0))
    eq = sb.equation("phi43", points=7, truncation=6, frames=8, steps=8)
    with pytest.warns(UserWarning, match="cubic_walk cannot be compiled"):
        got = loop.simulate(eq, 0, range(2), device="cuda", out_dtype=torch.float64)
    assert apart(got.u.cpu(), sb.simulate(eq, 0, range(2), out_dtype=torch.float64).u) < 1e-11
