"""What drills stand on: commands in a folder of their own, ways to disturb them, and what must come out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ray_cluster import command_of, descendants

HERE = Path(__file__).resolve().parent
GENERATE = ("generate", "phi41", "truncation=32", "-n", "48", "--chunk", "4")
SAMPLES, CHUNKS = 4, 12
TABLE = ("table", "three", "--run", "--seeds", "2")
RUNS = 6


def _unless_done(finished: Callable[[], bool]) -> Callable[[], bool] | None:
    """A worker between two units has none in hand."""
    return None if finished() else finished


@dataclass
class Scene:
    """A folder with ``data``, ``runs``, ``results``; commands run there with chunks of ``chunk`` seconds at least and
    epochs of ``epoch``."""

    folder: Path
    chunk: float = 0.4
    epoch: float = 0.05
    clock: float = 0.0
    environment: dict[str, str] = field(default_factory=dict)
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "spdebench", "--with", str(HERE.parent / "three_models.py")]
        clean = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
        self.folder.mkdir(exist_ok=True)
        process = subprocess.Popen(
            [*command, "--with", str(self._slowly()), *words],
            cwd=self.folder, env={**clean, **self.environment, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.running.append(process)
        return process

    def _slowly(self) -> Path:
        """`slowly.py` with the settings of this scene."""
        settings = {"chunk": self.chunk, "epoch": self.epoch, "clock": self.clock, "notes": str(self._notes)}
        text = (HERE / "slowly.py").read_text()
        path = self.folder.parent / f"{self.folder.name}_slowly.py"
        path.write_text(text.replace("SETTINGS: dict[str, Any] = {}", f"SETTINGS = {settings!r}"))
        return path

    @property
    def _notes(self) -> Path:
        return self.folder.parent / f"{self.folder.name}.notes"

    def finish(self, process: subprocess.Popen[str], code: int = 0, patience: float = 300.0) -> str:
        """Its output, after it ended as it should."""
        out, errors = process.communicate(timeout=patience)
        assert process.returncode == code, f"exit {process.returncode}: {out[-500:]} {errors[-2000:]}"
        assert "Traceback" not in errors, errors
        return out + errors

    def close(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.kill()
                process.communicate()

    # --- how far it is --------------------------------------------------------------------------------------------
    def chunks(self) -> list[Path]:
        return sorted((self.folder / "data").glob(".*.parts/chunk-*.f4"))

    def lines(self) -> list[dict[str, Any]]:
        """Whole records, as they were appended."""
        found = []
        for path in (self.folder / "results").glob("*.jsonl"):
            found += [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
        return [line for line in found if "datasets" in line]

    def notes(self) -> Counter[str]:
        """How often each chunk was solved, and epochs were trained."""
        return Counter(line for line in self._lines_of_notes() if not line.startswith("began"))

    def _lines_of_notes(self) -> list[str]:
        return self._notes.read_text().splitlines() if self._notes.exists() else []

    def run_in_hand(self, pid: int) -> Callable[[], bool] | None:
        """The run that a worker makes now; the function tells whether it is in the records."""
        locks = [p for p in (self.folder / "runs").glob("*/lock") if f'"pid": {pid},' in p.read_text()]
        if not locks:
            return None
        digest = locks[0].parent.name.rpartition("-")[2]
        return _unless_done(lambda: any(line["digest"] == digest for line in self.lines()))

    def chunk_in_hand(self, pid: int) -> Callable[[], bool] | None:
        """The chunk that a worker solves now; the function tells whether it is written."""
        began = [line.split() for line in self._lines_of_notes() if line.endswith(f" in {pid}")]
        if not began:
            return None
        name = f"chunk-{int(began[-1][2]) // SAMPLES:06d}.f4"
        return _unless_done(lambda: any(p.name == name for p in self.chunks()) or self.units() > CHUNKS)

    def units(self) -> int:
        """Chunks, files and records that are finished."""
        files = len(list((self.folder / "data").glob("*.parquet")))
        return len(self.chunks()) + (CHUNKS + 1) * files + len(self.lines())

    def until(
        self, true: Callable[[], Any], process: subprocess.Popen[str] | None = None, patience: float = 180
    ) -> Any:
        """Wait for something to become true while a process runs."""
        limit = time.monotonic() + patience
        while not (value := true()):
            assert process is None or process.poll() is None, process.communicate()
            assert time.monotonic() < limit, "it takes too long"
            time.sleep(0.02)
        return value

    def recovered(self, finished: Callable[[], bool]) -> float:
        """Seconds from now until it is finished."""
        start = time.monotonic()
        self.until(finished)
        return time.monotonic() - start

    def next_unit(self) -> Callable[[], bool]:
        """Tells whether more is finished than now."""
        before = self.units()
        return lambda: self.units() > before

    def workers(self, process: subprocess.Popen[str]) -> list[int]:
        """Worker processes of a local driver."""
        return [pid for pid in descendants(process.pid) if "spawn_main" in command_of(pid)]

    # --- what must come out ---------------------------------------------------------------------------------------
    def file(self) -> bytes:
        (path,) = (self.folder / "data").glob("*-n48-*.parquet")
        left = [p.name for p in (self.folder / "data").iterdir() if p.suffix in (".tmp", ".parts")]
        assert not left, left
        return path.read_bytes()

    def scores(self) -> dict[str, Any]:
        """By digest; a run that was added twice is an error."""
        lines = self.lines()
        digests = Counter(line["digest"] for line in lines)
        assert len(digests) == RUNS and set(digests.values()) == {1}, digests
        keys = ("val", "best_epoch", "epochs", "scores", "samples")
        return {line["digest"]: {key: line[key] for key in keys} for line in lines}
