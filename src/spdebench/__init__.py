"""SPDEBench: the benchmark for learning stochastic PDEs.

phi  = spdebench.equation("phi41", truncation=32, sigma=0.1)
path = spdebench.generate(phi, n=200, seed=0, out="data")
ds   = spdebench.open_dataset(path)
u    = spdebench.solve(phi, ds.u0, ds.dw)
spdebench.evaluate(u, ds.u, ds.grid)
task = spdebench.Task(ds)
run  = spdebench.train("fno", task, epochs=20)
run.scores, run.predict(ds.u0, ds.dw)
"""

from spdebench.data import Dataset, generate, open_dataset, verify
from spdebench.equations import EQUATIONS, Equation, equation
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.metrics import compare, evaluate, floors
from spdebench.models import MODELS, build
from spdebench.solvers import simulate, solve
from spdebench.tasks import Task
from spdebench.training import open_run, train
from spdebench.version import __version__

__all__ = [
    "EQUATIONS",
    "MODELS",
    "Dataset",
    "Equation",
    "Grid",
    "Task",
    "UserError",
    "__version__",
    "build",
    "compare",
    "equation",
    "evaluate",
    "floors",
    "generate",
    "open_dataset",
    "open_run",
    "simulate",
    "solve",
    "train",
    "verify",
]
