"""A filled table as Markdown, LaTeX and HTML."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from html import escape

from spdebench.errors import one_line
from spdebench.paper.filled import Filled, Group
from spdebench.records.summary import count, number, probability
from spdebench.report.numbers import heading, is_best, measured, multiple, problem_lines, published, remarks, source


# --- markdown -----------------------------------------------------------------------------------------------------
def markdown(filled: Filled) -> str:
    """The table as Markdown: ours / published in each cell."""
    each = "ours (seeds) / published" if filled.has_published else "mean (seeds)"
    out = [f"## {md(heading(filled))}", "", f"{_sentence(md(source(filled)))} Each cell: {each}.", ""]
    for group in filled.groups:
        out += [*([f"### {md(group.name)}", ""] if group.name else []), _markdown_group(filled, group), ""]
    out += [f"- {md(remark)}" + (f" {_code(command)}" if command else "") for remark, command in remarks(filled)]
    return "\n".join(out).rstrip() + "\n"


def _markdown_group(filled: Filled, group: Group) -> str:
    """One group as a table of Markdown."""
    header = ["model", "parameters", "ms", *map(md, group.columns)]
    lines = []
    for row in group.rows:
        cells = [_md_cell(filled, group, row, column) for column in group.columns]
        lines.append([md(row), count(group.parameters(row)), number(group.inference_ms(row)), *cells])
    if any((group.name, c) in filled.significance for c in group.columns):
        found = [filled.significance.get((group.name, c)) for c in group.columns]
        lines.append(["*best against next*", "", "", *(md(probability(f[0])) if f else "" for f in found)])
    lines += [[f"*{name}*", "", "", *texts] for name, texts in problem_lines(group)]
    return md_table(header, lines)


def _md_cell(filled: Filled, group: Group, row: str, column: str) -> str:
    """Our number, in bold if it is the best, and the published one."""
    entry = group.entries.get((row, column))
    if entry is None:
        return ""
    first = f"**{measured(entry)}**" if is_best(filled, group, row, column) else measured(entry)
    return " / ".join(word for word in (first, " ".join(filter(None, (published(entry), multiple(entry))))) if word)


def md_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown; bars within cells are escaped."""
    return "\n".join(_md_line(line) for line in (header, ["---"] * len(header), *rows))


def _md_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(re.sub(r"(?<!\\)\|", r"\\|", one_line(c)) for c in cells) + " |"


def picture_for_schemes(light: str, dark: str, alt: str) -> str:
    """A picture in HTML that follows the reader's colour scheme; ``light`` and ``dark`` are its files."""
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img alt="{alt}" src="{light}"></picture>'
    )


def paragraph(text: str, indent: str = "") -> str:
    """Text in lines of at most 120 characters; ``indent`` begins every line but the first."""
    lines = textwrap.wrap(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


_MARKS = {"\\": "\\\\", "|": "\\|", "<": "&lt;", "&": "&amp;", "`": "\\`", "[": "\\["}


def md(value: str) -> str:
    """Text with Markdown's special characters escaped, so that it is shown unchanged."""
    return "".join(_MARKS.get(c, c) for c in one_line(value))


def _code(command: str) -> str:
    return f"`{one_line(command).replace('`', ' ')}`"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


# --- latex --------------------------------------------------------------------------------------------------------
_TEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "->": r"$\to$",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
}


def tex(value: str) -> str:
    """Text with LaTeX's special characters escaped, so that it is printed unchanged."""
    value = one_line(value).replace("->", "\0")
    return "".join(_TEX["->"] if c == "\0" else _TEX.get(c, c) for c in value)


def latex(filled: Filled) -> str:
    """A table environment: one tabular per group; a column is two (ours, published) if any number is published."""
    out = [
        "% needs the packages booktabs and graphicx",
        r"\begin{table}",
        r"\centering\footnotesize",
        rf"\caption{{{tex(heading(filled))}}}",
    ]
    out.append(rf"\label{{tab:{re.sub(r'[^0-9A-Za-z.:-]', '-', filled.table.name)}}}")
    for group in filled.groups:
        out += _latex_group(filled, group)
    notes = [tex(remark) for remark, command in remarks(filled) if not command]
    if notes:
        out.append(r"\par\medskip\parbox{\linewidth}{\scriptsize " + r"\\ ".join(notes) + "}")
    return "\n".join([*out, r"\end{table}"]) + "\n"


def _latex_group(filled: Filled, group: Group) -> list[str]:
    """One group as a tabular."""
    pairs = filled.has_published
    wide = (2 if pairs else 1) * len(group.columns)
    tops = [rf"\multicolumn{{2}}{{c}}{{{tex(c)}}}" if pairs else tex(c) for c in group.columns]
    out = [r"\par\medskip", rf"\resizebox{{\linewidth}}{{!}}{{\begin{{tabular}}{{lrr*{{{wide}}}{{l}}}}", r"\toprule"]
    if group.name:
        out += [rf"\multicolumn{{{3 + wide}}}{{l}}{{\textbf{{{tex(group.name)}}}}} \\", r"\midrule"]
    out += [" & ".join(["model", "params", "ms", *tops]) + r" \\"]
    out += [" & ".join(["", "", "", *["ours", "paper"] * len(group.columns)]) + r" \\"] if pairs else []
    out += [r"\midrule"]
    for row in group.rows:
        ms = group.inference_ms(row)
        cells = [tex(row), count(group.parameters(row)), "" if ms is None else number(ms)]
        for column in group.columns:
            entry = group.entries.get((row, column))
            ours = "" if entry is None else tex(measured(entry))
            cells.append(rf"\textbf{{{ours}}}" if is_best(filled, group, row, column) else ours)
            cells += ["" if entry is None else tex(published(entry))] if pairs else []
        out.append(" & ".join(cells) + r" \\")
    numbers = problem_lines(group)
    out += [r"\midrule"] if numbers else []
    for name, texts in numbers:
        words = [word for text in texts for word in ((tex(text), "") if pairs else (tex(text),))]
        out.append(" & ".join([rf"\emph{{{name}}}", "", "", *words]) + r" \\")
    return [*out, r"\bottomrule", r"\end{tabular}}"]


# --- html ---------------------------------------------------------------------------------------------------------
def html(filled: Filled) -> str:
    """A section of HTML with one table per group; ``data-sort`` is the value by which a column is sorted."""
    out = [f'<section class="result" id="{escape(filled.table.name)}">', f"<h2>{escape(heading(filled))}</h2>"]
    out.append(f'<p class="source">{escape(_sentence(source(filled)))}</p>')
    for group in filled.groups:
        out += _html_group(filled, group)
    out.append('<ul class="notes">')
    for remark, command in remarks(filled):
        out.append(f"<li>{escape(remark)}{f' <code>{escape(command)}</code>' if command else ''}</li>")
    return "\n".join([*out, "</ul>", "</section>"]) + "\n"


def _html_group(filled: Filled, group: Group) -> list[str]:
    """One group as a table of HTML."""
    out = ['<table class="sortable">']
    if group.name:
        out.append(f"<caption>{escape(group.name)}</caption>")
    columns = "".join(f'<th scope="col">{escape(c)}</th>' for c in group.columns)
    out.append(f'<thead><tr><th scope="col">model</th><th scope="col">parameters</th><th scope="col">ms</th>{columns}')
    out += ["</tr></thead>", "<tbody>"]
    for row in group.rows:
        parameters, ms = group.parameters(row), group.inference_ms(row)
        cells = [f'<th scope="row" data-sort="{escape(row)}">{escape(row)}</th>']
        cells += [_td(parameters, count(parameters)), _td(ms, "" if ms is None else number(ms))]
        cells += [_html_cell(filled, group, row, column) for column in group.columns]
        out.append(f"<tr>{''.join(cells)}</tr>")
    out.append("</tbody>")
    if numbers := problem_lines(group):
        lines = (
            f'<tr><th scope="row">{name}</th><td></td><td></td>{"".join(f"<td>{text}</td>" for text in texts)}</tr>'
            for name, texts in numbers
        )
        out.append(f'<tfoot class="problem">{"".join(lines)}</tfoot>')
    return [*out, "</table>"]


def _html_cell(filled: Filled, group: Group, row: str, column: str) -> str:
    """Our number, in bold if it is the best, and the published one; the title has p-value and missing runs."""
    entry = group.entries.get((row, column))
    if entry is None:
        return _td(None, "")
    best = is_best(filled, group, row, column)
    found = filled.significance.get((group.name, column)) if best else None
    title = f"{probability(found[0])} against {found[1]}" if found else ""
    if entry.missing:
        title = "; ".join(word for word in (title, f"{entry.missing} runs missing: {entry.command}") if word)
    inner = f"<strong>{escape(measured(entry))}</strong>" if best else escape(measured(entry))
    if other := " ".join(filter(None, (published(entry), multiple(entry)))):
        inner += f' <small class="published">{escape(other)}</small>'
    return _td(entry.mean, inner, title, raw=True, kind="best" if best else "")


def _td(value: float | None, inner: str, title: str = "", *, raw: bool = False, kind: str = "") -> str:
    """A cell of an HTML table that is sorted by ``value``; with ``raw`` the text is HTML already."""
    key = "" if value is None or not math.isfinite(value) else f"{value:.10g}"
    extra = (f' class="{kind}"' if kind else "") + (f' title="{escape(title)}"' if title else "")
    return f'<td data-sort="{key}"{extra}>{inner if raw else escape(inner)}</td>'
