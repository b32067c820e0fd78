"""SPDEBench: a benchmark for learning stochastic PDEs.

phi  = spdebench.equation("phi41", truncation=32, sigma=0.1)
path = spdebench.generate(phi, n=200, seed=0, out="data")
ds   = spdebench.open_dataset(path)
u    = spdebench.solve(phi, ds.u0, ds.dw)
spdebench.evaluate(u, ds.u, ds.grid)
task = spdebench.Task(ds)
run  = spdebench.train("fno", task, epochs=20)
run.scores, run.predict(ds.u0, ds.dw)

An extension derives from Equation, OperatorModel (with a Config), Metric or Scheme; declaring the class registers it in
EQUATIONS, MODELS, METRICS or SCHEMES.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from spdebench.version import __version__

if TYPE_CHECKING:
    from spdebench.data import Dataset, DatasetSpec, open_dataset
    from spdebench.data.generate import generate
    from spdebench.data.published import import_published
    from spdebench.data.verify import verify
    from spdebench.equations import EQUATIONS, Equation, equation
    from spdebench.errors import UserError
    from spdebench.grids import Grid
    from spdebench.metrics import METRICS, Measurement, Metric, Pair
    from spdebench.metrics.compare import compare
    from spdebench.metrics.evaluate import evaluate
    from spdebench.metrics.floors import floors
    from spdebench.models import MODELS, Config, OperatorModel, build, model
    from spdebench.noise import Wiener
    from spdebench.paper import TABLES, Table, register_table
    from spdebench.signatures import signature
    from spdebench.solvers import SCHEMES, Scheme, simulate, solve
    from spdebench.tasks import Batch, Setting, Task
    from spdebench.training import Run, load_model, open_run
    from spdebench.training.problem import problem_numbers
    from spdebench.training.sweep import sweep
    from spdebench.training.train import train

__all__ = [
    "EQUATIONS",
    "METRICS",
    "MODELS",
    "SCHEMES",
    "TABLES",
    "Batch",
    "Config",
    "Dataset",
    "DatasetSpec",
    "Equation",
    "Grid",
    "Measurement",
    "Metric",
    "OperatorModel",
    "Pair",
    "Run",
    "Scheme",
    "Setting",
    "Table",
    "Task",
    "UserError",
    "Wiener",
    "__version__",
    "build",
    "compare",
    "equation",
    "evaluate",
    "floors",
    "generate",
    "import_published",
    "load_model",
    "model",
    "open_dataset",
    "open_run",
    "problem_numbers",
    "register_table",
    "signature",
    "simulate",
    "solve",
    "sweep",
    "train",
    "verify",
]

_HOMES = {
    "data": ("Dataset", "DatasetSpec", "generate", "open_dataset", "verify"),
    "data.published": ("import_published",),
    "equations": ("EQUATIONS", "Equation", "equation"),
    "errors": ("UserError",),
    "grids": ("Grid",),
    "metrics": ("METRICS", "Measurement", "Metric", "Pair", "compare", "evaluate", "floors"),
    "models": ("MODELS", "Config", "OperatorModel", "build", "model"),
    "noise": ("Wiener",),
    "paper": ("TABLES", "Table", "register_table"),
    "signatures": ("signature",),
    "solvers": ("SCHEMES", "Scheme", "simulate", "solve"),
    "tasks": ("Batch", "Setting", "Task"),
    "training": ("Run", "load_model", "open_run", "sweep", "train"),
    "training.problem": ("problem_numbers",),
}
"""The public names of each module. They are imported when first used, so that ``spdebench --help`` is fast."""


def __getattr__(name: str) -> Any:
    """Import a public name or a subpackage when it is first used, so that ``import spdebench`` is fast."""
    for module, names in _HOMES.items():
        if name in names:
            globals()[name] = value = getattr(importlib.import_module(f"spdebench.{module}"), name)
            return value
    if not name.startswith("_") and importlib.util.find_spec(f"spdebench.{name}"):
        return importlib.import_module(f"spdebench.{name}")
    raise AttributeError(f"module 'spdebench' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, *globals()]
