"""The leaderboard, as the site and ``spdebench leaderboard`` show it: runs and submissions together, by problem.

shown        records and submissions as runs that can be compared
rows         runs that differ only in their seed are one row
problems     rows of the same data and task, with the floor
ranking      names of variants, ranks and the best
leaderboard  problems in words, and the values by which a reader can filter them
listing      the rows of a problem of a suite as text, Markdown, CSV and JSON
"""

from spdebench.report.board.leaderboard import Leaderboard, values_by_name
from spdebench.report.board.problems import Problem, problems_of
from spdebench.report.board.ranking import rows_of
from spdebench.report.board.rows import BoardRow
from spdebench.report.board.shown import ShownDataset, ShownRun, shown_runs
from spdebench.report.board.submitted import shown_submissions

__all__ = [
    "BoardRow",
    "Leaderboard",
    "Problem",
    "ShownDataset",
    "ShownRun",
    "problems_of",
    "rows_of",
    "shown_runs",
    "shown_submissions",
    "values_by_name",
]
