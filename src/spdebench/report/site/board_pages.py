"""Pages of the leaderboard: problems of one equation, at most `ROWS` rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spdebench.report.board import Problem
from spdebench.report.formatting import slug

ROWS = 200  # rows of a board on one page: about 200 kB


@dataclass(frozen=True)
class BoardPage:
    """A page of the leaderboard."""

    name: str
    path: str
    problems: Sequence[Problem]


def board_pages(problems: Sequence[Problem]) -> list[BoardPage]:
    """Pages for one equation each. A problem is cut only where it is longer than a page."""
    found = []
    for equation in dict.fromkeys(problem.equation for problem in problems):
        parts: list[list[Problem]] = [[]]
        for problem in problems:
            for k in range(0, len(problem.rows) if problem.equation == equation else 0, ROWS):
                piece = Problem(problem.rows[k : k + ROWS])
                if parts[-1] and sum(len(p.rows) for p in (*parts[-1], piece)) > ROWS:
                    parts.append([])
                parts[-1].append(piece)
        for k, part in enumerate(parts):
            name = equation if len(parts) == 1 else f"{equation}, part {k + 1} of {len(parts)}"
            found.append(BoardPage(name, f"boards/{slug(equation)}{f'-{k + 1}' if k else ''}.html", part))
    return found
