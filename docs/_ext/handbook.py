"""Sphinx extension: before a build, writes the pages of equations and models (`spdebench.report.handbook`) and the API.

They lie in docs/equations, docs/models and docs/api, which git ignores. A page that has not changed is not written, so
that Sphinx does not read it again. Pictures are kept in build/docs-cache.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import spdebench
from spdebench.records import store
from spdebench.registry import Registry
from spdebench.report.handbook import Law, own_equations, pages
from spdebench.report.handbook.pictures import solution_pictures
from spdebench.report.handbook.prose import blocks, escaped, markdown

ROOT = Path(__file__).parents[2]
CACHE = ROOT / "build" / "docs-cache" / "pictures"
MODULES = ("equations", "noise", "grids", "solvers", "data", "tasks", "models", "training", "metrics", "suites")
MODULES += ("challenge", "paper", "records", "report", "signatures", "errors")
"""Modules of the API, in the order of their list."""


# --- equations and models -----------------------------------------------------------------------------------------
def laws(name: str) -> Iterator[Law]:
    """The tests of an equation's laws, each with its name as a sentence and its docstring as one line."""
    file = ROOT / "tests" / "laws" / f"test_{name}.py"
    for node in ast.parse(file.read_text()).body if file.exists() else ():
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            words = node.name.removeprefix("test_").replace("_", " ")
            yield Law(words, " ".join((ast.get_docstring(node) or "").split()))


def draw(name: str, folder: Path) -> dict[str, str]:
    """Mode -> the name of the picture in ``folder``, where it is copied to."""
    files = solution_pictures(name, CACHE)
    for file in files.values():
        if not (folder / file.name).exists():
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, folder)
    return {mode: file.name for mode, file in files.items()}


# --- API ----------------------------------------------------------------------------------------------------------
def public(module: ModuleType) -> list[str]:
    """``__all__``, or what the module itself defines without an underscore."""
    named = getattr(module, "__all__", None)
    if named is not None:
        return list(named)
    defined = {key: value for key, value in vars(module).items() if not key.startswith("_")}
    return [key for key, value in defined.items() if getattr(value, "__module__", "") == module.__name__]


def api_pages() -> Iterator[tuple[str, str]]:
    """(name, Markdown): the names of `spdebench` itself, and a page for each module with all of its public names."""
    modules = {name: importlib.import_module(f"spdebench.{name}") for name in MODULES}
    lines, further = [], {name: [] for name in MODULES}
    homes = sorted((name, home) for home, names in spdebench._HOMES.items() for name in names)
    for name, home in sorted(homes, key=lambda pair: pair[0].lower()):
        top = home.partition(".")[0]
        full = f"spdebench.{top if hasattr(modules[top], name) else home}.{name}"
        further[top].append(full)
        lines.append(f"| {{py:obj}}`sb.{name} <{full}>` | {first_sentence(getattr(spdebench, name))} |")
    about = (
        "What most programs need are names of `spdebench` itself: `import spdebench as sb`. They are listed here and "
        "described on the pages of their modules, which have further names."
    )
    contents = "```{toctree}\n:caption: Modules\n:maxdepth: 1\n\n" + "\n".join(MODULES) + "\n```"
    yield "api/index.md", "\n".join(["# API", "", about, "", "| name | |", "|---|---|", *lines, "", contents, ""])
    for name, module in modules.items():
        own = [f"spdebench.{name}.{each}" for each in public(module)]
        yield f"api/{name}.md", module_page(module, sorted({*own, *further[name]}, key=str.lower))


def first_sentence(value: object) -> str:
    """The first paragraph of a docstring."""
    if isinstance(value, Registry):
        return "registry of classes by name"
    doc = inspect.getdoc(value) if inspect.isclass(value) or inspect.isroutine(value) else None
    return escaped(next(blocks(doc))[1]) if doc else ""


def module_page(module: ModuleType, names: list[str]) -> str:
    """The docstring of a module, and each name with its own."""
    out = [f"# {module.__name__}", "", markdown(inspect.getdoc(module) or ""), "", "```{eval-rst}"]
    out += [f".. py:module:: {module.__name__}", ""]
    for full in names:
        home, _, name = full.rpartition(".")
        value = getattr(importlib.import_module(home), name)
        if inspect.isclass(value):
            out += [f".. autoclass:: {full}", "   :members:", ""]
        elif inspect.isroutine(value):
            out += [f".. autofunction:: {full}", ""]
        else:
            out += [f".. py:data:: {full}", "", f"   {described(value)}", ""]
    return "\n".join([*out, "```", ""])


def described(value: Any) -> str:
    """One line about a constant: the names of a registry, or the value itself where it is short."""
    if isinstance(value, Registry):
        return "Registry of classes by name: " + ", ".join(f"``{name}``" for name in value) + "."
    text = repr(value)
    if len(text) < 300 and "<" not in text and "\n" not in text:
        return f"``{text}``"
    return f"A {type(value).__name__}" + (f" of {len(value)} entries." if hasattr(value, "__len__") else ".")


# --- notebooks ----------------------------------------------------------------------------------------------------
def notebook_cache(folder: Path) -> Path:
    """A folder for executed notebooks that is named after the code and the run records; older ones are removed."""
    digest = hashlib.sha256()
    for file in sorted([*(ROOT / "src").rglob("*.*"), *(ROOT / "results").glob("*.jsonl")]):
        if file.suffix in (".py", ".toml", ".csv", ".jsonl"):
            digest.update(file.read_bytes())
    current = folder / f"notebooks-{digest.hexdigest()[:12]}"
    for old in folder.glob("notebooks-*"):
        if old != current:
            shutil.rmtree(old)
    return current


BASH = """
import subprocess
from IPython.core.magic import register_cell_magic


@register_cell_magic
def bash(line, cell):
    done = subprocess.run(["bash", "-ec", cell], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout, end="")
    done.check_returncode()
"""


def write_ipython_profile(folder: Path) -> None:
    """Settings of IPython for the notebooks, whatever those of the user are: kernels print errors only.

    What a ``%%bash`` cell prints is one piece; IPython's own sends pieces, which myst-nb shows on lines of their own.
    """
    profile = folder / "profile_default"
    (profile / "startup").mkdir(parents=True, exist_ok=True)
    (profile / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 40\n")
    (profile / "startup" / "bash.py").write_text(BASH)


# --- to disk ------------------------------------------------------------------------------------------------------
def write_pages(app: Any) -> None:
    docs = Path(app.srcdir)
    pictures = {name: draw(name, docs / "equations") for name in own_equations()}
    drawn = {file for files in pictures.values() for file in files.values()}
    known = {name: list(laws(name)) for name in own_equations()}
    written = {docs / name: text for name, text in (*pages(store.known(), known, pictures), *api_pages())}
    for folder in ("equations", "models", "api"):
        for old in (docs / folder).glob("*.*"):
            if old not in written and old.name not in drawn:
                old.unlink()
    for file, text in written.items():
        if not file.exists() or file.read_text() != text:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
