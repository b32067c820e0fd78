"""The results page: our numbers against all published ones, as Markdown computed from run records.

The same records give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from spdebench.paper.base import Edition
from spdebench.paper.catalogue import TABLES
from spdebench.paper.comparison import VERDICTS, Explanation, PublishedComparison, comparisons
from spdebench.paper.fill import fill
from spdebench.paper.filled import Entry, Filled, Group
from spdebench.paper.layout import FINE_REFERENCE, MORE_ACCURATE
from spdebench.records import Record, Records
from spdebench.records.record import TEST
from spdebench.records.summary import rough
from spdebench.report.coverage import SEEDS, coverage, trained
from spdebench.report.markup import md, md_table, paragraph
from spdebench.report.numbers import measured, multiple, problem_lines, published
from spdebench.report.tables import comma_separated
from spdebench.training.solver_row import SOLVER

COMMAND = "spdebench results --out docs/results.md --csv docs/results.csv --readme README.md"

INTRODUCTION = f"""\
# Results

This page compares our numbers with the published ones: how many we have computed, how they compare, why some of them
differ, and then every number. `spdebench table NAME` prints one of the tables.

Our numbers are the mean ± s.d. over training seeds (number of seeds in brackets); published numbers are the paper's
mean ± s.d.; the ratio is ours / published. Unless a table says otherwise, the data are in edition `paper`: the grid,
time step and scheme of the paper's text. `{COMMAND}`
wrote this page from the run records in `results/`; do not edit it."""

READING = f"""\
A cell shows *ours / published*; `*` marks a number above the published mean + 2 s.d., `†` an error at the floor.
[results.csv](results.csv) has one line per number, with ratios, seeds, parameters and the hashes of the runs; the site
(`spdebench report`) links each number to its runs. *ms*: inference time per sample at batch 100, with the noise already
on the device, measured once, so that differences of 10 % are not significant. *speed*: the solver's time divided by
the model's time on the same device at the same batch size; a larger batch favours the solver (phi41: 0.0008 ms per
sample at 100,000, `spdebench bench data`). These reference rows have no published number:

- `mean`: the mean of the training data; `linear`, `trees`: linear regression on the solution of the linear equation,
  or on products and integrals of it, with the exact kernel of the equation.
- `generator's kernel` (linear, trees, DLR-Net, NORS): the model uses the linear part of the numerical scheme that
  generated the data, which is unknown for real data. Such rows are not ranked.
- `solver`: the solver that generated the data, with the same input as a model. Its error is rounding, or comes from
  time steps and grid points that are not part of the input.
- `{FINE_REFERENCE}`: the discretisation error of the data, their distance to
  {MORE_ACCURATE}.
  A model with a smaller error has fitted the numerical scheme.
- `independent ensemble`: other samples of the same law.

Below each table there are three reference errors of each problem. *floor*: the error of the best possible prediction
from the input of a model; to estimate it, the part of the noise that is not in the input is drawn many times.
*nonlinearity*: the error of `linear` with the exact kernel. *identifiability*: the error of `step`. Errors within a
factor 1.2 of the floor cannot be improved; models with such errors are not ranked against each other."""


def page(records: Records, known: Iterable[Explanation] | None = None) -> str:
    """The whole page."""
    filled = [fill(table, records, SEEDS) for table in TABLES]
    tables = [f for f in filled if f.table.kind == "table"]
    figures = [f for f in filled if f.table.kind == "figure" and f.entries]
    known = None if known is None else tuple(known)
    found = {f.table.name: comparisons(f, known) for f in tables}
    sections = [
        [INTRODUCTION],
        coverage(
            tables, found, figures, _reasons_table([s for compared in found.values() for s in compared if s.above])
        ),
        *_above_and_far_below([s for compared in found.values() for s in compared]),
        ["## Numbers", READING],
        *([section] for f in tables for section in _numbers(f, found[f.table.name])),
        *_converged(records),
        _origin(records),
    ]
    return "\n\n".join(block for section in sections for block in section) + "\n"


# --- numbers above, or far below the published ones ---------------------------------------------------------------
def _above_and_far_below(found: Sequence[PublishedComparison]) -> list[list[str]]:
    """Sections on numbers that are above, or far below, the published ones, with their explanations."""
    above, far = [s for s in found if s.above], [s for s in found if s.far_below]
    nothing = ["None." if found else "Nothing to compare yet."]
    sections = [["## Above the published mean + 2 s.d.", *(_reasons(above) or nothing)]]
    if far:
        sections.append(["## Far below the published mean", *_reasons(far)])
    return sections


def _by_reason(found: Sequence[PublishedComparison]) -> list[tuple[str, str, list[PublishedComparison]]]:
    """(verdict, reason, numbers), the least explained first."""
    reasons: dict[tuple[str, str], list[PublishedComparison]] = {}
    for compared in found:
        text = compared.explanation.text if compared.explanation else ""
        reasons.setdefault((compared.verdict, text), []).append(compared)
    order = sorted(reasons.items(), key=lambda pair: VERDICTS.index(pair[0][0]))
    return [(verdict, reason, cells) for (verdict, reason), cells in order]


def _reasons_table(above: Sequence[PublishedComparison]) -> list[str]:
    """A table with one line per reason for numbers above the published ones: their count and the reason in short."""
    if not above:
        return []
    short: dict[tuple[str, str], list[PublishedComparison]] = {}
    for verdict, reason, cells in _by_reason(above):
        first = re.split(r"(?<!s\.d)\. |[:;] ", reason.split("\n")[0])[0]
        first = first if first.endswith("s.d.") else first.rstrip(".")
        short.setdefault((verdict, first), []).extend(cells)
    rows = []
    for (verdict, first), cells in sorted(short.items(), key=lambda pair: (VERDICTS.index(pair[0][0]), -len(pair[1]))):
        models = ", ".join(dict.fromkeys(c.entry.cell.row for c in cells))
        equations = ", ".join(dict.fromkeys(f"`{c.entry.records[0].equation}`" for c in cells))
        rows.append([str(len(cells)), verdict.lower(), equations, models, first])
    header = ["numbers", "", "equation", "model", "why"]
    return ["Why numbers lie above the published ones (details below):", md_table(header, rows)]


def _reasons(found: Sequence[PublishedComparison]) -> list[str]:
    """Per reason its answer, the evidence and a table of its numbers; the least explained first."""
    blocks = []
    for verdict, reason, cells in _by_reason(found):
        header = ["table", "cell", "ours", "published", "ratio"]
        rows = [
            [f"`{e.cell.table}`", e.cell.label, measured(e), published(e), multiple(e)]
            for e in (s.entry for s in cells)
        ]
        blocks += [_answer_and_evidence(f"**{verdict}.** {reason}"), md_table(header, rows)]
    return blocks


def _answer_and_evidence(reason: str) -> str:
    """The first line as a paragraph, and the facts (``- ``) below it as a list."""
    answer, *facts = reason.split("\n")
    listed = "\n".join(paragraph(fact, indent="  ") for fact in facts)
    return "\n\n".join(filter(None, (paragraph(answer), listed)))


# --- the numbers --------------------------------------------------------------------------------------------------
def _numbers(filled: Filled, found: Sequence[PublishedComparison]) -> list[str]:
    """A section for a table with any run: its notes, and per group a Markdown table with one line per model."""
    groups = [g for g in filled.groups if any(e.values for e in g.entries.values())]
    if not groups:
        return []
    above = {id(s.entry) for s in found if s.above}
    blocks = [f"### {filled.table.title}", f"`spdebench table {filled.table.name}`"]
    blocks += [paragraph(md(note)) for note in filled.table.notes]
    for group in groups:
        columns = [c for c in group.columns if any(e.values for e in group.column(c))]
        rows = []
        for name in group.rows:
            entries = {e.cell.column: e for e in group.row(name) if e.values}
            if entries:
                cells = [_number_cell(entries.get(c), group, above) for c in columns]
                timed = next((e for e in entries.values() if e.inference_ms), next(iter(entries.values())))
                label = name if trained(timed) else f"`{name}`"
                rows.append([label, *cells, *_cost(timed, group)])
        blocks += [*([f"**{group.name}**"] if group.name else []), md_table(["model", *columns, "ms", "speed"], rows)]
        if numbers := problem_lines(group):
            shown = [[f"*{name}*", *texts] for name, texts in numbers]
            blocks.append(md_table(["problem", *group.columns], shown))
    return ["\n\n".join(blocks)]


def _number_cell(entry: Entry | None, group: Group, above: set[int]) -> str:
    """``0.0200 (1)* / 0.023±1e-4``."""
    if entry is None:
        return ""
    marks = "\\*" * (id(entry) in above) + "†" * group.at_floor(entry)
    return f"{measured(entry)}{marks}" + (f" / {printed}" if (printed := published(entry)) else "")


def numbers_csv(records: Records) -> str:
    """Every number of every table that has a run, one line each."""
    parts = [comma_separated(fill(table, records, SEEDS), runs_only=True) for table in TABLES if table.kind == "table"]
    return parts[0] + "".join(part.split("\n", 1)[1] for part in parts[1:])


def _cost(entry: Entry, group: Group) -> tuple[str, str]:
    """ms per sample, and the solver's time divided by it where both were measured on one device."""
    if not entry.inference_ms:
        return "", ""
    rival = next((e for e in group.column(entry.cell.column) if e.cell.model == SOLVER and e.cell.part == TEST), None)
    ms = rough(entry.inference_ms)
    if entry.cell.model == SOLVER or rival is None or not rival.inference_ms:
        return ms, ""
    if _devices(entry) != _devices(rival):
        return ms, ""
    return ms, f"x{rough(rival.inference_ms / entry.inference_ms)}"


def _devices(entry: Entry) -> set[str | None]:
    return {r.provenance.device for r in entry.records}


def _converged(records: Records) -> list[list[str]]:
    """Cells of edition converged that have runs, in tables that exist in both; nothing is published for them."""
    edition: Edition = "converged"
    solved = (d.get("fields", {}).get("edition") for r in records.values() for d in r.datasets)
    if edition not in solved:
        return []
    rows = [
        [f"`{e.cell.table}`", e.cell.label, measured(e), published(e)]
        for f in (fill(t, records, SEEDS, edition) for t in TABLES if t.kind == "table" and t.edition is None)
        for e in f.entries
        if e.values
    ]
    about = "The same equations and noise, solved more accurately; the published numbers are for edition `paper`."
    return [["## Edition converged", about, md_table(["table", "cell", "ours", "published"], rows)]] if rows else []


# --- where it comes from ------------------------------------------------------------------------------------------
def _origin(records: Records) -> list[str]:
    """Devices, versions, commits and days of the runs."""
    kinds: dict[tuple[str, ...], list[Record]] = {}
    for record in records.values():
        made = record.provenance
        key = tuple(_known(word) for word in (made.device, made.spdebench, made.torch, made.commit))
        kinds.setdefault(key, []).append(record)
    rows = []
    for key, group in sorted(kinds.items()):
        days = sorted(_known(r.provenance.started and r.provenance.started[:10]) for r in group)
        hours = sum(r.training_seconds or 0.0 for r in group) / 3600
        span = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
        commit = key[3][:12] + "+" * key[3].endswith("+")
        device, ours, torch = map(md, key[:3])
        rows.append([device, str(len(group)), f"{hours:.1f}", md(span), ours, torch, md(commit)])
    header = ["device", "runs", "hours of training", "days", "spdebench", "torch", "commit"]
    about = (
        f"{len(records)} run records. Hours are summed over runs, some of which ran at the same time. A commit with + "
        "had changes that were not committed yet."
    )
    return ["## Runs", about, *([md_table(header, rows)] if rows else [])]


def _known(word: str | None) -> str:
    return "not recorded" if word is None else word
