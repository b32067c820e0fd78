"""A sample of `make crash`: commands on a disk that fails; the table of all points is in docs/security.md."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COMMANDS = (
    "generate",
    "train",
    "evaluate",
    "predict",
    "data card",
    "data export",
    "data import",
    "data push",
    "model push",
    "plot",
    "challenge make",
    "challenge predict",
    "challenge score",
    "records",
    "report",
)


def interrupted(*words: str) -> list[dict]:
    command = [sys.executable, str(HERE / "run.py"), "--json", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_some_interruptions_of_a_generation_and_of_records():
    rows = interrupted("--only", "generate,records", "--every", "11", "--modes", "lost,EIO")
    assert [row["command"] for row in rows] == ["generate", "records"]
    assert all(row["same"] == sum(row["points"].values()) > 3 for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_every_interruption(name):
    assert interrupted("--only", name)


def test_the_simulated_disk_forgets_what_was_not_synced(tmp_path):
    """So that the comparison can fail: a file that is renamed without a sync is empty after the power cut."""
    script = (
        "import os, sys; from pathlib import Path; sys.path.insert(0, sys.argv[2]); from disk import Disk\n"
        "root = Path(sys.argv[1]); root.mkdir(); os.chdir(root); disk = Disk(root, 'power cut, names kept', 7)\n"
        "disk.install()\n"
        "file = open('a', 'w'); file.write('1'); file.flush(); os.fsync(file.fileno()); file.close()\n"
        "file = open('b', 'w'); file.write('2'); file.close(); os.rename('b', 'c'); os.mkdir('d'); os.mkdir('e')"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "x"), str(HERE)], check=False)
    after = tmp_path / "x.after"
    assert done.returncode == 137 and (after / "a").read_text() == "1" and (after / "c").read_text() == ""
    assert sorted(p.name for p in after.iterdir()) == ["a", "c", "d"]
