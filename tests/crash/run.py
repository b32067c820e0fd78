"""``python tests/crash/run.py``: interrupt every modifying call of every writing command, and type the command again.

    --every N      every N-th call only (1: all)
    --only NAMES   some commands, with commas
    --modes NAMES  some kinds of interruption, with commas
    --write FILE   write the table into the marked section of this file
    --json         print the rows as JSON

Everything is imported once; each interruption happens in a child of this process.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("SPDEBENCH_COMMIT", "0123456789")  # the code may be edited while this runs
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from commands import COMMANDS, Command
from disk import KILLED, MODES, Disk

from spdebench import tensors
from spdebench.errors import UserError
from spdebench.report.markup import md_table

OPEN, CLOSE = "<!-- crash -->", "<!-- /crash -->"
TIMES = {"seconds", "training_seconds", "inference_ms", "peak_memory_mb", "started"}  # differ from run to run


@dataclass
class Row:
    """What became of the interruptions of one command; ``details`` names those that went wrong."""

    command: str
    calls: int
    points: Counter[str] = field(default_factory=Counter)
    same: int = 0
    leftovers: int = 0
    tracebacks: int = 0
    details: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.points.values())

    @property
    def good(self) -> bool:
        return self.same == self.total and not self.leftovers and not self.tracebacks


def child(folder: Path, work: Callable[[], object], disk: Disk | None = None) -> tuple[int, str]:
    """Exit code and output of ``work`` in a child process, on a disk that fails."""
    said = folder.parent / "said.txt"
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            os.chdir(folder)
            descriptor = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            if disk:
                disk.install()
            try:
                work()
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 0
            except UserError as error:
                code = 2
                sys.stderr.write(f"error: {error}\n")
            except BaseException:
                import traceback

                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            if disk and not disk.mode:
                (folder.parent / "log.json").write_text(json.dumps(disk.log))
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), said.read_text(errors="replace")


# --- what must come out -----------------------------------------------------------------------------------------------
def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(inner) for key, inner in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [timeless(inner) for inner in value]
    return value.numpy().tobytes() if isinstance(value, torch.Tensor) else value


def content(path: Path) -> Any:
    """The bytes of a file; without measured times where it has any."""
    if path.name == "lock":
        return ""
    if path.suffix == ".safetensors":
        return timeless(tensors.load(path))
    if path.suffix == ".jsonl":
        return [timeless(json.loads(line)) for line in path.read_text().splitlines()]
    return timeless(json.loads(path.read_text())) if path.suffix == ".json" else path.read_bytes()


def tree(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        try:
            found[name] = "folder" if path.is_dir() else content(path)
        except ValueError as error:
            found[name] = f"unreadable: {error}"
    return found


# --- one command ------------------------------------------------------------------------------------------------------
def crash(command: Command, every: int, modes: tuple[str, ...]) -> Row:
    with tempfile.TemporaryDirectory() as place:
        base, work = Path(place, "base"), Path(place, "work")
        base.mkdir()
        code, said = child(base, command.prepare)
        assert code == 0, said
        _warm_up(command, base, Path(place, "warm"))
        shutil.copytree(base, work)
        code, said = child(work, command.run, Disk(work))
        assert code == 0, said
        calls = json.loads(Path(place, "log.json").read_text())
        wanted, row = tree(work), Row(command.name, len(calls))
        for at in range(0, len(calls), every):
            for mode in modes:
                if mode != "torn write" or calls[at] == "write":
                    row.points[mode] += 1
                    _interrupt(command, base, work, mode, at, wanted, row, calls[at])
    return row


def _warm_up(command: Command, base: Path, place: Path) -> None:
    """Run the command here once, so that children find everything imported."""
    shutil.copytree(base, place)
    before = os.getcwd()
    os.chdir(place)
    try:
        with suppress(SystemExit), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            command.run()
    finally:
        os.chdir(before)


def _interrupt(
    command: Command, base: Path, work: Path, mode: str, at: int, wanted: dict[str, Any], row: Row, call: str
) -> None:
    """Disturb one call, type the command again, and compare."""
    shutil.rmtree(work)
    shutil.copytree(base, work)
    code, said = child(work, command.run, Disk(work, mode, at))
    if mode.startswith("power cut") and code == KILLED:
        shutil.rmtree(work)
        Path(f"{work}.after").rename(work)
    again, more = child(work, command.run)
    found = tree(work)
    left = [name for name in found if name not in wanted and ".damaged" not in name]
    same = again == 0 and all(found.get(name) == value for name, value in wanted.items())
    traced = "Traceback" in said + more
    row.same += same
    row.leftovers += bool(left)
    row.tracebacks += traced
    if left or traced or not same:
        differ = [name for name, value in wanted.items() if found.get(name) != value]
        tail = (said + more).strip().splitlines()[-1:] if traced or again else []
        where = f"{command.name}, {mode} at {at} ({call})"
        row.details.append(f"{where}: left {left}, differ {differ}, exit {code}/{again} {tail}")


def table(rows: list[Row], modes: tuple[str, ...]) -> str:
    header = ["command", "modifying calls", *modes, "the same bytes after the rerun", "leftovers", "tracebacks"]
    lines = [
        [f"`{r.command}`", str(r.calls), *(str(r.points[m]) for m in modes), f"{r.same} of {r.total}",
         str(r.leftovers), str(r.tracebacks)]
        for r in rows
    ]  # fmt: skip
    return md_table(header, lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--modes", default="")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    modes = tuple(m for m in MODES if not options.modes or any(w in m for w in options.modes.split(",")))
    chosen = [c for c in COMMANDS if not options.only or c.name in options.only.split(",")]
    rows = []
    for command in chosen:
        start = time.monotonic()
        rows.append(crash(command, options.every, modes))
        took = time.monotonic() - start
        sys.stderr.write(f"{command.name}: {rows[-1].same} of {rows[-1].total} the same, {took:.0f} s\n")
        sys.stderr.writelines(f"  {line}\n" for line in rows[-1].details[:8])
    text = table(rows, modes)
    print(json.dumps([vars(row) for row in rows]) if options.json else text)
    if options.write:
        before = options.write.read_text(encoding="utf-8")
        head, rest = before.split(OPEN)
        options.write.write_text(f"{head}{OPEN}\n{text}\n{CLOSE}{rest.split(CLOSE)[1]}", encoding="utf-8")
    return int(not all(row.good for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
