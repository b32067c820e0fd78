"""docs/findings.md: one section for each finding, with the numbers that were computed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from spdebench.display import cell
from spdebench.findings.base import Finding, Found, ordered
from spdebench.report.markup import md, md_table, paragraph

COMMAND = "spdebench findings --all --out docs/findings.md"

INTRODUCTION = f"""\
# Findings

What this benchmark shows about the published one: facts about its code and data, each with a number and the command
that prints it. The numbers on this page were written by `{COMMAND}`
(`make findings` for those that take seconds), and a test compares them. Each command runs on any machine, most of them
in seconds; where it needs run records it reads them from `results/`. With `--data FILE` some findings look at a file of
yours, generated here or in the published layout.
"""


def section(finding: Finding, found: Found) -> str:
    """Title, sentence with numbers, table, command and what follows, between two marks."""
    blocks = [f"## {md(finding.title.rstrip('.'))}", paragraph(finding.sentence.format(**found.numbers))]
    if found.rows:
        header = list(found.rows[0])
        blocks.append(md_table(header, [["" if v is None else cell(v) for v in row.values()] for row in found.rows]))
    blocks.append(paragraph(f"*What follows.* {finding.follows.format(**found.numbers)}"))
    more = "; it takes `--data FILE`" if finding.on_file else ""
    blocks.append(paragraph(f"`{finding.command}` computes this from {_listed(finding.uses)}{more}."))
    return "\n\n".join([_mark(finding.name), *blocks, _end(finding.name)]) + "\n"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _mark(name: str) -> str:
    return f"<!-- finding {name} -->"


def _end(name: str) -> str:
    return f"<!-- /finding {name} -->"


def sections(text: str) -> dict[str, str]:
    """Name -> section of a page."""
    found = re.findall(r"(<!-- finding (\S+) -->\n.*?<!-- /finding \2 -->\n)", text, flags=re.DOTALL)
    return {name: body for body, name in found}


def page(found: Mapping[str, Found], old: str = "") -> str:
    """The whole page: fresh sections for what was computed, those of the old page for the rest."""
    known = sections(old)
    parts = [section(f, found[f.name]) if f.name in found else known.get(f.name, "") for f in ordered()]
    return "\n".join([INTRODUCTION, *(part for part in parts if part)])
