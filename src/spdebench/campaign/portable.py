"""A folder that carries a campaign to another machine: the records of the runs made here, and unfinished small runs.

    records.jsonl                 one line for each finished run of the folder of runs
    unfinished.json               name -> spec and log of each unfinished run whose checkpoint is here
    NAME.last.safetensors         its last checkpoint: weights, best weights and Adam's moments, 16 bytes per parameter
    NAME.best.safetensors         the weights of a run that is trained but not tested yet

`export` may be called at any time, also while runs are being made: each file is written whole. `merge` adds the records
and puts the checkpoints where the same campaign continues them.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spdebench.errors import UserError
from spdebench.files import MOST_LINES, plain_name, read_bytes, replacing, user_text, write_text
from spdebench.records import Record, Records, store
from spdebench.spec import loads
from spdebench.training import checkpoints
from spdebench.training.folder import checkpoint_file, locked, read_json, read_log, read_record, write_json
from spdebench.training.identity import RunSpec
from spdebench.training.identity import from_dict as run_spec

RECORDS = "records.jsonl"
UNFINISHED = "unfinished.json"
SMALL_MODEL = 1_000_000
"""Parameters of the largest model whose unfinished run is carried on; larger runs only start if they can end."""
LARGEST_CHECKPOINT = 18 * SMALL_MODEL
"""Bytes of the largest checkpoint that is exported: 16 per parameter and the log."""
SHORTEST_PAUSE = 5.0
"""Seconds between two exports while runs are made; more after an export that took longer than half a second."""


@dataclass(frozen=True)
class Moved:
    """The numbers of records and unfinished runs that were exported or merged."""

    records: int
    unfinished: int


def export(folder: str | Path, known: Records, runs: str | Path) -> Moved:
    """Write all that another machine needs into ``folder``; an earlier export there is replaced.

    ``known`` are the records of the folder of results. A run that cannot be read is left out with a warning.
    """
    place = Path(folder)
    lines: list[str] = []
    unfinished: dict[str, dict[str, Any]] = {}
    wanted: set[str] = {RECORDS, UNFINISHED}
    for run in sorted(p for p in Path(runs).glob("*") if p.is_dir()):
        try:
            record = _record_of(run, known)
            begun = None if record else _begun(run)
        except UserError as error:
            warnings.warn(f"{run.name} is not exported: {error}", stacklevel=2)
            continue
        if record:
            lines.append(json.dumps(record.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n")
        elif begun:
            entry, content = begun
            with replacing(place / entry["file"]) as temporary:
                temporary.write_bytes(content)
            unfinished[run.name] = entry
            wanted.add(entry["file"])
    write_text(place / RECORDS, "".join(lines))
    write_text(place / UNFINISHED, json.dumps(unfinished, indent=1) + "\n")
    for old in place.glob("*.safetensors"):
        if old.name not in wanted:  # the run has ended since the last export
            old.unlink(missing_ok=True)
    return Moved(len(lines), len(unfinished))


class PeriodicExport:
    """A context in which a folder is exported to again and again, for at most a tenth of the time, and at its end.

    A thread does it, so that the checkpoints of a run that trains for long are there too, and that no run waits for it:
    the machine may be lost at any moment. ``known`` may change meanwhile. If an export fails, a warning says so once,
    and the next one is tried.
    """

    def __init__(self, folder: str | Path, known: Records, runs: str | Path) -> None:
        self.folder, self.known, self.runs = folder, known, runs
        self._ended = threading.Event()
        self._warned = False
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def __enter__(self) -> PeriodicExport:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()
        self._export()

    def _repeat(self) -> None:
        pause = SHORTEST_PAUSE
        while not self._ended.wait(pause):
            start = time.monotonic()
            self._export()
            pause = max(SHORTEST_PAUSE, 9 * (time.monotonic() - start))

    def _export(self) -> None:
        try:
            export(self.folder, self.known, self.runs)
        except (OSError, UserError) as error:
            if not self._warned:
                warnings.warn(f"nothing was exported to {self.folder}: {error}", stacklevel=2)
            self._warned = True


def _record_of(run: Path, known: Records) -> Record | None:
    """The run's record as the folder of records holds it (with times and further scores), or its own."""
    if not (run / "record.json").is_file():
        return None
    record = read_record(run / "record.json")
    return known.get(record.digest, record)


def _begun(run: Path) -> tuple[dict[str, Any], bytes] | None:
    """The entry of an unfinished run in `UNFINISHED`, and its checkpoint; None if there is nothing to export."""
    try:
        if (checkpoint := _checkpoint(run)) is None:
            return None
        spec = run_spec(read_json(run / "spec.json"), str(run))
        content = read_bytes(checkpoint, MOST_LINES)
    except FileNotFoundError:  # the run has ended just now; the next export has its record
        return None
    file = f"{run.name}.{checkpoint.stem}.safetensors"
    return {"spec": spec.to_dict(), "log": read_log(run / "log.jsonl"), "file": file}, content


def _checkpoint(run: Path) -> Path | None:
    """The checkpoint of an unfinished run; None if there is none or if it is too large to be exported."""
    for name in ("best", "last"):
        path = checkpoint_file(run, name)
        if path.suffix == ".safetensors" and path.is_file() and (run / "spec.json").is_file():
            return path if path.stat().st_size <= LARGEST_CHECKPOINT else None
    return None


def merge(folder: str | Path, results: str | Path, runs: str | Path) -> Moved:
    """Add the records of an exported folder, and put its checkpoints into the folder of runs.

    A run that this machine has finished or trained further stays as it is.
    """
    place = Path(folder)
    if not (place / RECORDS).is_file() or not (place / UNFINISHED).is_file():
        raise UserError(f"{place} holds no {RECORDS} and {UNFINISHED}; give the folder that table --portable wrote")
    unfinished = list(_unfinished(place))  # all are checked before anything is written
    records = list(_records(place / RECORDS))
    store.check_writable(results)
    added = sum(store.add(results, record) for record in records)
    known = store.read(results)
    taken = 0
    for spec, log, source in unfinished:
        target = Path(runs) / spec.name
        if spec.digest in known or (target / "record.json").exists():
            continue
        with locked(target):
            taken += _copy_run(spec, log, source, target)
    return Moved(added, taken)


def _records(path: Path) -> Iterator[Record]:
    for number, line in enumerate(user_text(path, MOST_LINES).splitlines(), start=1):
        try:
            yield Record.from_dict(loads(line))
        except (ValueError, UserError) as error:
            raise UserError(f"{path}, line {number}, is not a run record ({error}); export the folder again") from None


def _unfinished(place: Path) -> Iterator[tuple[RunSpec, list[dict[str, Any]], Path]]:
    entries = read_json(place / UNFINISHED)
    if not isinstance(entries, dict):
        raise UserError(f"{place / UNFINISHED} is damaged; export the folder again")
    for name, entry in entries.items():
        try:
            spec, log, file = run_spec(entry["spec"], name), list(entry["log"]), plain_name(entry["file"], "a file")
        except (KeyError, TypeError):
            raise UserError(f"{place / UNFINISHED}: {name} is damaged; export the folder again") from None
        if spec.name != name or file not in (f"{name}.last.safetensors", f"{name}.best.safetensors"):
            raise UserError(f"{place / UNFINISHED}: {name} is not the run {spec.name}; export the folder again")
        try:
            checkpoints.load(place / file, spec.digest)
        except (UserError, OSError):  # it is damaged, missing or of another run
            raise UserError(
                f"{place / file} is damaged or missing; nothing was merged, copy the folder again"
            ) from None
        yield spec, log, place / file


def _copy_run(spec: RunSpec, log: list[dict[str, Any]], source: Path, target: Path) -> bool:
    """Copy one unfinished run unless the local one is further advanced; to be called under its lock."""
    kind = source.name.split(".")[-2]
    if checkpoint_file(target, "best").exists():
        return False
    if checkpoint_file(target, "last").exists() and kind == "last" and len(read_log(target / "log.jsonl")) >= len(log):
        return False
    write_json(target / "spec.json", spec.to_dict())
    with replacing(target / f"{kind}.safetensors") as temporary:
        shutil.copyfile(source, temporary)
    write_text(target / "log.jsonl", "".join(json.dumps(entry) + "\n" for entry in log))
    return True
