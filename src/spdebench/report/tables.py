"""A filled table in five formats: our numbers next to the published ones, and commands for the missing ones.

A number is written as mean ± s.d. over seeds (number of seeds), with a star if it is the best of its column; below or
next to it are the published number and ours as a multiple of it. ``-`` means that a number is missing.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence

from spdebench.errors import one_line, unknown
from spdebench.paper.filled import Filled, Group
from spdebench.records.summary import count, number, probability
from spdebench.report.markup import html, latex, markdown
from spdebench.report.numbers import heading, is_best, measured, multiple, problem_lines, published, remarks, source

WIDTH = 120


def render(filled: Filled, format: str = "text") -> str:
    """The table in one of the `FORMATS`."""
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    return "".join(c if c.isprintable() or c == "\n" else " " for c in FORMATS[format](filled))


# --- text ---------------------------------------------------------------------------------------------------------
def text(filled: Filled) -> str:
    """Plain columns in lines of at most 120 characters; further columns follow below."""
    out = [heading(filled), source(filled), ""]
    for group in filled.groups:
        out += [*([group.name] if group.name else []), *_text_group(filled, group), ""]
    for remark, command in remarks(filled):
        out += [*_wrapped(remark), *([f"  {command}"] if command else [])]  # a command is never broken
    return "\n".join(out).rstrip() + "\n"


def _text_group(filled: Filled, group: Group) -> list[str]:
    """The lines of one group; columns that do not fit into the width follow below."""
    left = [["", "", ""]]
    for row in group.rows:
        ms = group.inference_ms(row)
        left += [[row, count(group.parameters(row)), number(ms) if ms is not None else ""], ["  paper", "", ""]]
    left += [["  best", "", ""]]
    left[0] = ["model", "params", "ms"]
    columns = [_text_column(filled, group, column) for column in group.columns]
    last = len(left) - 1  # empty lines of the paper and of the best are left out
    numbers = problem_lines(group)
    left += [[name, "", ""] for name, _ in numbers]
    columns = [[*lines, *(f" {texts[k]}" for _, texts in numbers)] for k, lines in enumerate(columns)]
    kept = [
        k
        for k in range(len(left))
        if (k % 2 and k < last) or k in (0, *range(last + 1, len(left))) or any(c[k] for c in columns)
    ]
    left, columns = [left[k] for k in kept], [[c[k] for k in kept] for c in columns]
    used = [k for k in range(3) if k == 0 or any(line[k] for line in left[1:])]
    base = [[line[k] for line in left] for k in used]
    width = WIDTH - sum(max(map(len, c)) + 2 for c in base)
    out: list[str] = []
    for block in _fitting(columns, width):
        out += [*([""] if out else []), *_aligned([*base, *block])]
    return out


def _text_column(filled: Filled, group: Group, column: str) -> list[str]:
    """The lines of a column: header, two lines per row (ours, the paper's), and the significance of the best."""
    lines = [column]
    for row in group.rows:
        entry = group.entries.get((row, column))
        if entry is None:
            lines += ["", ""]
            continue
        star = "*" if is_best(filled, group, row, column) else " "
        other = "  ".join(word for word in (published(entry), multiple(entry)) if word)
        lines += [star + measured(entry), f" {other}" if other else ""]
    found = filled.significance.get((group.name, column))
    return [*lines, f" {probability(found[0])}" if found else ""]


def _fitting(columns: list[list[str]], width: int) -> list[list[list[str]]]:
    """The columns in blocks, each at most ``width`` characters wide."""
    blocks: list[list[list[str]]] = [[]]
    used = 0
    for column in columns:
        own = max(map(len, column)) + 2
        if blocks[-1] and used + own > width:
            blocks.append([])
            used = 0
        blocks[-1].append(column)
        used += own
    return blocks


def _aligned(columns: list[list[str]]) -> list[str]:
    """The lines of columns side by side, with a rule below the header."""
    widths = [max(map(len, c)) for c in columns]
    lines = ["  ".join(c[k].ljust(w) for c, w in zip(columns, widths, strict=True)) for k in range(len(columns[0]))]
    rule = "-" * min(WIDTH, max(len(line.rstrip()) for line in lines))
    return [lines[0].rstrip(), rule, *(line.rstrip() for line in lines[1:])]


def _wrapped(line: str) -> list[str]:
    """A remark in lines of limited width; all but the first are indented."""
    out, current = [], ""
    for word in line.split():
        if current and len(current) + 1 + len(word) > WIDTH - 2:
            out.append(current)
            current = "  " + word
        else:
            current = f"{current} {word}" if current else word
    return [*out, current]


# --- csv ----------------------------------------------------------------------------------------------------------
FIELDS = (
    *("table", "source", "edition", "group", "row", "model", "column", "metric", "part"),
    *("mean", "std", "seeds", "wanted", "published", "published_std", "ratio", "best", "p_value", "runner_up"),
    *("inference_ms", "parameters", "published_line", "digests", "command"),
)


def tidy(filled: Filled) -> list[dict[str, object]]:
    """One dictionary per cell, keys as in `FIELDS`."""
    out: list[dict[str, object]] = []
    for e in filled.entries:
        c = e.cell
        best = c.row in filled.best.get((c.group, c.column), ())
        p, runner_up = filled.significance.get((c.group, c.column), (None, None)) if best else (None, None)
        values = (
            *(c.table, filled.table.source, filled.edition, c.group, c.row, c.model, c.column, c.metric, c.part),
            *(e.mean, e.std, e.seeds_done, len(c.runs), c.published, c.published_std, e.ratio, best, p, runner_up),
            *(e.inference_ms, e.parameters, next(iter(c.published_keys), None), " ".join(r.digest for r in c.runs)),
            e.command if e.missing else "",
        )
        out.append(dict(zip(FIELDS, values, strict=True)))
    return out


def comma_separated(filled: Filled, *, runs_only: bool = False) -> str:
    """One line per cell; with ``runs_only`` only cells that have a run."""
    return as_csv(FIELDS, (row for row in tidy(filled) if row["seeds"] or not runs_only))


def as_csv(fields: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """The rows as CSV, below a header."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: _field(v) for k, v in row.items()} for row in rows)
    return stream.getvalue()


def _field(value: object) -> object:
    """A value for CSV; text that a spreadsheet would take for a formula gets a quote before it."""
    if isinstance(value, str):
        plain = one_line(value)
        return f"'{plain}" if plain.lstrip()[:1] in tuple("=+-@") else plain
    return "" if value is None else value


FORMATS: dict[str, Callable[[Filled], str]] = {
    "text": text,
    "md": markdown,
    "latex": latex,
    "csv": comma_separated,
    "html": html,
}
