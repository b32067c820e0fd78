"""The drills: each disturbs work on purpose and ends with what undisturbed work gives: nothing lost, none doubled."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scene import CHUNKS, GENERATE, TABLE, Scene

from ray_cluster import Cluster


@dataclass(frozen=True)
class Wanted:
    """What undisturbed commands of the local engine give."""

    file: bytes
    scores: dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What was done to the work, and the seconds until what was in the killed one's hands was finished; where all had
    ended, or nothing was killed, until the next unit was."""

    killed: str
    seconds: float


Drill = Callable[[Path, Wanted], Outcome]
DRILLS: dict[str, Drill] = {}


def drill(name: str) -> Callable[[Drill], Drill]:
    def declare(function: Drill) -> Drill:
        DRILLS[name] = function
        return function

    return declare


def undisturbed(folder: Path) -> Wanted:
    scene = Scene(folder, chunk=0.0, epoch=0.0)
    scene.finish(scene.start(*GENERATE))
    scene.finish(scene.start(*TABLE))
    return Wanted(scene.file(), scene.scores())


@contextmanager
def staged(folder: Path, **settings: Any) -> Iterator[Scene]:
    scene = Scene(folder, **settings)
    try:
        yield scene
    finally:
        scene.close()


@contextmanager
def on_cluster(folder: Path, **settings: Any) -> Iterator[tuple[Scene, Cluster]]:
    with Cluster(nodes=2) as cluster, staged(folder, environment=cluster.environment, **settings) as scene:
        yield scene, cluster


def state(pid: int) -> str:
    """One letter: T is stopped, Z has ended and waits to be reaped; also Z where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def alive(pids: list[int]) -> list[int]:
    """Those that still run; what only waits to be reaped does not."""
    return [pid for pid in pids if state(pid) != "Z"]


def stopped_with(
    scene: Scene, driver: subprocess.Popen[str], worker: int, in_hand: Callable[[int], Callable[[], bool] | None]
) -> Callable[[], bool]:
    """Stop a worker that has a unit in hand, so that it cannot finish the unit before it is killed.

    The function tells whether the unit is finished after all.
    """

    def stopped() -> Callable[[], bool] | None:
        os.kill(worker, signal.SIGSTOP)
        scene.until(lambda: state(worker) in "TZ")
        if (finished := in_hand(worker)) is None:
            os.kill(worker, signal.SIGCONT)
        return finished

    return scene.until(stopped, driver)


def hit(scene: Scene, driver: subprocess.Popen[str], finished: Callable[[], bool]) -> float:
    """Seconds until the unit that something was killed on is done after all; then the command ends well."""
    assert not finished(), "it was done before it was hit"
    seconds = scene.recovered(finished)
    scene.finish(driver)
    return seconds


def hit_in_a_chunk(scene: Scene, driver: subprocess.Popen[str], worker: int, wanted: Wanted) -> float:
    """Kill a worker that has a chunk in hand; the seconds of `hit`, and the file is as wanted."""
    finished = stopped_with(scene, driver, worker, scene.chunk_in_hand)
    os.kill(worker, signal.SIGKILL)
    seconds = hit(scene, driver, finished)
    assert scene.file() == wanted.file
    return seconds


def typed_again(scene: Scene, *words: str) -> float:
    """Seconds from typing the command again to the next finished unit; then it ends well."""
    finished = scene.next_unit()
    again = scene.start(*words)
    seconds = scene.recovered(finished)
    scene.finish(again)
    return seconds


# --- workers and nodes --------------------------------------------------------------------------------------------
@drill("a worker in a chunk, local")
def worker_in_a_chunk(folder: Path, wanted: Wanted) -> Outcome:
    with staged(folder, chunk=0.8) as scene:
        driver = scene.start(*GENERATE, "--workers", "2")
        scene.until(lambda: 2 <= len(scene.chunks()) < CHUNKS - 3, driver)
        seconds = hit_in_a_chunk(scene, driver, scene.workers(driver)[0], wanted)
        return Outcome("1 of 2 worker processes, kill -9", seconds)


@drill("a worker in a chunk, ray")
def ray_worker_in_a_chunk(folder: Path, wanted: Wanted) -> Outcome:
    with on_cluster(folder, chunk=0.8) as (scene, cluster):
        driver = scene.start(*GENERATE, "--engine", "ray")
        scene.until(lambda: 2 <= len(scene.chunks()) < CHUNKS - 3, driver)
        (worker,) = scene.until(lambda: cluster.workers(1), driver)
        seconds = hit_in_a_chunk(scene, driver, worker, wanted)
        return Outcome("1 of 2 Ray workers, kill -9", seconds)


@drill("a node in a table")
def node_in_a_table(folder: Path, wanted: Wanted) -> Outcome:
    with on_cluster(folder) as (scene, cluster):
        driver = scene.start(*TABLE, "--engine", "ray")
        (worker,) = scene.until(lambda: scene.lines() and cluster.workers(1), driver)
        finished = stopped_with(scene, driver, worker, scene.run_in_hand)
        cluster.kill_node(1)
        seconds = hit(scene, driver, finished)
        assert scene.scores() == wanted.scores
        return Outcome("1 of 2 Ray nodes, all its processes, kill -9", seconds)


# --- drivers ------------------------------------------------------------------------------------------------------
@drill("the driver of a generation, then the other engine")
def driver_of_a_generation(folder: Path, wanted: Wanted) -> Outcome:
    with staged(folder) as scene:
        driver = scene.start(*GENERATE, "--workers", "2")
        scene.until(lambda: len(scene.chunks()) >= 4, driver)
        workers = scene.workers(driver)
        driver.kill()
        driver.communicate()
        scene.until(lambda: not alive(workers))  # workers do not outlive their driver
        seen = len(scene.chunks())
        seconds = typed_again(scene, *GENERATE, "--engine", "ray", "--workers", "2")
        assert scene.file() == wanted.file
        solved = scene.notes()
        in_flight = sum(solved.values()) - CHUNKS
        assert len(solved) == CHUNKS and in_flight <= 2 <= seen, solved  # only what was in flight is done twice
        return Outcome("the driver, kill -9; started with local, finished with ray", seconds)


@drill("the driver of a table")
def driver_of_a_table(folder: Path, wanted: Wanted) -> Outcome:
    with staged(folder) as scene:
        driver = scene.start(*TABLE, "--jobs", "2")
        scene.until(lambda: 1 <= len(scene.lines()) <= 4, driver)
        workers = scene.workers(driver)
        driver.kill()
        driver.communicate()
        scene.until(lambda: not alive(workers))
        seconds = typed_again(scene, *TABLE)
        assert scene.scores() == wanted.scores
        return Outcome("the driver, kill -9, while it had 2 runs", seconds)


# --- disks --------------------------------------------------------------------------------------------------------
@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[bool]:
    """The folder on a file system of its own that is this small; False where one may not mount."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], capture_output=True)
    try:
        yield done.returncode == 0
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Write until nothing more can be."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return ballast


@drill("a full disk in a generation")
def full_disk(folder: Path, wanted: Wanted) -> Outcome:
    with small_disk(folder, "16m") as mounted, staged(folder) as scene:
        if mounted:
            driver = scene.start(*GENERATE, "--workers", "2")
            scene.until(lambda: len(scene.chunks()) >= 2, driver)
            ballast = fill(folder)
            said, what = scene.finish(driver, code=2), "the file system is full"
            ballast.unlink()
        else:  # a limit on the size of a file, which chunks keep and the whole does not
            limited = ["prlimit", "--fsize=1000000", "--"]
            process = scene.start(*GENERATE)
            subprocess.run([*limited[:1], "--pid", str(process.pid), limited[1]], check=True)
            said, what = scene.finish(process, code=2), "a file must not be larger than 1 MB"
        assert "error: cannot write" in said, said
        assert not list((folder / "data").glob("*.parquet")) and not list((folder / "data").glob("*/.*.tmp"))
        seconds = typed_again(scene, *GENERATE)
        assert scene.file() == wanted.file
        return Outcome(what, seconds)


@drill("a full disk in a table")
def full_disk_in_a_table(folder: Path, wanted: Wanted) -> Outcome:
    with small_disk(folder, "16m") as mounted, staged(folder) as scene:
        if not mounted:
            return Outcome("not done: a file system of its own may not be mounted here", float("nan"))
        driver = scene.start(*TABLE)
        scene.until(lambda: len(scene.lines()) == 2, driver)
        ballast = fill(folder)
        said = scene.finish(driver, code=1)
        assert "No space left on device" in said, said
        ballast.unlink()
        seconds = typed_again(scene, *TABLE)
        assert scene.scores() == wanted.scores
        return Outcome("the file system is full", seconds)


@drill("two damaged chunk files")
def damaged_chunks(folder: Path, wanted: Wanted) -> Outcome:
    with staged(folder) as scene:
        driver = scene.start(*GENERATE)
        scene.until(lambda: len(scene.chunks()) >= 4, driver)
        driver.kill()
        driver.communicate()
        flipped, cut = scene.chunks()[:2]
        content = bytearray(flipped.read_bytes())
        content[1000] ^= 1
        flipped.write_bytes(content)
        cut.write_bytes(cut.read_bytes()[:-1])
        finished = scene.next_unit()
        again = scene.start(*GENERATE)
        seconds = scene.recovered(finished)
        scene.until(lambda: len(scene.chunks()) >= 8, again)
        late = scene.chunks()[0]  # it was found whole; damaged now, it is seen when the file is put together
        late.write_bytes(bytes(late.stat().st_size))
        scene.finish(again)
        assert scene.file() == wanted.file
        return Outcome("one bit flipped, one byte cut off, one file of zeros", seconds)


# --- clocks and company -------------------------------------------------------------------------------------------
@drill("a clock that jumps")
def jumping_clock(folder: Path, wanted: Wanted) -> Outcome:
    """A week there and back, in the driver and in its workers, while a budget of ten minutes runs."""
    with staged(folder, clock=7 * 86400.0) as scene:
        driver = scene.start(*TABLE, "--jobs", "2", "--budget", "10m")
        scene.until(lambda: len(scene.lines()) >= 1, driver)
        for path in folder.rglob("*"):
            os.utime(path, (0, 0) if len(path.name) % 2 else (4e9, 4e9))  # files from 1970 and from 2096
        seconds = scene.recovered(scene.next_unit())
        said = scene.finish(driver)
        assert "budget is used up" not in said
        assert scene.scores() == wanted.scores
        scene.finish(scene.start(*GENERATE, "--workers", "2"))
        assert scene.file() == wanted.file
        return Outcome("the clock jumps by a week whenever it is read; files of 1970 and 2096", seconds)


@drill("two drivers at once, a generation")
def two_generations(folder: Path, wanted: Wanted) -> Outcome:
    with staged(folder) as scene:
        pair = [scene.start(*GENERATE, "--workers", "2"), scene.start(*GENERATE)]
        seconds = scene.recovered(scene.next_unit())
        for driver in pair:
            scene.finish(driver)
        assert scene.file() == wanted.file
        assert set(scene.notes().values()) == {1} and len(scene.notes()) == CHUNKS, scene.notes()
        return Outcome("nothing: the second waits for the first and uses its file", seconds)


@drill("two drivers at once, a table")
def two_tables(folder: Path, wanted: Wanted) -> Outcome:
    with staged(folder) as scene:
        shutil.rmtree(folder, ignore_errors=True)
        pair = [scene.start(*TABLE, "--engine", "ray", "--jobs", "2"), scene.start(*TABLE)]
        seconds = scene.recovered(scene.next_unit())
        for driver in pair:
            scene.finish(driver)
        assert scene.scores() == wanted.scores
        trained = sum(run["epochs"] for run in wanted.scores.values())
        assert scene.notes()["epoch"] == trained, scene.notes()  # no epoch was trained twice
        return Outcome("nothing: one with ray and one with local divide the runs", seconds)
