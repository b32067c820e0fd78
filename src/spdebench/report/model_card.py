"""The card of a trained model: its task, its training data, its scores, commands that repeat it, and its limits.

The header is for the Hugging Face hub: licence, tags and scores, as one JSON value per key (JSON is YAML).
"""

from __future__ import annotations

import inspect
import json
from typing import Any

from spdebench.errors import one_line
from spdebench.metrics import METRICS
from spdebench.records import MetricValue, Record
from spdebench.records.summary import number
from spdebench.report.board.shown import ShownRun
from spdebench.report.markup import md, md_table
from spdebench.training import Run
from spdebench.training.share import MARK

FEW_SAMPLES = 500
"""With fewer training samples the card states that the model is only an example; the core suite has 840."""


def model_card(run: Run, licence: str = "apache-2.0", source: str = "") -> str:
    """The card of a finished run as Markdown; ``source`` is the argument with which others call `load_model`."""
    record = run.record
    shown = ShownRun(run.name, record)
    cls = type(run.model)
    about = " ".join((inspect.getdoc(cls) or run.spec.model).partition("\n\n")[0].split())
    lines = [
        _header(run, record, licence),
        MARK,
        "",
        f"# {md(run.spec.model)} for {md(shown.datasets[0].label)}",
        "",
        f"{md(about)} Task {md(shown.inputs)}{_size(record)}.",
        "",
        "## Use",
        "",
        "```python",
        "import spdebench as sb",
        "",
        f'model = sb.load_model("{_word(source or run.name)}")',
        "u = model.predict(u0, dw)  # u0 (N X..), dw (N T X..) with dw[:, 0] = 0; u (N T X..)",
        "```",
        "",
        "## Training",
        "",
        *_training(run, record, shown),
        "",
        "## Scores",
        "",
        f"On the test part ({_counts(run)['test']} samples), which the training has not seen, with 95 % intervals:",
        "",
        _scores(record),
        "",
        "## Limits",
        "",
        *_limits(run, record),
        "",
        "## Made with",
        "",
        ", ".join(f"{key} {md(str(value))}" for key, value in _made(record).items()) + ".",
        "",
    ]
    return "\n".join(lines)


def _size(record: Record) -> str:
    """The number of parameters that gradient steps have trained, if there are any."""
    return f", {record.parameters:,} parameters" if record.parameters else ", no parameters trained by gradient steps"


def _word(value: str) -> str:
    """Text safe inside code: one line without backticks and quotes."""
    return one_line(value).replace("`", "'").replace('"', "'").replace("\\", "/")


def _header(run: Run, record: Record, licence: str) -> str:
    """The header that the hub reads."""
    score = record.scores.get("rel_l2", MetricValue())
    result = {
        "task": {"type": "other", "name": "solution operator of a stochastic PDE"},
        "dataset": {"name": run.spec.equation, "type": "spdebench"},
        "metrics": [{"type": "rel_l2", "name": "relative L2 error, test part", "value": score.value}],
    }
    values: dict[str, Any] = {
        "license": licence,
        "library_name": "spdebench",
        "tags": ["spde", "stochastic-pde", "neural-operator", "spdebench", run.spec.model, run.spec.equation],
    }
    if score.value == score.value:  # NaN is no JSON
        values["model-index"] = [{"name": run.name, "results": [result]}]
    return "\n".join(["---", *(f"{key}: {json.dumps(value)}" for key, value in values.items()), "---"])


def _counts(run: Run) -> dict[str, int]:
    """The number of samples of each part, over all datasets; an imported dataset, whose size is unknown, counts 0."""
    totals = {"train": 0, "val": 0, "test": 0}
    for identity in run.spec.datasets:
        for part, rows in run.spec.task_spec.rows(int(identity.get("n") or 0)).items():
            totals[part] += len(rows)
    return totals


def _training(run: Run, record: Record, shown: ShownRun) -> list[str]:
    """Samples, options and data of the training, and the commands that repeat it."""
    counts, options = _counts(run), run.spec.train_options
    how = (
        f"{record.epochs} epochs, the weights of epoch {record.best_epoch} (validation error {number(record.val)}), "
        f"learning rate {options.learning_rate:g}, batch size {options.batch_size}"
        if record.epochs
        else "fitted without gradient steps"
    )
    lines = [
        f"{counts['train']} training, {counts['val']} validation and {counts['test']} test samples; {how}; "
        f"seed {md(shown.seed)}. Data: {md('; '.join(f'{d.label} ({d.extras})' for d in shown.datasets))}.",
    ]
    if shown.commands:
        lines += ["", "These commands make it again:", "", *(f"    {_word(command)}" for command in shown.commands)]
    return lines


def _scores(record: Record) -> str:
    """A table of all scores, with intervals and formulas."""
    rows = []
    for name, score in record.scores.items():
        interval = f"{number(score.low)} to {number(score.high)}" if score.low is not None else ""
        about = (inspect.getdoc(METRICS[name]) or "").partition("\n")[0] if name in METRICS else ""
        rows.append([f"`{_word(name)}`", number(score.value), interval, md(about)])
    for label, part in record.shifts.items():
        if "rel_l2" in part.scores:
            rows.append([f"`rel_l2`, shift {md(label)}", number(part.scores["rel_l2"].value), "", ""])
    return md_table(["metric", "value", "interval", "meaning"], rows)


def _limits(run: Run, record: Record) -> list[str]:
    """The limits of the model, one per line."""
    cls, setting = type(run.model), run.task_setting
    points = " x ".join(map(str, setting.grid.points))
    lines = [
        "- It was trained on one equation with the parameters above. Other equations, noise levels, truncations or "
        "initial data are outside what it has seen"
        + (", except for the shifts in the table." if record.shifts else "."),
        f"- Grid: {'any, trained on' if cls.any_grid else 'only'} {points} points. "
        f"Frames: {'any number, trained on' if cls.any_horizon else 'only'} {setting.frames} of "
        f"{setting.times[1] - setting.times[0]:.4g} time units.",
        "- Scores compare with the numerical solution, not with the exact one. An error below the discretisation error "
        "of the data (`spdebench data card`) says nothing about the SPDE.",
    ]
    if record.knows_scheme:
        lines.append("- It is given the linear part of the scheme that made the data, which is unknown for real data.")
    if 0 < (samples := _counts(run)["train"]) < FEW_SAMPLES:
        lines.append(
            f"- It was trained on {samples} samples only: an example to load and to test, no result of the benchmark."
        )
    return lines


def _made(record: Record) -> dict[str, Any]:
    """Versions, device and training time."""
    made = {key: value for key, value in vars(record.provenance).items() if value and key != "resumed"}
    if record.training_seconds:
        made["seconds of training"] = f"{record.training_seconds:.0f}"
    return made
