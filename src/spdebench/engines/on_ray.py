"""Units of work on Ray: on the cluster at ``RAY_ADDRESS``, or on a Ray that this process starts for itself.

Ray places units by the resources they ask for, and runs them again if a worker or a node dies. Units must write their
files into a folder that every node sees.
"""

from __future__ import annotations

import importlib.util
import math
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spdebench.engines import heartbeats
from spdebench.engines.memory import keep_freed_memory
from spdebench.engines.need import Need, Pair, in_order
from spdebench.errors import UserError, needs_extra
from spdebench.registry import FILES

RETRIES = 4  # times that a unit is run again after its worker or node has died
STORE = 100 << 20  # bytes of Ray's object store: results are small
WINDOW = 4  # units that are submitted per processor
CHECK_EVERY = 5.0  # seconds between two checks of the nodes and of the heartbeats of the workers
GONE = 3  # checks after which a cluster that does not answer counts as lost
GATHERING = 60.0  # seconds in which the nodes of a new cluster may still join
PATIENCE = 10.0  # seconds in which cancelled units may remove half-written files


def require() -> None:
    """Raise a one-line error if Ray is not installed; nothing is imported."""
    if importlib.util.find_spec("ray") is None:
        raise needs_extra("the engine 'ray'", "ray")


def run(
    work: Callable[[Any], Any],
    units: Sequence[Pair],
    workers: int | None,
    result_of_lost: Callable[[Any, str], Any],
    new_units: Callable[[], Sequence[Pair]] | None = None,
) -> Iterator[Any]:
    """Yield results as they arrive; an interrupt cancels the units that run."""
    ray = _import()
    with _connected(ray, workers):
        yield from _Submitted(ray, work, units, workers, result_of_lost, new_units or tuple).results()


class _Submitted:
    """Units that are submitted to Ray, only a few per processor: of the others the longest is always submitted next."""

    def __init__(
        self,
        ray: Any,
        work: Callable[[Any], Any],
        units: Sequence[Pair],
        workers: int | None,
        result_of_lost: Callable[[Any, str], Any],
        new_units: Callable[[], Sequence[Pair]],
    ) -> None:
        self.ray, self.work, self.result_of_lost, self.new_units = ray, work, result_of_lost, new_units
        self.waiting = list(reversed(units))
        self.submitted = 0
        self.running: dict[Any, tuple[int, Any]] = {}  # reference -> number and unit
        self.workers = workers
        self.missed = 0  # checks since the cluster has answered
        self._read_nodes()
        self.remote = ray.remote(call)
        shared = {"env_vars": environment()}
        self.always = {"num_cpus": 1, "max_retries": RETRIES, "runtime_env": shared}
        self._check_fits([need for _, need in units])
        self.watch = heartbeats.WorkerWatch(ray, shared)

    def _read_nodes(self) -> None:
        """Read the resources of the nodes that are alive now, and from that the number of units to submit."""
        self.nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        self.most = self.workers or WINDOW * max(1, int(sum(node.get("CPU", 0) for node in self.nodes)))
        self.last_check = time.monotonic()

    def _check_fits(self, needs: Sequence[Need]) -> None:
        """Raise an error before anything starts if no node can run a unit; nodes of a new cluster may still join."""
        patience = time.monotonic() + (GATHERING if os.environ.get("RAY_ADDRESS") else 0.0)
        most = max(needs, key=lambda need: need.gpus)
        while time.monotonic() < patience and not self._nodes_with_gpus(most):
            time.sleep(1.0)
            self._read_nodes()
        self._options(most)

    def results(self) -> Iterator[Any]:
        """Yield the result of each unit as it arrives, and submit more; at the end cancel the units that still run."""
        try:
            while self.waiting or self.running:
                if time.monotonic() > self.last_check + CHECK_EVERY and self._head_listens():
                    self._read_nodes()
                    self.watch.check([number for number, _ in self.running.values()], CHECK_EVERY)
                while self.waiting and len(self.running) < self.most:
                    self._submit(*self.waiting.pop())
                done, _ = self.ray.wait(list(self.running), num_returns=1, timeout=CHECK_EVERY)
                for reference in done:
                    yield self._completed(reference, self.running.pop(reference)[1])
                    if new := self.new_units():
                        self.waiting = in_order([*reversed(self.waiting), *new])[::-1]
        finally:
            if not self.missed:
                self._cancel()
                self.watch.end()

    def _submit(self, unit: Any, need: Need) -> None:
        """Hand one unit to Ray, under the next number."""
        self.submitted += 1
        number = self.submitted
        options = self.always | self._options(need)
        reference = self.remote.options(**options).remote(
            self.work, unit, self.watch.heartbeats, number, CHECK_EVERY / 2
        )
        self.running[reference] = (number, unit)

    def _head_listens(self) -> bool:
        """Whether the head of the cluster listens; Ray itself would wait for a minute, and then end this process."""
        self.last_check = time.monotonic()
        try:
            _connect(self.ray.get_runtime_context().gcs_address)
        except OSError:
            self.missed += 1
            if self.missed >= GONE:
                raise _connection_lost("its head does not answer") from None
            return False
        self.missed = 0
        return True

    def _completed(self, reference: Any, unit: Any) -> Any:
        """The result of a unit, or that of ``result_of_lost`` if its workers died too often; its errors are raised."""
        errors = self.ray.exceptions
        try:
            return self.ray.get(reference)
        except errors.RayTaskError as error:
            cause = error.cause
            raise cause if isinstance(cause, UserError) else error from None
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError) as error:
            what = "was killed for its memory" if isinstance(error, errors.OutOfMemoryError) else "died"
            return self.result_of_lost(unit, f"its worker or node {what} {RETRIES + 1} times")
        except errors.RayError as error:
            raise _connection_lost(str(error).strip().splitlines()[0]) from None

    def _options(self, need: Need) -> dict[str, Any]:
        """The options of Ray that reserve what a unit needs.

        They never reserve more memory than the largest node has, so that every unit can run.
        """
        nodes = self._nodes_with_gpus(need)
        if not nodes:
            raise UserError(
                f"a unit asks for {need.gpus:g} GPUs, which no node of the Ray cluster has; use --device cpu"
            )
        most = int(max(node.get("memory", 0) for node in nodes))
        return {"num_gpus": _share(need.gpus), "memory": min(need.memory, most)}

    def _nodes_with_gpus(self, need: Need) -> list[dict[str, float]]:
        """The nodes that have enough GPUs."""
        return [node for node in self.nodes if node.get("GPU", 0) >= _share(need.gpus)]

    def _cancel(self) -> None:
        """Cancel the units that run, and wait until they have removed their half-written files."""
        for reference in self.running:
            self.ray.cancel(reference)  # interrupts the unit, which removes its half-written files
        if self.running:
            self.ray.wait(list(self.running), num_returns=len(self.running), timeout=PATIENCE)


def _share(gpus: float) -> float:
    """GPUs as Ray counts them: a fraction of one to four digits, or a whole number."""
    return round(gpus, 4) if gpus <= 1 else math.ceil(gpus)


def call(work: Callable[[Any], Any], unit: Any, watched: Any, number: int, interval: float) -> Any:
    """Run ``work(unit)`` with one thread, in a worker of Ray that sends heartbeats."""
    with heartbeats.sending_heartbeats(watched, number, interval):
        import torch  # slow to import

        torch.set_num_threads(1)
        keep_freed_memory()
        return work(unit)


def environment() -> dict[str, str]:
    """Environment variables for workers: where code is imported from, one thread, the user's files of `--with`."""
    own = (Path(sys.prefix), Path(sys.base_prefix))
    paths = [str(Path(__file__).resolve().parents[2])]
    for entry in (*sys.path, *os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        path = Path(entry).resolve()
        if path.is_dir() and str(path) not in paths and not any(path.is_relative_to(p / "lib") for p in own):
            paths.append(str(path))
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return {
        "PYTHONPATH": os.pathsep.join(paths),
        **dict.fromkeys(names, "1"),
        **({FILES: os.environ[FILES]} if os.environ.get(FILES) else {}),
    }


def _import() -> Any:
    """Import Ray with our settings, and return the module."""
    require()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))  # by default Ray repeats it for ever
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # otherwise lines of its C++ code appear among ours
    import ray
    import ray._private.worker
    import ray.exceptions

    return ray


@contextmanager
def _connected(ray: Any, workers: int | None) -> Iterator[None]:
    """A context in which Ray is connected. A Ray instance that the caller has started is used and left running.

    An address is always given, because Ray by itself may find the address of a cluster that is dead.
    """
    if ray.is_initialized():
        yield
        return
    address = os.environ.get("RAY_ADDRESS", "")
    if address:
        _check_listens(address)
    quiet = {"logging_level": "error", "log_to_driver": False}
    try:
        with _without_stderr():
            if address:
                ray.init(address=address, **quiet)
            else:
                count = workers or (len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count())
                _start(ray, num_cpus=count, include_dashboard=False, object_store_memory=STORE, **quiet)
    except Exception as error:  # Ray has no one error for this
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if address:
            raise _unreachable(address, first) from None
        raise UserError(f"cannot start Ray here ({first}); use --engine local") from None
    # Ray reports dead workers on standard output, where a program may expect our JSON, also with log_to_driver=False.
    # It has no public switch for that: this private one is what Ray's own debugger uses.
    ray._private.worker._worker_logs_enabled = False
    try:
        yield
    finally:
        ray.shutdown()
        ray._private.worker._worker_logs_enabled = True


def _start(ray: Any, **options: Any) -> None:
    """Start a Ray of our own. Ray gives up after 30 seconds, which may be too few on a busy machine: then try again."""
    try:
        ray.init(address="local", **options)
    except Exception:
        ray.shutdown()
        ray.init(address="local", **options)


@contextmanager
def _without_stderr() -> Iterator[None]:
    """A context in which nothing is written to standard error, not even by C++ code: Ray prints its log level there."""
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _check_listens(address: str) -> None:
    """Check that the address answers; Ray itself would try for minutes."""
    try:
        _connect(address)
    except OSError as error:
        raise _unreachable(address, error.strerror or str(error)) from None


def _connect(address: str) -> None:
    """Raise OSError if nothing listens at ``HOST:PORT``; words such as "auto" are not checked."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _connection_lost(why: str) -> UserError:
    return UserError(
        f"the connection to the Ray cluster is lost ({why}); finished work is kept, type the command again"
    )


def _unreachable(address: str, why: str) -> UserError:
    return UserError(
        f"cannot join the Ray cluster at {address} ({why}); start it, or unset RAY_ADDRESS to start one on this machine"
    )
