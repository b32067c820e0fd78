"""Findings about models without a network: regression of the step, regression on trees, the mean."""

from __future__ import annotations

from typing import NamedTuple

from spdebench.data import Dataset
from spdebench.data.distance import relative
from spdebench.equations import equation
from spdebench.findings.base import Finding, FindingOnFile, FindingResult, Sources, best_printed, declare, printed
from spdebench.models import MODELS
from spdebench.paper.catalogue import TABLES
from spdebench.paper.fill import fill
from spdebench.paper.filled import Group
from spdebench.records.record import TEST
from spdebench.records.summary import MAIN
from spdebench.solvers import simulate
from spdebench.tasks import Task
from spdebench.training.solver_row import SOLVER

SAMPLES = 100
"""Fresh samples of a regression; the paper's datasets have 1200."""
PERIODIC = {"sigma 0.1": (0.1, "tab:phi41_trc_P"), "sigma 1": (1.0, "tab:phi41_sigma1_Periodic")}
"""Noise level -> sigma, and the paper's table of phi41 on the circle."""


# --- step ---------------------------------------------------------------------------------------------------------
def step(sources: Sources) -> FindingResult:
    """F[u_{n+1}](k) = sum_j c_j(k) F[phi_j(u_n, dw_{n+1})](k), fitted mode by mode, rolled out from u_0."""
    numbers: dict[str, float] = {}
    rows = []
    for key, (sigma, table) in zip(("a", "b"), PERIODIC.values(), strict=True):
        task = sources.task(equation("phi41", sigma=sigma, truncation=128), SAMPLES)
        numbers[f"step_{key}"] = sources.error("step", task)
        numbers[f"best_{key}"] = best_printed(table, J="128")
        label = f"phi41, sigma {sigma:g}, J = 128, {SAMPLES} fresh samples"
        rows.append(_row(label, numbers[f"step_{key}"], None, numbers[f"best_{key}"]))
    recorded, counts = _recorded(sources)
    return FindingResult(numbers | counts, [*rows, *recorded])


def _recorded(sources: Sources) -> tuple[list[dict[str, object]], dict[str, float]]:
    """One row for each group of a table with records of `step`, at the column with the most networks, and one where a
    network is better; and numbers of problems: all, those on which `step` is better than every network, ours or
    published, and those of the others on which a published error is smaller than the floor of our data."""
    rows: list[dict[str, object]] = []
    seen: dict[tuple[str, ...], list[_Compared]] = {}
    for table in (t for t in TABLES if t.kind == "table"):
        for group in fill(table, sources.records).groups:
            found = {column: c for column in group.columns if (c := _compared(group, column))}
            fresh = {column: c for column, c in found.items() if c.digests not in seen}
            shown = {max(fresh, key=lambda c: fresh[c].networks)} if fresh else set()
            shown |= {column for column, c in fresh.items() if not c.step_is_best}
            for column in (c for c in fresh if c in shown):
                label = ", ".join(word for word in (table.name, group.name, column) if word)
                rows.append(_row(label, fresh[column].step, fresh[column].ours, fresh[column].theirs))
            for c in found.values():
                seen.setdefault(c.digests, []).append(c)
    ahead = sum(all(c.step_is_best for c in same) for same in seen.values())
    impossible = sum(any(c.below_floor and not c.step_is_best for c in same) for same in seen.values())
    return rows, {"problems": len(seen), "ahead": ahead, "impossible": impossible}


class _Compared(NamedTuple):
    """`step` in one column of a table, and the best networks there."""

    digests: tuple[str, ...]
    step: float
    ours: float | None
    theirs: float | None
    networks: int
    floor: float | None

    @property
    def below_floor(self) -> bool:
        """Whether a published error is smaller than any prediction from our data can have."""
        return self.theirs is not None and self.theirs < (self.floor or 0.0)

    @property
    def step_is_best(self) -> bool:
        """Whether `step` has a smaller error than every network, ours and published."""
        return all(other is None or self.step < other for other in (self.ours, self.theirs))


def _compared(group: Group, column: str) -> _Compared | None:
    """The model `step` next to the best trained model, ours and published, in one column; None without its run."""
    here = [e for e in group.column(column) if e.cell.metric == MAIN and e.cell.part == TEST]
    step = next((e for e in here if e.cell.model == "step"), None)
    if step is None or step.mean is None:
        return None
    nets = [e for e in here if e.cell.model != SOLVER and MODELS[e.cell.model].trainable]
    ours = [e.mean for e in nets if e.mean is not None]
    theirs = [e.cell.published for e in nets if e.cell.published is not None]
    best = min(ours, default=None), min(theirs, default=None)
    return _Compared(step.digests, step.mean, *best, len(ours), group.numbers(column).floor)


def _row(problem: str, step: float, ours: float | None, theirs: float | None) -> dict[str, object]:
    return {"problem": problem, "step": step, "best network, ours": ours, "best network, published": theirs}


def step_on_file(sources: Sources, data: Dataset) -> FindingResult:
    """Test error of `step` on the file, and of the mean of its training part."""
    task = Task(data)
    return FindingResult({"step": sources.error("step", task), "mean": sources.error("mean", task)})


declare(
    Finding(
        name="step",
        title="On the published tasks a regression of one time step beats the networks by orders of magnitude, without "
        "knowing the equation.",
        sentence="On Phi41 (J = 128, xi -> u) the test error of this regression (`step`) is {step_a:.1e} at "
        "sigma 0.1 and {step_b:.1e} at sigma 1, after about a second of fitting on 70 samples; the best published "
        "network has {best_a:g} and {best_b:g}. In the run records its error is smaller than that of every network, "
        "ours or published, on {ahead:.0f} of {problems:.0f} problems. On {impossible:.0f} of the others the published "
        "error is smaller than the floor of our data, so it must refer to other data (NSE). The table shows one "
        "problem of each group, and all on which a network is better.",
        follows="The data contain every time step of the solver, all of the noise and every grid point. The next "
        "frame is then a function of the previous frame and one noise increment, and the task is to identify "
        "this function. Report `step` in every table ([models.md](models.md) explains where it fails, and "
        "why). For a harder test of a network, store frames that are far apart, hide part of the noise, or "
        "test on other grids, horizons and noise levels.",
        uses=("fresh data", "run records", "published numbers"),
        compute=step,
        on_file=FindingOnFile(
            "On this file `step` has a test error of {step:.2e}; the mean of the training part has {mean:.3g}.",
            step_on_file,
        ),
    )
)


# --- linear and trees ---------------------------------------------------------------------------------------------
def regression(sources: Sources) -> FindingResult:
    """u = sum_i c_i tau_i, tau_i the solution of the linear equation (linear) or products of it, integrated (trees)."""
    numbers, rows = {}, []
    for key, (level, (sigma, table)) in zip(("a", "b"), PERIODIC.items(), strict=True):
        task = sources.task(equation("phi41", sigma=sigma, truncation=128), SAMPLES)
        row: dict[str, object] = {"phi41, J = 128": level}
        for model in ("linear", "trees"):
            for kernel in ("generator", "exact"):
                value = sources.error(model, task, kernel=kernel)
                numbers[f"{model}_{kernel}_{key}"] = value
                row[f"{model}, {'kernel of the scheme' if kernel == 'generator' else 'exact heat kernel'}"] = value
        numbers[f"best_{key}"] = best_printed(table, J="128")
        rows.append(row | {"best published network": numbers[f"best_{key}"]})
    return FindingResult(numbers, rows)


declare(
    Finding(
        name="regression",
        title="Linear regression on ten features beats the published networks if the features use the kernel of the "
        "scheme that generated the data.",
        sentence="At sigma 0.1 the error of `linear` is {linear_generator_a:.1e} and that of `trees` is "
        "{trees_generator_a:.1e} (best published network: {best_a:g}). At sigma 1 the errors are "
        "{linear_generator_b:.1e} and {trees_generator_b:.1e} (best published network: {best_b:g}). For "
        "real data the kernel of the scheme is unknown, and only the exact heat kernel can be used; with it "
        "the errors are {linear_exact_a:.2g} and {trees_exact_a:.2g} at sigma 0.1, and {linear_exact_b:.2g} "
        "and {trees_exact_b:.2g} at sigma 1.",
        follows="These problems are nearly linear in the noise, and DLR-Net and NORS use the same kernel of the "
        "scheme. Rank models that know this kernel separately from the others, and show the linear "
        "regression next to them: the difference to it shows how much of the nonlinearity a network has "
        "learned.",
        uses=("fresh data", "published numbers"),
        compute=regression,
    )
)


# --- the mean -----------------------------------------------------------------------------------------------------
def mean(sources: Sources) -> FindingResult:
    """Relative L2 of the mean of u(t, x) over 840 samples on 180 others; nothing is read of the noise."""
    numbers, rows = {}, []
    for key, (level, (sigma, table)) in zip(("a", "b"), PERIODIC.items(), strict=True):
        row: dict[str, object] = {"phi41, J = 128": level}
        for name, mass in (("mean", 0.0), ("mean_code", 3.0)):
            eq = equation("phi41", sigma=sigma, truncation=128, mass=mass)
            u = simulate(eq, 0, range(1020)).u
            numbers[f"{name}_{key}"] = relative(u[:840].mean(0).expand_as(u[840:]), u[840:]).mean
        row |= {"mean, drift -u^3": numbers[f"mean_{key}"], "mean, drift 3u - u^3": numbers[f"mean_code_{key}"]}
        for model in ("NRDE", "DeepONet", "NCDE"):
            numbers[f"{model.lower()}_{key}"] = printed(table, model, J="128")
            row[f"{model}, published"] = numbers[f"{model.lower()}_{key}"]
        rows.append(row)
    return FindingResult(numbers, rows)


def mean_on_file(sources: Sources, data: Dataset) -> FindingResult:
    """Test error of the mean of the training part."""
    return FindingResult({"mean": sources.error("mean", Task(data))})


declare(
    Finding(
        name="mean",
        title="The published NRDE and DeepONet are no better than the mean of the training data.",
        sentence="A prediction that ignores the noise and always returns the mean path has an error of {mean_a:.3f} "
        "at sigma 0.1 and {mean_b:.3f} at sigma 1 ({mean_code_a:.3f} and {mean_code_b:.3f} with the drift "
        "of the authors' code). The paper prints {nrde_a:g} and {nrde_b:g} for NRDE, and {deeponet_a:g} and "
        "{deeponet_b:g} for DeepONet.",
        follows="A relative error is small if a fixed initial condition dominates the denominator. Print the error "
        "of the mean under every table; a model that does not beat it has not used its input.",
        uses=("fresh data", "published numbers"),
        compute=mean,
        on_file=FindingOnFile(
            "On this file the mean of the training part has a test error of {mean:.4g}.",
            mean_on_file,
        ),
    )
)
