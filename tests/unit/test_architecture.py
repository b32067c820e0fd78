"""Imports go leftwards only, and importing does nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import spdebench
from in_children import run_code

ROOT = Path(spdebench.__file__).parent
LEAVES = {"version", "display", "errors", "registry", "spec", "progress", "files", "file_locks"}
LEAVES |= {"interrupts", "engines", "accel", "signatures", "tensors", "timing"}
FLOW = [
    "grids",
    "noise",
    "equations",
    "solvers",
    "data",
    "tasks",
    "metrics",
    "models",
    "records",
    "training",
    "suites",
    "challenge",
    "paper",
    "campaign",
    "report",
    "findings",
    "cli",
]


def layer(module: str) -> int:
    """Position in the flow: leaves at -1."""
    part = module.split(".")[1] if "." in module else ""
    if part in LEAVES:
        return -1
    return FLOW.index(part) if part in FLOW else len(FLOW)  # the package itself and __main__ see all


def imports_of(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names |= (
                {node.module, *(f"{node.module}.{a.name}" for a in node.names)}
                if node.module == "spdebench"
                else {node.module}
            )
    return {n for n in names if n.startswith("spdebench.")}


def test_imports_go_leftwards_only():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT).with_suffix("")
        module = ".".join(("spdebench", *relative.parts))
        for target in imports_of(path):
            allowed = layer(target) <= layer(module) and not (layer(module) == -1 and layer(target) > -1)
            if not allowed:
                wrong.append(f"{module} imports {target}")
    assert not wrong, wrong


def test_no_two_public_classes_share_a_name():
    places: dict[str, list[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert not twice, twice


# --- cycles -------------------------------------------------------------------------------------------------------
def modules() -> dict[str, Path]:
    """Every module of the package; a package is its ``__init__``."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(("spdebench", *(parts[:-1] if parts[-1] == "__init__" else parts)))] = path
    return found


def imported_at_once(path: Path, known: set[str]) -> set[str]:
    """Modules of the package that importing this one imports: those of its top level, not of functions or typing."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & known or {node.module}
            if names - known:
                found.add(node.module)
    return found & known


def test_no_module_imports_itself_through_others():
    """Depth first over imports at the top level of modules; a module of a package stands for itself, not for its
    ``__init__``, which Python runs first in any case."""
    known = modules()
    graph = {name: imported_at_once(path, set(known)) for name, path in known.items()}
    done: set[str] = set()
    cycles = []

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if name in trail:
            cycles.append(" -> ".join((*trail[trail.index(name) :], name)))
        elif name not in done:
            for other in sorted(graph[name]):
                visit(other, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())
    assert not cycles, cycles


def test_every_folder_has_its_place():
    parts = {p.stem if p.is_file() else p.name for p in ROOT.iterdir() if p.suffix in ("", ".py")} - {
        "__pycache__",
        "py",
    }
    assert parts - LEAVES - set(FLOW) <= {"__init__", "__main__"}, parts


def test_importing_does_nothing():
    code = (
        "import sys, warnings, torch, numpy, scipy.integrate, scipy.optimize, scipy.special, scipy.stats;"
        "import pandas, typer, pyarrow.parquet;"
        "f = list(warnings.filters); t, d = torch.get_num_threads(), torch.get_default_dtype();"
        "import spdebench, spdebench.cli.main, spdebench.campaign.run, spdebench.report.site;"
        "import spdebench.report.paper_figures, spdebench.report.results, spdebench.data.hub;"
        "assert all(hasattr(spdebench, name) for name in spdebench.__all__);"
        "assert warnings.filters == f and torch.get_num_threads() == t and torch.get_default_dtype() == d;"
        "assert 'matplotlib' not in sys.modules and 'pysiglib' not in sys.modules and 'ray' not in sys.modules;"
        "assert 'rich.progress' not in sys.modules"
    )
    done = run_code(code)
    assert done.returncode == 0, done.stderr


def test_test_files_have_different_names():
    """pytest imports them by name: two with one name stop the whole suite."""
    names = [path.name for path in Path(__file__).parents[1].rglob("test_*.py")]
    assert sorted(set(names)) == sorted(names)
