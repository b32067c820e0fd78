"""Files that are whole, that survive a power cut, and whose temporary files disappear with those who wrote them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import spdebench as sb
from fake_records import dataset, record
from spdebench.errors import DamagedWarning, UserError
from spdebench.files import check_free_disk, existing_part, replacing, replacing_folder, write_text
from spdebench.records import store

TINY = sb.equation("phi41", points=16, truncation=8, steps=10, frames=10)


class Calls:
    """Notes which files and folders were synced, renamed and removed, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, str]] = []
        fsync, replace, unlink = os.fsync, os.replace, os.unlink

        def synced(descriptor: int) -> None:
            self.calls.append(("sync", os.readlink(f"/proc/self/fd/{descriptor}")))
            fsync(descriptor)

        def replaced(source, target) -> None:
            self.calls.append(("rename", f"{Path(source).absolute()} -> {Path(target).absolute()}"))
            replace(source, target)

        def removed(path, *, dir_fd=None) -> None:
            self.calls.append(("remove", str(path)))
            unlink(path, dir_fd=dir_fd)

        monkeypatch.setattr(os, "fsync", synced)
        monkeypatch.setattr(os, "replace", replaced)
        monkeypatch.setattr(os, "unlink", removed)

    def check(self, target: Path) -> None:
        """The content was synced before the file got its name, and its folder afterwards."""
        at, (_, names) = next(
            (k, call) for k, call in enumerate(self.calls) if call[0] == "rename" and call[1].endswith(f"-> {target}")
        )
        temporary = names.partition(" -> ")[0]
        assert ("sync", temporary) in self.calls[:at], f"{target} was renamed before it was synced"
        assert ("sync", str(target.parent)) in self.calls[at:], f"the folder of {target} was not synced"


def test_a_dataset_and_its_chunks_are_synced_before_the_chunks_are_removed(tmp_path, monkeypatch):
    calls = Calls(monkeypatch)
    path = sb.generate(TINY, n=6, chunk=3, out=tmp_path / "data")
    parts = path.with_name(f".{path.stem}.parts")
    for name in (path, parts / "chunk-000000.f4", parts / "chunk-000001.f4"):
        calls.check(name)
    first_removed = next(
        k for k, call in enumerate(calls.calls) if call[0] == "remove" and Path(call[1]).name.endswith(".f4")
    )
    assert ("sync", str(path.parent)) in calls.calls[:first_removed]
    assert ("sync", str(tmp_path)) in calls.calls  # the new folder "data" itself


def test_every_file_of_a_run_is_synced(tmp_path, monkeypatch):
    path = sb.generate(TINY, n=40, out=tmp_path)
    calls = Calls(monkeypatch)
    run = sb.train("mean", path, out=tmp_path / "runs")
    for name in ("spec.json", "best.safetensors", "scores.json", "predictions.npy", "record.json"):
        calls.check(run.file(name))
    store.add(tmp_path / "results", record("fno", dataset(8, 0.0)))
    assert ("sync", str(tmp_path / "results")) in calls.calls


@pytest.mark.parametrize("content", [b"", b"PAR1", None], ids=["empty", "cut off", "last byte changed"])
def test_a_damaged_dataset_is_set_aside_and_made_again(tmp_path, content):
    path = sb.generate(TINY, n=6, out=tmp_path)
    whole = path.read_bytes()
    damaged = whole[:-1] + b"?" if content is None else content
    path.write_bytes(damaged)
    with pytest.warns(DamagedWarning, match=r"is empty or damaged; it is kept as .*parquet.damaged and made again"):
        assert sb.generate(TINY, n=6, out=tmp_path) == path
    assert path.read_bytes() == whole and path.with_name(f"{path.name}.damaged").read_bytes() == damaged
    path.write_bytes(b"")
    with pytest.warns(DamagedWarning, match=r"parquet.damaged-2 "):
        sb.generate(TINY, n=6, out=tmp_path)


def test_what_a_dead_process_left_is_removed_and_what_a_live_one_writes_is_not(tmp_path):
    target = tmp_path / "x.txt"
    script = (
        "import os, sys; from pathlib import Path; from spdebench.files import replacing, replacing_folder\n"
        "with replacing(Path(sys.argv[1])), replacing_folder(Path(sys.argv[2])): os._exit(1)"
    )
    words = [sys.executable, "-c", script, str(target), str(tmp_path / "site")]
    assert subprocess.run(words, check=False).returncode == 1
    assert len(list(tmp_path.glob(".*.tmp"))) == 2
    with replacing(target) as mine, replacing_folder(tmp_path / "site") as folder:
        assert {p.name for p in tmp_path.iterdir()} == {mine.name, folder.name}
        mine.write_text("1")
        write_text(target, "2")  # another writer of the same file leaves this one's alone
        assert mine.exists()
    assert {p.name for p in tmp_path.iterdir()} == {"x.txt", "site"} and target.read_text() == "1"


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "site"
    with replacing_folder(target) as fresh:
        (fresh / "a").write_text("1")
    with pytest.raises(ZeroDivisionError), replacing_folder(target) as fresh:
        (fresh / "a").write_text("2")
        raise ZeroDivisionError
    assert (target / "a").read_text() == "1" and len(list(tmp_path.iterdir())) == 1

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"), replacing_folder(target) as fresh:
        (fresh / "a").write_text("3")
    assert (target / "a").read_text() == "1" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("broken", [OSError(38, "Function not implemented"), None], ids=["no locks", "empty locks"])
def test_where_locks_do_not_hold_one_line_says_so(tmp_path, monkeypatch, broken):
    import fcntl

    def flock(file, flags) -> None:
        if broken is not None:
            raise broken

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(UserError, match=r"file locks do not work .* use a folder on a file system with flock"):
        sb.generate(TINY, n=6, out=tmp_path)
    with pytest.raises(UserError, match="file locks do not work"):
        store.check_writable(tmp_path / "results")
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_disk_without_room_is_refused_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(3, 1, 2_000_000_000))
    folder = tmp_path / "new" / "data"
    check_free_disk(2_000_000_000, folder, "9 samples", "use a smaller n")
    with pytest.raises(UserError) as told:
        check_free_disk(1_234_500_000_000, folder, "9 samples", "use a smaller n")
    sizes = f"1,234.50 GB are needed in {folder}, 2.00 GB are free"
    assert str(told.value) == f"9 samples: {sizes}; use a smaller n"
    assert existing_part(folder) == tmp_path and not folder.parent.exists()
