"""How much of the noise does a model see? Laws of u given u0 and part of the noise; ours, with no published numbers.

The problems are those of the core suite. With seen=K a model is given the noise that truncation K keeps, and predicts
the law of u given that; seen=J is the ordinary task, whose law is a point. Every configuration and option is written
out. Networks and step have the sizes that they have in the table `core`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from spdebench.paper.base import Data, Table, Want
from spdebench.paper.published import title
from spdebench.paper.skill import CLIMATOLOGY
from spdebench.paper.tables import core
from spdebench.records.summary import SKILL
from spdebench.suites import CORE, SuiteProblem
from spdebench.tasks import Setting, TaskSpec
from spdebench.training.law_rows import CONDITIONAL_MEAN, INDEPENDENT_LAW

PROBLEMS = ("phi41", "kpz", "allen_cahn", "phi42", "nse")
SEEN = (8, 2, 0)
MEMBERS: Mapping[int, int] = {1: 64, 2: 16}
"""True members of the law for each input of the test part, by space dimension."""
COLUMNS: Mapping[str, str] = {
    SKILL: "skill",
    "energy_score": "energy score",
    "crps": "CRPS",
    "mean_error": "mean error",
    "std_error": "std error",
    "coverage_90": "coverage 90 %",
}
"""Metric -> its column."""
OF_A_POINT = (SKILL, "energy_score", "crps", "mean_error")
"""Metrics where the true law is a point (seen=J)."""
EPOCHS, DRAWS = 200, 2
LEARNING_RATES: Mapping[str, float] = {"fno": 3e-3, "nspde": 3e-3, "deeponet": 1e-3}
"""Networks of the table, and the learning rate that validation has chosen for each on phi41 in the table `core`."""
BASELINES: Mapping[str, Mapping[str, Any]] = {CLIMATOLOGY: {"rank": 2000}, "step": core.BASELINES["step"]}
FLOW = "flow-fno"
"""The generative network of the table, where some noise is not seen; its size is that of fno."""
TRUE_LAW = "true law"
DRAWN = ", drawn noise"
"""End of the row's name of a network that was trained with all noise seen, and is given drawn noise for the rest."""

SKILL_NOTE = (
    "skill = (climatology - model) / (climatology - true law) in the energy score: 0 for a law that does not use its "
    "input, 1 for the true one. It is computed from records of the same problem and the same seen noise. With seen=J "
    "the true law scores 0. '-': not run yet. 'none': climatology and true law differ by less than 1 %, so no model "
    "can be better than the climatology by more than that."
)


def options(model: str, seen: int | None) -> dict[str, Any]:
    """Training options of a network: those of the table `core` except epochs, learning rate and loss."""
    common = {**core.OPTIONS, "epochs": EPOCHS, "learning_rate": LEARNING_RATES[model]}
    return common if seen is None else {**common, "loss": "energy", "draws": DRAWS}


def flow(setting: Setting) -> dict[str, Any]:
    """Configuration and options of the generative network.

    A sample passes through it as often in all as through fno, which evaluates all draws of a sample in each epoch.
    """
    config = {key: value for key, value in core.config("fno", setting).items() if key != "form"} | {"steps": 10}
    own = {"epochs": DRAWS * EPOCHS, "learning_rate": LEARNING_RATES["fno"], "loss": "flow"}
    return {"model": FLOW, "config": config, "options": {**core.OPTIONS, **own}}


def numbers(problem: SuiteProblem) -> Iterator[Want]:
    """All rows of a problem, first with all noise seen and then with less and less of it."""
    equation = problem.build()
    whole = core.source(problem, {}, problem.n, problem.seed)
    setting = TaskSpec(inputs="u0+xi", **problem.task).setting(equation)
    every: dict[str, Any] = {"task": {**problem.task, "seen": equation.truncation}}
    common: dict[str, Any] = {"inputs": "u0+xi", "published": None, "optional": True, "order": int(equation.dim > 1)}

    def rows(group: str, row: str, metrics: tuple[str, ...] = tuple(COLUMNS), **fields: Any) -> Iterator[Want]:
        for metric in metrics:
            ranked = fields.get("ranked", True) and metric != "coverage_90"
            given = {**common, **fields, "ranked": ranked}
            yield Want(group=group, row=row, column=COLUMNS[metric], metric=metric, **given)

    def references(group: str, metrics: tuple[str, ...], **fields: Any) -> Iterator[Want]:
        for model, config in BASELINES.items():
            free = model != CLIMATOLOGY
            yield from rows(group, title(model), metrics, model=model, config=config, ranked=free, **fields)

    def configured(model: str) -> dict[str, Any]:
        return {"model": model, "config": core.config(model, setting)}

    group = f"{problem.name}, seen=J"
    yield from references(group, OF_A_POINT, data=(whole,), **every)
    for model in LEARNING_RATES:
        chosen = {**configured(model), "options": options(model, None)}
        yield from rows(group, title(model), OF_A_POINT, data=(whole,), **chosen, **every)
    for seen in SEEN:
        group = f"{problem.name}, seen={seen}"
        part = replace(whole, seen=seen, members=MEMBERS[equation.dim])
        less: dict[str, Any] = {"data": (part,), "task": {**problem.task, "seen": seen}}
        true = {"model": INDEPENDENT_LAW, "ranked": False, **less}
        yield from references(group, tuple(COLUMNS), **less)
        for model in LEARNING_RATES:
            yield from rows(group, title(model), **configured(model), options=options(model, seen), **less)
        yield from rows(group, title(FLOW), **flow(setting), **less)
        for model in LEARNING_RATES:
            yield from rows(group, title(model) + DRAWN, **_drawn(configured(model), model, whole, part), **every)
        yield from rows(group, "conditional mean", OF_A_POINT, part=CONDITIONAL_MEAN, **true)
        yield from rows(group, TRUE_LAW, **true)


def _drawn(configured: dict[str, Any], model: str, whole: Data, part: Data) -> dict[str, Any]:
    """The network that was trained with seen=J, scored on data of which less noise is seen."""
    return {
        **configured,
        "options": options(model, None),
        "data": (whole,),
        "part": f"seen={part.seen}",
        "test": part,
        "ranked": False,
    }


TABLE = Table(
    name="observation",
    source="not in the paper",
    title="How much of the noise is seen: laws of u given u0 and part of the noise",
    wants=tuple(want for name in PROBLEMS for problem in CORE.choose(name) for want in numbers(problem)),
    leaderboard=True,
    edition="converged",
    draw=("spdebench plot observation",),
    notes=(
        "Data: problems of the core suite, 1200 samples of seed 0 in blocks of 20 (14 for training, 3 for validation "
        "and 3 for the test). seen=K: the input is u0 and the noise modes of truncation K; seen=0: u0 alone; seen=J: "
        "all of the noise, which determines u.",
        f"Truth: {MEMBERS[1]} members of the law for each of the 180 inputs of the test part ({MEMBERS[2]} in two "
        "dimensions); with seen=J the sample itself. Every law is scored by 64 predicted members for each input.",
        f"{SKILL_NOTE} This is so for nse with seen=0: u0 contains almost no information about u there.",
        f"Networks: {EPOCHS} epochs of Adam with batches of 20, a cosine schedule and the configurations of the table "
        "core. With seen=K below J the unseen noise is replaced by new random numbers and the loss is the energy score "
        f"of {DRAWS} draws (loss=energy draws={DRAWS}); with seen=J the loss is the relative L2 error. Differences "
        f"from the table core: {EPOCHS} epochs instead of 300, and no search for the learning rate, which is "
        + ", ".join(f"{rate:g} ({title(model)})" for model, rate in LEARNING_RATES.items())
        + ", as selected for phi41 in the table core.",
        f"{title(FLOW)}: a generative network with the size, learning rate and schedule of FNO, trained by flow "
        f"matching for {DRAWS * EPOCHS} epochs (loss=flow), each of which uses every sample once.",
        f"{DRAWN.removeprefix(', ')}: a network that was trained with seen=J; at test time the unseen part of its "
        "input is drawn from its true law. It was trained on more information than the other rows and knows the law of "
        "the noise, and is therefore not ranked.",
        f"{TRUE_LAW}: an independent ensemble of 64 further members, the best possible value of every score. "
        "conditional mean: their mean as a single prediction. Climatology and rows of the true law are not ranked. "
        "Errors of mean and standard deviation of a finite number of members are above 0 also for the true law. The "
        "nominal coverage of 64 members is 0.908.",
    ),
)
