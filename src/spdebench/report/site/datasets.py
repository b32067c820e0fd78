"""Pages of datasets: spec, reference errors, models, pictures and card."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from spdebench.data import Dataset
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.files import read_text
from spdebench.metrics import metric_title
from spdebench.records.summary import MAIN, mean_and_std
from spdebench.report import formatting
from spdebench.report.board import BoardRow, Leaderboard, problems_of, values_by_name
from spdebench.report.board.shown import ShownDataset
from spdebench.report.costs import Kind, Point, plot_cost
from spdebench.report.figures import KINDS
from spdebench.report.site import charts
from spdebench.report.site.board_pages import ROWS
from spdebench.report.site.content import Content
from spdebench.report.site.render import Drawing, Page, Templates, draw

PICTURES: dict[str, dict[str, Any]] = {"noise": {"samples": 2}, "solution": {"samples": 2}, "statistics": {}}


def dataset_pages(content: Content, templates: Templates) -> Iterator[Page]:
    """The list of datasets, and a page for each."""
    yield _datasets(content, templates)
    for data in content.datasets.values():
        yield _dataset(content, templates, data)


def _datasets(content: Content, templates: Templates) -> Page:
    """The list of all datasets."""
    used = [data.key for run in content.own_runs for data in run.datasets]
    entries = [
        {"data": data, "runs": used.count(key), "file": key in content.files} for key, data in content.datasets.items()
    ]
    return templates.render(
        "datasets.html", "datasets/index.html", "Datasets", "Datasets", script=True, entries=entries,
        choices=values_by_name(data.choices for data in content.datasets.values()), unread=content.unread,
    )  # fmt: skip


def _dataset(content: Content, templates: Templates, data: ShownDataset) -> Page:
    """The page of one dataset."""
    file = content.files.get(data.key)
    rows = [row for row in content.rows if any(d.key == data.key for d in row.first.datasets)]
    alone = [row for row in rows if len(row.first.datasets) == 1]
    card = formatting.markdown(_card_text(file)) if file else []
    tables = [body for kind, body in card if kind == "table" and body["head"][-1:] == ["distance"]]
    identity = {key: value for key, value in formatting.flat(data.identity).items() if key != "times"}
    known = data.known
    return templates.render(
        "dataset.html", f"datasets/{data.key}.html", "Datasets", data.label, script=True, data=data, equation=known,
        aliasing=known.aliasing_message() if known else "",
        spec={formatting.text(key): formatting.text(value) for key, value in identity.items()},
        mean=_mark(row for row in alone if row.first.record.model == "mean"),
        finer=_mark(row for row in alone if row.first.solver), main=MAIN, floor=tables[0] if tables else None,
        file=file.path.name if file else None, card_name=_card_path(file).name if file else None,
        board=Leaderboard(problems_of(rows[:ROWS])), charts=_compare(alone, data.label), card=card,
        pictures=_pictures(file) if file else [],
    )  # fmt: skip


def _mark(rows: Iterable[BoardRow]) -> str | None:
    """The main score of the first of these rows."""
    found = next((row.scores[MAIN] for row in rows if MAIN in row.scores), None)
    return mean_and_std(found.mean, found.std) if found else None


def _compare(rows: Sequence[BoardRow], label: str) -> list[Drawing]:
    """For the problem with the most rows: the scores of all models, and error against time."""
    problems: dict[str, list[BoardRow]] = {}
    for row in rows:
        score = row.scores.get(MAIN)
        if score and math.isfinite(score.mean):
            problems.setdefault(row.first.problem, []).append(row)
    if not problems or len(largest := max(problems.values(), key=len)) < 2:
        return []
    points = [_point(row) for row in largest[:40]]
    title = f"{label}, {largest[0].inputs}"
    caption = f"All models on the test part by {metric_title(MAIN)}, best on top."
    out = [draw(charts.plot_ranking(points, MAIN, title), "ranking", caption)]
    timed = [point for point in points if point.time]
    if len(timed) > 1:
        caption = f"Test {MAIN} against inference time by the paper's protocol; the batched solver is timed likewise."
        out.append(draw(plot_cost(timed, MAIN, title), "cost", caption))
    return out


def _point(row: BoardRow) -> Point:
    """A row as a point of the figures: its scores and its time."""
    kind: Kind = "solver" if row.first.reference else "baseline" if row.first.baseline else "model"
    values = tuple(run.scores[MAIN].value for run in row.runs if MAIN in run.scores)
    time = row.inference_ms
    return Point(row.label, values, kind, time if time and math.isfinite(time) and time > 0 else None)


def _card_path(file: Dataset) -> Path:
    return file.path.with_suffix(".md")


def _card_text(file: Dataset) -> str:
    """The card next to a dataset file; empty if there is none."""
    try:
        return read_text(_card_path(file))
    except (OSError, UnicodeDecodeError):
        return ""


def _pictures(file: Dataset) -> list[Drawing]:
    """Pictures of the noise, the solution and its statistics."""
    out = []
    with without_aliasing_warning():  # the page states the aliasing itself
        for kind, options in PICTURES.items():
            plot, line = KINDS[kind]
            with suppress(UserError, MemoryError):  # a file that asks for too much has no such picture
                out.append(draw(plot(file, **options), kind, f"{kind}: {line}"))
    return out
