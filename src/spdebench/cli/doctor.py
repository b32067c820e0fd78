"""``spdebench doctor``: checks the installation, and that this machine draws the right noise."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys

import typer

from spdebench.cli.output import Json, print_json
from spdebench.version import __version__

_KNOWN_PAIR = complex(-0.06845878151150003, 0.3944845926876499)  # seed 0, sample 7, node 3, mode 5
_NEEDED = ("torch", "numpy", "scipy", "pandas", "pyarrow", "typer", "rich", "matplotlib", "safetensors", "Jinja2")
_EXTRAS = {"fast-sig": "pysiglib"}


def doctor(as_json: Json = False) -> None:
    """Check the installation.

    Versions, devices, disk space, the random numbers of the noise and a small simulation are checked.
    """
    import torch

    facts: dict[str, object] = {
        "spdebench": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    missing = []
    for package in _NEEDED:
        facts[package] = version = _version(package)
        if version is None:
            missing.append(package)
    facts |= {f"extra {extra}": _version(package) or "not installed" for extra, package in _EXTRAS.items()}
    facts["cores"], facts["torch threads"] = os.cpu_count(), torch.get_num_threads()
    facts["cuda"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    facts["free disk here"] = f"{shutil.disk_usage('.').free / 1e9:.1f} GB"
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    for device in devices:
        facts[f"noise stream on {device}"] = _stream_check(device)
        facts[f"solver on {device}"] = _solver_check(device)
    bad = missing + [k for k, v in facts.items() if isinstance(v, str) and v.startswith("WRONG")]
    if as_json:
        print_json({**facts, "good": not bad})
    else:
        for key, value in facts.items():
            typer.echo(f"{key:<24} {value if value is not None else 'MISSING'}")
        typer.echo("no problems found" if not bad else f"problems: {', '.join(bad)}")
    if bad:
        sys.exit(1)


def _version(package: str) -> str | None:
    """The installed version of a package; None if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _stream_check(device: str) -> str:
    """Compare one random number of the noise with its known value."""
    import torch

    from spdebench.noise.stream import STREAM, normal_pairs, sample_states

    states = sample_states(0, "noise", [7], device)
    index = torch.tensor([3], device=device)
    pair = complex(normal_pairs(states, index, index + 2).item())
    return f"{STREAM}, correct" if abs(pair - _KNOWN_PAIR) < 1e-14 else f"WRONG: {pair} instead of {_KNOWN_PAIR}"


def _solver_check(device: str) -> str:
    """Compare a simulation with the solution from its own initial data and noise."""
    import torch

    from spdebench.equations import equation
    from spdebench.solvers import simulate, solve

    eq = equation("phi41", points=32, truncation=16)
    paths = simulate(eq, 0, range(2), device=device, out_dtype=torch.float64)
    gap = float((solve(eq, paths.u0, paths.dw) - paths.u).abs().max())
    return "reproduces its own solution" if gap < 1e-12 else f"WRONG: off by {gap:.1e}"
