"""The table `observation` in short, from records, for ``docs/law.md``: skill by problem and by seen noise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spdebench.paper.catalogue import table
from spdebench.paper.fill import fill
from spdebench.paper.filled import Entry, Filled, Group
from spdebench.paper.skill import CLIMATOLOGY, ENERGY_SCORE, NO_SKILL, skill_interval
from spdebench.records import Records
from spdebench.records.record import TEST
from spdebench.records.summary import MISSING, SKILL, mean_and_std, number
from spdebench.registry import command
from spdebench.report.markup import md_table, paragraph, picture_for_schemes
from spdebench.report.numbers import seeds_text
from spdebench.report.paper_figures.observation import draw_observation
from spdebench.report.style import darkened, save
from spdebench.training.law_rows import INDEPENDENT_LAW

MARKS = ("<!-- observation -->", "<!-- /observation -->")
"""Lines of ``docs/law.md`` around the tables."""
FIGURES = {"light": Path("docs") / "observation.svg", "dark": Path("docs") / "observation-dark.svg"}
"""The figure of the table below the folder of README, for each colour scheme."""


def observation_tables(records: Records) -> str:
    """Tables in Markdown for every problem with a record of a model.

    Rows are models and columns the truncation of the seen noise; the last rows are the scores of climatology and true
    law, from which skill is computed.
    """
    filled = fill(table("observation"), records)
    problems: dict[str, list[Group]] = {}
    for group in filled.groups:
        problems.setdefault(group.name.partition(",")[0], []).append(group)
    blocks: list[str] = []
    for problem, groups in problems.items():
        if any(e.values for group in groups for e in group.entries.values() if e.cell.metric == SKILL):
            blocks += [f"`{problem}`, skill:", _table(filled, groups)]
    blocks = [*([_picture()] if blocks else []), *blocks, _remarks_below(filled), *_other_seed(filled, records)]
    return "".join(f"{block}\n\n" for block in blocks)


def write_figures(records: Records, root: Path) -> list[Path]:
    """Write skill and energy score against K as one SVG for each colour scheme, if a model has a skill.

    Returns the files.
    """
    filled = fill(table("observation"), records)
    written = []
    for scheme, path in FIGURES.items():
        figure = draw_observation(filled).figure
        if figure is not None:
            written.append(save(darkened(figure) if scheme == "dark" else figure, root / path))
    return written


def _picture() -> str:
    """The figure, in HTML."""
    light, dark = (FIGURES[scheme].name for scheme in ("light", "dark"))
    return picture_for_schemes(light, dark, "Skill and energy score of models against what is seen of the noise")


def _table(filled: Filled, groups: Sequence[Group]) -> str:
    """The table of one problem, whose groups differ in the seen noise."""
    rows = dict.fromkeys(row for group in groups for row in group.rows)
    lines = []
    for row in rows:
        entries = [_entry(group, row, SKILL) for group in groups]
        if any(e is not None and e.values and not _is_reference(e) for e in entries):
            lines.append([row, *(_text(filled, group, e) for group, e in zip(groups, entries, strict=True))])
    for row in rows:
        scores = [_entry(group, row, ENERGY_SCORE) for group in groups]
        if any(e is not None and e.values and _is_reference(e) for e in scores):
            lines.append([f"*energy score of the {row}*", *("" if e is None else number(e.mean) for e in scores)])
    return md_table(["model", *(group.name.partition(", ")[2] for group in groups)], lines)


def _is_reference(entry: Entry) -> bool:
    """Whether an entry is one of the two references of skill, climatology and true law."""
    return entry.cell.model in (CLIMATOLOGY, INDEPENDENT_LAW) and entry.cell.part == TEST


def _entry(group: Group, row: str, metric: str) -> Entry | None:
    return next((e for e in group.row(row) if e.cell.metric == metric), None)


def _text(filled: Filled, group: Group, entry: Entry | None) -> str:
    """A number, in bold if it is the best of its column; empty if the table has no such cell."""
    if entry is None:
        return ""
    if entry.mean is None:
        return entry.no_number or MISSING
    text = mean_and_std(entry.mean, entry.std)
    return f"**{text}**" if entry.cell.row in filled.best.get((group.name, entry.cell.column), ()) else text


def _remarks_below(filled: Filled) -> str:
    """How many cells are not run yet, and the command that makes them."""
    entries = [e for e in filled.entries if e.cell.metric == ENERGY_SCORE]
    missing = [e for e in entries if not e.values]
    words = (
        "Skill in the energy score on the test part: 0 for the climatology, 1 for the true law. Bold: the best value "
        "of a column; rows with drawn noise and the conditional mean are not ranked. "
        f"{seeds_text(entries)} '{MISSING}': not run yet. '{NO_SKILL}': climatology and true law agree within 1 %, and "
        "no skill is possible."
    )
    if not missing:
        return paragraph(words)
    words += f" {len(missing)} of {len(entries)} cells have not been run yet. This command runs them:"
    return f"{paragraph(words)}\n\n    {command('table observation --run --device cuda --seeds 1')}"


# --- data of another seed -----------------------------------------------------------------------------------------
def _other_seed(filled: Filled, records: Records) -> list[str]:
    """The skill of step on the data of the table and on data of another seed, with 95 % intervals over inputs."""
    again = {group.name: group for group in fill(table("observation-seed1"), records).groups}
    lines = []
    for group in filled.groups:
        texts = [_with_interval(g) for g in (group, again.get(group.name)) if g is not None]
        if len(texts) == 2 and all(texts):
            lines.append([*group.name.split(", "), *texts])
    if not lines:
        return []
    words = (
        "The skill of `step` on these data and on data of another seed; in brackets 95 % bootstrap intervals over the "
        "inputs of the test part. Below J the test part of the other seed was not looked at while `step` was "
        "developed; for seen=J the search was improved once more after this comparison. The command "
        f"`{command('table observation-seed1')}` prints the second column and what it is computed from."
    )
    return [paragraph(words), md_table(["problem", "seen", "seed 0", "seed 1"], lines)]


def _with_interval(group: Group) -> str:
    """``0.923 [0.847, 0.965]``: the skill of step; empty if its run or one of the references is missing."""
    scores = {e.cell.model: e for e in group.entries.values() if e.cell.metric == ENERGY_SCORE and e.cell.part == TEST}
    own = next((e for e in group.entries.values() if e.cell.model == "step" and e.cell.metric == SKILL), None)
    if own is None or own.mean is None:
        return ""
    ends = skill_interval(scores[CLIMATOLOGY], scores["step"], scores.get(INDEPENDENT_LAW))
    return number(own.mean) + ("" if ends is None else f" [{number(ends.low)}, {number(ends.high)}]")
