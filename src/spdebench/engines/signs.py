"""Signs of life of the units on Ray: a worker that has stopped is killed, and Ray gives its unit to another."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

Sign = tuple[str, int, int]
"""Node, process and count: a worker that is not stopped counts upwards."""
SILENT = 6  # looks without a sign of life after which a worker is killed
FIRST = 10.0  # seconds that a unit waits at most until its first sign has arrived
TITLE = b"ray::call"  # how the command line of a worker begins while it has a unit


class Signs:
    """The last sign of life of each unit. It is an actor of Ray: all workers and the engine reach it."""

    def __init__(self) -> None:
        self.last: dict[int, Sign] = {}

    def put(self, unit: int, sign: Sign) -> None:
        self.last[unit] = sign

    def read(self) -> dict[int, Sign]:
        return self.last


@contextmanager
def giving(signs: Any, unit: int, interval: float) -> Iterator[None]:
    """Inside, a thread of this worker gives a sign of life every ``interval`` seconds."""
    import ray
    from ray.exceptions import RayError

    first, ended = threading.Event(), threading.Event()
    node, process = ray.get_runtime_context().get_node_id(), os.getpid()

    def give() -> None:
        count = 0
        while not ended.is_set():
            count += 1
            with suppress(RayError):
                ray.wait([signs.put.remote(unit, (node, process, count))])
            first.set()
            ended.wait(interval)

    threading.Thread(target=give, daemon=True).start()
    first.wait(FIRST)  # a unit that has never given a sign is taken for one that waits for a worker
    try:
        yield
    finally:
        ended.set()


def kill(process: int) -> None:
    """Kill a worker on this node, unless it has ended or has no unit any more."""
    with suppress(OSError):
        if sys.platform != "linux" or Path(f"/proc/{process}/cmdline").read_bytes().startswith(TITLE):
            os.kill(process, signal.SIGKILL)


class WorkerWatch:
    """Starts the actor for signs of life, looks at them now and then, and kills workers that give none.

    Looks are counted, not seconds: if this process was stopped together with its workers, they get their time.
    """

    def __init__(self, ray: Any, environment: dict[str, Any]) -> None:
        self.ray = ray
        self.light = {"num_cpus": 0, "runtime_env": environment}
        here = self._on(ray.get_runtime_context().get_node_id(), soft=True)
        self.signs = ray.remote(Signs).options(**self.light, max_restarts=-1, scheduling_strategy=here).remote()
        self.asked = self.signs.read.remote()
        self.seen: dict[int, tuple[Sign, int]] = {}  # unit -> its last sign, and looks since it changed

    def _on(self, node: str, soft: bool) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(node, soft=soft)

    def look(self, running: Iterable[int]) -> None:
        """Compare the signs of the running units with those of the last look."""
        signs = self._read()
        if signs is None:
            return
        before, self.seen = self.seen, {}
        for unit in running:
            last, silent = before.get(unit, (None, 0))
            sign = signs.get(unit, last)
            if sign is None:
                continue  # the unit waits for a worker
            silent = silent + 1 if sign == last else 0
            if silent == SILENT:
                self._kill(sign)
            self.seen[unit] = (sign, silent)

    def _read(self) -> dict[int, Sign] | None:
        """None if the actor does not answer: then nothing is known of any unit."""
        if not self.ray.wait([self.asked], timeout=0)[0]:
            return None
        answer, self.asked = self.asked, self.signs.read.remote()
        try:
            found: dict[int, Sign] = self.ray.get(answer)
        except self.ray.exceptions.RayError:
            return None
        return found

    def _kill(self, sign: Sign) -> None:
        node, process, _ = sign
        there = self._on(node, soft=False)
        self.ray.remote(kill).options(**self.light, max_retries=0, scheduling_strategy=there).remote(process)

    def end(self) -> None:
        """End the actor."""
        with suppress(self.ray.exceptions.RayError):
            self.ray.kill(self.signs)
