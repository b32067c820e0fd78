"""Write the site: gather records, run folders and data files, make pages in a new folder, replace the old site."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spdebench.challenge import submissions as read_submissions
from spdebench.data import Dataset, open_dataset
from spdebench.errors import UserError
from spdebench.files import read_text, replacing_folder
from spdebench.paper.catalogue import TABLES
from spdebench.paper.fill import fill
from spdebench.progress import Progress
from spdebench.records import Record, Records
from spdebench.records.store import read
from spdebench.report.board import shown_runs, shown_submissions
from spdebench.report.board.shown import pilots_of
from spdebench.report.formatting import fingerprint, page_name
from spdebench.report.site.content import Content
from spdebench.report.site.pages import pages
from spdebench.spec import loads
from spdebench.training.folder import read_record

Where = str | os.PathLike[str]
MARKER = ".spdebench-site"
"""The file that marks a folder as a site of ours; it lists all files that were written."""


def build_site(
    results: Where | Records,
    out: Where = "site",
    runs: Where | None = None,
    data: Where | None = None,
    *,
    submissions: Where | None = None,
    progress: bool | None = None,
) -> Path:
    """Write the site of all run records into the folder ``out`` and return its first page.

    ``results`` is the folder of collected records, or the records themselves by digest. ``runs`` (run folders: learning
    curves, predictions, and records that were not collected), ``data`` (dataset files: pictures) and ``submissions``
    (folders of submissions: rows of the leaderboard) are optional. The same records give the same bytes. An existing
    folder is replaced only if it is such a site.
    """
    target = Path(out).resolve()
    _check_target(target, Path(out))
    content = gather(results, runs, data, submissions)
    return write_site(content, target, progress=progress) if content.runs or content.datasets else _nothing(results)


def _nothing(results: Any) -> Path:
    where = "" if isinstance(results, Mapping) else f" in '{os.fspath(results)}'"
    raise UserError(f"no run records{where}; collect some with 'spdebench train' or 'spdebench table NAME --run'")


# --- the content --------------------------------------------------------------------------------------------------
def gather(
    results: Where | Records, runs: Where | None, data: Where | None, submissions: Where | None = None
) -> Content:
    """Records, folders of runs and files of datasets. Tables are filled from collected records only."""
    collected = dict(results) if isinstance(results, Mapping) else read(results)
    folders, local = _run_folders(runs)
    files, unread = data_files(data)
    tables = [fill(table, collected) for table in TABLES] if collected else []
    shown = shown_runs({**local, **collected}, pilots_of(TABLES))
    entered = shown_submissions(read_submissions(submissions)) if submissions is not None else []
    return Content([*shown, *entered], folders, files, unread, tables, collected)


def _run_folders(runs: Where | None) -> tuple[dict[str, Path], dict[str, Record]]:
    """The finished runs of a folder: their folders by key, and their records by digest."""
    folders: dict[str, Path] = {}
    records: dict[str, Record] = {}
    for path in sorted(Path(runs).glob("*/record.json")) if runs is not None else []:
        try:
            record = read_record(path)
        except UserError:
            continue  # half-written, or not a record
        folders[page_name(record.digest)] = path.parent
        records[record.digest] = record
    return folders, records


def data_files(data: Where | None) -> tuple[dict[str, Dataset], dict[str, str]]:
    """The dataset files of a folder by key, and for files that cannot be shown the reason by file name."""
    files: dict[str, Dataset] = {}
    unread: dict[str, str] = {}
    for path in sorted(Path(data).glob("*.parquet")) if data is not None else []:
        try:
            found = open_dataset(path)
        except UserError as error:
            unread[path.name] = str(error).replace(str(path), "it")
            continue
        if found.imported or found.spec.members == 1:  # a file of members is shown with that of its samples
            files[fingerprint(found.identity)] = found
    return files, unread


# --- onto the disk ------------------------------------------------------------------------------------------------
def write_site(content: Content, target: Path, *, progress: bool | None = None) -> Path:
    """Write all pages into a new folder, which then replaces ``target``."""
    names = []
    try:
        with replacing_folder(target) as fresh, Progress(len(content), "pages", enabled=progress) as bar:
            for name, text in pages(content):
                path = fresh / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
                names.append(name)
                bar.advance(1, name)
            (fresh / MARKER).write_text(json.dumps({"files": sorted(names)}, indent=0) + "\n", encoding="utf-8")
    except OSError as error:
        line = f"cannot write {target} ({error.strerror or error}); choose another place with --out"
        raise UserError(line) from None
    return target / "index.html"


def _check_target(target: Path, asked: Path) -> None:
    """Refuse a folder with files that are not of a site of ours."""
    if target == Path.cwd() or target in Path.cwd().parents:
        raise UserError(
            f"'{asked}' is the folder you are in, or above it; give the site a folder of its own with --out"
        )
    if not target.exists():
        return
    if not target.is_dir():
        raise UserError(f"'{asked}' is a file; give the site a folder of its own with --out")
    present = {path.relative_to(target).as_posix() for path in target.rglob("*") if not path.is_dir()}
    if not present:
        return
    try:
        listed = loads(read_text(target / MARKER))["files"]
        written = {name for name in listed if name.endswith(".html")} | {MARKER}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"'{asked}' is not a site of spdebench; choose another folder with --out") from None
    if other := sorted(present - written):
        raise UserError(
            f"'{asked}' contains files that do not belong to the site ({other[0]}); move them, or use another --out"
        )
