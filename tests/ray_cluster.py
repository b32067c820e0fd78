"""A Ray cluster of real processes on one machine: a head, and nodes that can be killed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path
from types import TracebackType


def descendants(pid: int) -> list[int]:
    """Processes below this one."""
    below = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                below += [int(child), *descendants(int(child))]
    return below


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


class Cluster:
    """``with Cluster(nodes=2) as cluster``: ``cluster.environment`` is what a driver needs to join it."""

    def __init__(self, nodes: int = 2, cpus: int = 1, gpus: int = 0) -> None:
        self.count, self.cpus, self.gpus = nodes, cpus, gpus  # Ray takes our word for the GPUs
        self.nodes: list[subprocess.Popen[bytes]] = []
        self.folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # short: sockets lie in it
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        clean = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid.uuid4().hex}
        self.base = {**clean, **token, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
        self.environment = {**self.base, "RAY_ADDRESS": self.address}

    def __enter__(self) -> Cluster:
        port = self.address.partition(":")[2]
        self._start("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={self.folder}")
        self._wait(1)
        for _ in range(self.count - 1):
            self.add_node()
        self._wait(self.count)
        return self

    def add_node(self) -> None:
        self._start(f"--address={self.address}")

    def _start(self, *words: str) -> None:
        command = [str(Path(sys.executable).with_name("ray")), "start", *words, "--block"]
        command += [f"--num-cpus={self.cpus}", f"--num-gpus={self.gpus}"]
        with (self.folder / f"node{len(self.nodes)}.log").open("wb") as log:
            self.nodes.append(
                subprocess.Popen(
                    [*command, "--node-ip-address=127.0.0.1", "--object-store-memory=100000000"],
                    env=self.base, stdout=log, stderr=log, start_new_session=True,
                )
            )  # fmt: skip

    def _wait(self, nodes: int, patience: float = 90.0) -> None:
        """Until so many nodes are alive."""
        code = (
            f"import ray; ray.init(address={self.address!r}, logging_level='error', log_to_driver=False);"
            "print(sum(n['Alive'] for n in ray.nodes()))"
        )
        limit = time.monotonic() + patience
        while True:
            done = subprocess.run([sys.executable, "-c", code], env=self.base, capture_output=True, text=True)
            if done.stdout.strip() == str(nodes):
                return
            if time.monotonic() > limit:
                raise TimeoutError(f"no {nodes} Ray nodes: {done.stdout} {done.stderr}")
            time.sleep(0.3)

    def workers(self, index: int) -> list[int]:
        """Process ids of a node's workers that have a task now."""
        return [pid for pid in descendants(self.nodes[index].pid) if command_of(pid).startswith("ray::call")]

    def kill_node(self, index: int) -> None:
        """kill -9 of all processes of a node at once, as when its power fails."""
        for pid in (self.nodes[index].pid, *descendants(self.nodes[index].pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.nodes[index].wait()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for index, node in reversed(list(enumerate(self.nodes))):
            if node.poll() is None:
                self.kill_node(index)
        shutil.rmtree(self.folder, ignore_errors=True)
