"""The card of a dataset: description, generation, reference errors and discretisation error."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch

from spdebench.data import Dataset
from spdebench.data.distance import Distance, lost_variance, measure
from spdebench.data.unseen_share import UnseenShare, unseen_share
from spdebench.equations import Equation, renormalise
from spdebench.errors import one_line
from spdebench.records.summary import number
from spdebench.tasks import TASK_TEXT
from spdebench.tasks.floor import Floor
from spdebench.training.problem import problem_numbers


def statistics(dataset: Dataset, block: int = 256) -> dict[str, float]:
    """At t_T: pointwise standard deviation averaged over space, energy mean_x u^2, largest |u|; block by block."""
    count, first, second, largest = 0, 0.0, 0.0, 0.0
    for start in range(0, len(dataset), block):
        u = dataset.read("u", start, start + block)
        largest = max(largest, float(np.abs(u).max()))
        final = u[:, -1].astype(np.float64)
        first, second, count = first + final.sum(0), second + (final**2).sum(0), count + len(final)
    variance = (second - first**2 / count) / max(1, count - 1)
    return {
        "std": float(np.sqrt(np.maximum(variance, 0)).mean()),
        "energy": float(np.mean(second) / count),
        "largest": largest,
    }


def describe_noise(equation: Equation) -> str:
    """One sentence that describes the noise of the dataset."""
    series = equation.series()
    text = f"{equation.noise_label}, {series.functions} {equation.basis} functions (J={equation.truncation})"
    if message := equation.aliasing_message():
        text += f". ALIASED: {message}"
    return f"{text}. {message}" if (message := equation.caution()) else text


def card_facts(dataset: Dataset, samples: int = 16, device: str = "cpu") -> dict[str, Any]:
    """The content of the card, as plain values."""
    facts: dict[str, Any] = {"file": dataset.path.name, "n": len(dataset), "statistics": statistics(dataset)}
    if dataset.imported:
        return facts | {"origin": dataset.identity["published"]}
    eq = dataset.equation
    share = unseen_share(dataset)
    increments = torch.from_numpy(dataset.read("dw", 0, min(256, len(dataset))))
    return facts | {
        "problem": problem_numbers(dataset, device=device).to_dict(),
        "identity": dataset.identity,
        "title": eq.title,
        "formula": eq.formula,
        "scheme": eq.scheme,
        "noise": describe_noise(eq),
        "lost_variance": lost_variance(eq, increments) if eq.edition == "converged" and eq.order == 1 else None,
        "unseen": None if share is None else vars(share),
        "constants": renormalise.constants(eq),
        "remarks": eq.remarks,
        "made": dataset.made,
        "distances": dataclasses.asdict(measure(eq, dataset.spec.seed, min(samples, len(dataset)), device)),
    }


def render_card(facts: dict[str, Any]) -> str:
    """The card as Markdown."""
    stats = facts["statistics"]
    lines = [f"# {facts.get('title', _word(facts['file']))}", ""]
    if "origin" in facts:
        lines += [
            f"Imported from `{_word(facts['origin'].get('file', '?'))}`: no seed, so it cannot be solved again here.",
            "",
        ]
    else:
        lines += _about(facts)
    lines += [
        "## Statistics",
        "",
        f"{facts['n']} samples. At the last frame: standard deviation {stats['std']:.4g} (pointwise, averaged over "
        f"space), energy mean u² {stats['energy']:.4g}. Largest |u| {stats['largest']:.4g}.",
        "",
    ]
    if "problem" in facts:
        lines += _problem(facts["problem"])
    return "\n".join(lines + (_errors(facts["distances"]) if "distances" in facts else []))


def _word(value: Any) -> str:
    """Text from a file, safe inside a code span: one line without backticks."""
    return one_line(str(value)).replace("`", "'")


def _about(facts: dict[str, Any]) -> list[str]:
    """Equation, noise, scheme, remarks and fields of the dataset."""
    identity = facts["identity"]
    rows = [f"| {key} | {value} |" for key, value in identity["fields"].items()]
    made = ", ".join(f"`{_word(k)} {_word(v)}`" for k, v in facts["made"].items())
    lines = [
        f"`{facts['formula']}`",
        "",
        f"- File: `{facts['file']}`, seed {identity['seed']}, stream `{identity['stream']}`, made with {made}",
        f"- Scheme: `{facts['scheme']}`, edition {identity['fields']['edition']}",
        f"- Noise: {facts['noise']}",
    ]
    if facts.get("lost_variance") is not None:
        lines.append(
            f"- The noise is constant on each stored interval, hence not white in time: compared with white noise, the "
            f"linear equation loses {100 * facts['lost_variance']:.3g} % of its variance (without its spatial mean)"
        )
    if facts.get("unseen") is not None:
        share = UnseenShare(**facts["unseen"])
        lines.append(f"- With seen={share.seen} a model does not see {share}")
    if facts["constants"]:
        values = ", ".join(f"{name} = {value:.6g}" for name, value in facts["constants"].items())
        lines.append(f"- Renormalisation constants at T: {values}")
    if facts["remarks"]:
        lines.append(f"- {facts['remarks']}")
    return [*lines, "", "| field | value |", "|---|---|", *rows, ""]


_FLOORS = {
    "exact": "the input of a model determines the solution, up to rounding",
    "conditional": "the noise that is not part of the input was drawn {draws} times for each of {truths} samples",
    "solver": "an upper bound: the error of the solver with the input of a model, on {truths} samples",
}


def _problem(problem: dict[str, Any]) -> list[str]:
    """The reference errors of the equation's task."""
    task, lowest = problem["task"], Floor(**problem["floor"])
    view = "".join(f", {key}={task[key]}" for key in ("every", "stride") if task[key] > 1)

    def row(key: str, how: str) -> str:
        value = problem[key]
        return f"| {key} | {number(value)} | {how if value is not None else _word(problem['notes'].get(key, ''))} |"

    return [
        "## Reference errors",
        "",
        f"Relative L2 errors of the task {TASK_TEXT[task['inputs']]}{view}. *floor* is the error of the best possible "
        "prediction from the input of a model (± standard error); errors within a factor 1.2 of it count as equal. "
        "*nonlinearity* is the error of a regression on the solution of the linear equation: if it is small, the "
        "problem is almost linear. *identifiability* is the error of a regression that fits one time step of the "
        f"solver. The regressions used {problem['samples']} samples, split as the task says.",
        "",
        "| number | error | how |",
        "|---|---|---|",
        f"| floor | {lowest} | {_FLOORS[lowest.kind].format(draws=lowest.draws, truths=lowest.truths)} |",
        row("nonlinearity", "`linear` with the exact kernel"),
        row("identifiability", "`step`"),
        "",
    ]


def _errors(distances: dict[str, Any]) -> list[str]:
    """The discretisation errors."""

    def show(key: str) -> str:
        return str(Distance(**distances[key]))

    return [
        "## Discretisation error",
        "",
        f"Relative L2 distances over all frames after the first, mean over {distances['samples']} samples on the same "
        "noise, ± standard error. A model with a smaller error than these has fitted the numerical scheme.",
        "",
        "| from | to | distance |",
        "|---|---|---|",
        f"| edition paper | edition converged | {show('editions')} |",
        f"| this dataset | the continuous path (noise at step/2^{distances['refinement']}) | {show('continuum')} |",
        f"| solved again from the stored u0 and dw | the stored u | {show('storage')} |",
        f"| edition converged with {distances['other_substeps']} sub-steps | edition converged | {show('residual')} |",
        "",
    ]


def card(dataset: Dataset, samples: int = 16, device: str = "cpu") -> str:
    """The Markdown card of a dataset; ``samples`` of its samples are solved more finely."""
    return render_card(card_facts(dataset, samples, device))
