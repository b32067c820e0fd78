"""Heartbeats of the units on Ray: a worker that hangs is killed, and Ray gives its unit to another."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

Heartbeat = tuple[str, int, int]
"""Node, process and count: a running worker increases the count."""
SILENT = 6  # checks without a heartbeat after which a worker is killed
FIRST = 10.0  # seconds that a unit waits at most until its first heartbeat has arrived
TITLE = b"ray::call"  # how the command line of a worker begins while it has a unit


class Heartbeats:
    """The last heartbeat of each unit. It is a Ray actor: all workers and the engine can call it."""

    def __init__(self) -> None:
        self.last: dict[int, Heartbeat] = {}

    def put(self, unit: int, heartbeat: Heartbeat) -> None:
        self.last[unit] = heartbeat

    def read(self) -> dict[int, Heartbeat]:
        return self.last


@contextmanager
def sending_heartbeats(heartbeats: Any, unit: int, interval: float) -> Iterator[None]:
    """A context in which a thread of this worker sends a heartbeat every ``interval`` seconds."""
    import ray
    from ray.exceptions import RayError

    first, ended = threading.Event(), threading.Event()
    node, process = ray.get_runtime_context().get_node_id(), os.getpid()

    def send() -> None:
        """Send heartbeats until the context ends."""
        count = 0
        while not ended.is_set():
            count += 1
            with suppress(RayError):
                ray.wait([heartbeats.put.remote(unit, (node, process, count))])
            first.set()
            ended.wait(interval)

    threading.Thread(target=send, daemon=True).start()
    first.wait(FIRST)  # a unit without any heartbeat is assumed to wait for a worker
    try:
        yield
    finally:
        ended.set()


def kill(process: int) -> None:
    """Kill a worker on this node, unless it has ended or has no unit any more."""
    with suppress(OSError):
        if sys.platform != "linux" or Path(f"/proc/{process}/cmdline").read_bytes().startswith(TITLE):
            os.kill(process, signal.SIGKILL)


def kill_stopped(interval: float, parent: int | None = None) -> None:
    """Kill the workers on this node that have a unit and are stopped now and after ``interval`` seconds (Linux).

    They are processes of the ``parent``, by default that of this process. Only this finds a worker that was stopped
    before its unit could send a heartbeat.
    """
    before = _stopped(parent or os.getppid())
    if before:
        time.sleep(interval)
        for process in before & _stopped(parent or os.getppid()):
            kill(process)


def _stopped(parent: int) -> set[int]:
    """The numbers of the workers below ``parent`` that have a unit and are stopped."""
    found = set()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, above = file.read_bytes().rpartition(b")")[2].split()[:2]
            if state == b"T" and int(above) == parent and file.with_name("cmdline").read_bytes().startswith(TITLE):
                found.add(int(file.parent.name))
    return found


class WorkerWatch:
    """Starts the actor that collects heartbeats, checks them, and kills workers that no longer send any.

    Checks are counted, not seconds: if this process was suspended together with its workers, they are not killed at
    once.
    """

    def __init__(self, ray: Any, environment: dict[str, Any]) -> None:
        self.ray = ray
        self.light = {"num_cpus": 0, "runtime_env": environment}
        here = self._placed_on(ray.get_runtime_context().get_node_id(), soft=True)
        actor = ray.remote(Heartbeats).options(**self.light, max_restarts=-1, scheduling_strategy=here)
        self.heartbeats = actor.remote()
        self.asked = self.heartbeats.read.remote()
        self.looks = 0
        self.seen: dict[int, tuple[Heartbeat, int]] = {}
        """Unit -> its last heartbeat, and the number of checks since it changed."""

    def _placed_on(self, node: str, soft: bool) -> Any:
        """How Ray is told to run something on this node; with ``soft`` on another one if this one is gone."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(node, soft=soft)

    def check(self, units: Collection[int], interval: float) -> None:
        """Compare the heartbeats of submitted units with those of the last check, ``interval`` seconds ago."""
        self.looks += 1
        if self.looks % SILENT == 0 and any(unit not in self.seen for unit in units):
            for node in self.ray.nodes():
                if node["Alive"]:
                    self._run_on(node["NodeID"], kill_stopped, interval)
        heartbeats = self._read()
        if heartbeats is None:
            return
        before, self.seen = self.seen, {}
        for unit in units:
            last, silent = before.get(unit, (None, 0))
            heartbeat = heartbeats.get(unit, last)
            if heartbeat is None:
                continue  # the unit waits for a worker
            silent = silent + 1 if heartbeat == last else 0
            if silent == SILENT:
                self._run_on(heartbeat[0], kill, heartbeat[1])
            self.seen[unit] = (heartbeat, silent)

    def _read(self) -> dict[int, Heartbeat] | None:
        """The last heartbeat of each unit, or None if the actor does not answer."""
        if not self.ray.wait([self.asked], timeout=0)[0]:
            return None
        answer, self.asked = self.asked, self.heartbeats.read.remote()
        try:
            found: dict[int, Heartbeat] = self.ray.get(answer)
        except self.ray.exceptions.RayError:
            return None
        return found

    def _run_on(self, node: str, function: Callable[..., None], *arguments: Any) -> None:
        """Start a function on a node, and do not wait for it."""
        place = self._placed_on(node, soft=False)
        self.ray.remote(function).options(**self.light, max_retries=0, scheduling_strategy=place).remote(*arguments)

    def end(self) -> None:
        """End the actor."""
        with suppress(self.ray.exceptions.RayError):
            self.ray.kill(self.heartbeats)
