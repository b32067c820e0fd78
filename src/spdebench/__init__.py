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

from spdebench.data import Dataset, DatasetSpec, generate, open_dataset, verify
from spdebench.data.published import import_published
from spdebench.equations import EQUATIONS, Equation, equation
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.metrics import METRICS, Measurement, Metric, Pair, compare, evaluate, floors
from spdebench.models import MODELS, Config, OperatorModel, build, model
from spdebench.noise import Wiener
from spdebench.signatures import signature
from spdebench.solvers import SCHEMES, Scheme, simulate, solve
from spdebench.tasks import Batch, Setting, Task
from spdebench.training import Run, open_run, sweep, train
from spdebench.version import __version__

__all__ = [
    "EQUATIONS",
    "METRICS",
    "MODELS",
    "SCHEMES",
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
    "model",
    "open_dataset",
    "open_run",
    "signature",
    "simulate",
    "solve",
    "sweep",
    "train",
    "verify",
]
