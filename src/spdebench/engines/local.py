"""Units of work in this process or in several processes on this machine, as many at a time as memory and GPUs allow."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from spdebench.engines import workers as worker
from spdebench.engines.memory import free_memory
from spdebench.engines.need import Need, Pair, in_order

SHARED = 2  # worker deaths after which a unit that was running is run while no other unit runs
CHECK_EVERY = 5.0  # seconds between two checks of the heartbeats of the workers
SILENT = 6  # checks without a heartbeat after which a worker is killed, so that another gets its unit
ATTEMPTS = 4  # worker deaths after which the unit is given up


def run(
    work: Callable[[Any], Any],
    units: Sequence[Pair],
    workers: int | None,
    result_of_lost: Callable[[Any, str], Any],
    new_units: Callable[[], Sequence[Pair]] | None = None,
) -> Iterator[Any]:
    """Run the units in this process if there is one worker, otherwise in a pool of processes."""
    count = workers or 1 if new_units else min(workers or 1, len(units))
    if count == 1:
        return _one_by_one(work, units, new_units or tuple)
    return _Pool(work, list(units), count, result_of_lost, new_units or tuple).results()


def _one_by_one(
    work: Callable[[Any], Any], units: Sequence[Pair], new_units: Callable[[], Sequence[Pair]]
) -> Iterator[Any]:
    """Run the units in this process, one after the other."""
    waiting = list(units)
    while waiting:
        yield work(waiting.pop(0)[0])
        waiting = in_order([*waiting, *new_units()])


@dataclass
class Reservations:
    """The resources reserved for running units; `fits` decides whether another unit can start."""

    workers: int
    memory: int | None  # bytes that were free at the start; None: unknown
    clock: Callable[[], float] = time.monotonic
    running: list[tuple[Need, float]] = field(default_factory=list)  # and when each is expected to end

    @property
    def needs(self) -> list[Need]:
        """The needs of the units that run."""
        return [need for need, _ in self.running]

    def start(self, need: Need) -> None:
        """Reserve what a unit needs that starts now."""
        self.running.append((need, self.clock() + need.seconds))

    def end(self, need: Need) -> None:
        """Free what a unit with this need had reserved."""
        del self.running[self.needs.index(need)]

    def fits(self, need: Need) -> bool:
        """Whether a unit with this need can start while the others run."""
        if not self.needs:
            return True  # a unit may always run if no other does
        if len(self.needs) >= self.workers:
            return False
        shares = sum(other.gpus for other in self.needs if other.place == need.place)
        if need.gpus and shares + need.gpus > 1 + 1e-6:
            return False
        if self.memory is None or not need.memory:
            return True
        promised = sum(other.memory for other in self.needs)
        now = free_memory()
        return promised + need.memory <= self.memory and (now is None or need.memory <= now)

    def choose(self, waiting: Iterable[Pair]) -> Iterator[Pair]:
        """The first units that there is room for; the caller calls `start` for each that it starts.

        While a unit waits because those that run on its GPU are of another kind, a unit after it starts there only if
        it is expected to end before the last of these, so that the turn of the waiting unit comes.
        """
        kept_free: set[str] = set()
        for unit, need in waiting:
            if any(need.disturbs(other) for other in self.needs):
                if self.clock() <= need.start_by:
                    kept_free.add(need.place)
            elif self.fits(need) and (not need.gpus or need.place not in kept_free or self._ends_in_time(need)):
                yield unit, need

    def _ends_in_time(self, need: Need) -> bool:
        """Whether a unit that starts now is expected to end before the last unit with a kind on its GPU."""
        ends = [end for other, end in self.running if other.kind and other.place == need.place]
        return self.clock() + need.seconds <= max(ends)


class _Pool:
    """A pool of worker processes: units that wait, units that run, and how many workers have died on each."""

    def __init__(
        self,
        work: Callable[[Any], Any],
        units: list[Pair],
        workers: int,
        result_of_lost: Callable[[Any, str], Any],
        new_units: Callable[[], Sequence[Pair]],
    ) -> None:
        self.work, self.units, self.result_of_lost, self.new_units = work, units, result_of_lost, new_units
        self.waiting = list(range(len(units)))
        self.running: dict[Future[Any], int] = {}
        self.deaths: Counter[int] = Counter()
        self.reserved = Reservations(workers, free_memory())
        self.last_check = time.monotonic()
        self.pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        """Start worker processes with a pipe that ends them and memory for their heartbeats."""
        context = multiprocessing.get_context("spawn")
        signal_of_workers, self.end_signal = context.Pipe(duplex=False)  # closing `end_signal` ends the workers
        self.heartbeats = context.Array("q", 2 * self.reserved.workers)
        self.seen: dict[int, tuple[int, int]] = {}  # process -> its last count, and checks since it changed
        arguments = (signal_of_workers, self.heartbeats, min(worker.BEAT, CHECK_EVERY / 2))
        return ProcessPoolExecutor(
            self.reserved.workers, mp_context=context, initializer=worker.start, initargs=arguments
        )

    def results(self) -> Iterator[Any]:
        """Run all units and yield their results as they arrive."""
        try:
            while self.waiting or self.running:
                self._start_what_fits()
                done, _ = wait(self.running, timeout=CHECK_EVERY, return_when=FIRST_COMPLETED)
                if time.monotonic() >= self.last_check + CHECK_EVERY:
                    self._kill_hanging_workers()
                yield from self._completed(done)
                if done:
                    self._enqueue(self.new_units())
        except Exception:
            raise  # an error of a unit: the others that run are allowed to end
        except BaseException:  # an interrupt, or the caller wants no more results
            self.end_signal.close()
            raise
        finally:
            self._shut_down()

    def _enqueue(self, new: Sequence[Pair]) -> None:
        """Add units that have become possible, in their order among those that wait."""
        if new:
            self.waiting += range(len(self.units), len(self.units) + len(new))
            self.units += new
            self.waiting.sort(key=lambda index: (self.units[index][1].rank, -self.units[index][1].seconds))

    def _shut_down(self) -> None:
        """Wait until the workers have ended; those that hang are killed."""
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(CHECK_EVERY):
                self._kill_hanging_workers()

        threading.Thread(target=watch, daemon=True).start()
        try:
            self.pool.shutdown(wait=True, cancel_futures=True)
        finally:
            ended.set()

    def _kill_hanging_workers(self) -> None:
        """Kill workers that hang: the units of a broken pool are run again. Checks are counted, not seconds: if this
        process was suspended together with its workers, they are not killed at once.
        """
        self.last_check = time.monotonic()
        # not locked: a hanging worker may have the lock
        counts = [int(number) for number in cast(Any, self.heartbeats.get_obj())]
        for process, count in zip(counts[::2], counts[1::2], strict=True):
            if process:
                last, silent = self.seen.get(process, (-1, 0))
                self.seen[process] = (count, silent + 1 if count == last else 0)
                if self.seen[process][1] >= SILENT:
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)

    def _start_what_fits(self) -> None:
        """Start the units for which there is room; one whose workers died repeatedly runs while no other does."""
        waiting = [(index, self.units[index][1]) for index in self.waiting]
        for index, need in self.reserved.choose(waiting):
            exclusive = self.deaths[index] >= SHARED
            if any(self.deaths[other] >= SHARED for other in self.running.values()) or (exclusive and self.running):
                continue
            try:
                future = self.pool.submit(worker.call, self.work, self.units[index][0])
            except BrokenProcessPool:
                if not self.running:
                    self.pool = self._new_pool()
                return  # the units that run will report it
            self.running[future] = index
            self.reserved.start(need)
            self.waiting.remove(index)

    def _completed(self, done: set[Future[Any]]) -> Iterator[Any]:
        """The results of units that have ended; those whose worker was killed are run again."""
        broken = False
        for future in done:
            index = self.running.pop(future)
            self.reserved.end(self.units[index][1])
            try:
                result = future.result()
            except BrokenProcessPool:
                broken = True
                yield from self._repeat(index)
                continue
            yield result
        if broken:
            yield from self._replace_pool()

    def _replace_pool(self) -> Iterator[Any]:
        """A killed worker breaks its whole pool: the units that ran are run again in a new one."""
        self._shut_down()
        for future, index in list(self.running.items()):
            del self.running[future]
            self.reserved.end(self.units[index][1])
            if future.done() and not future.cancelled() and future.exception() is None:
                yield future.result()
            else:
                yield from self._repeat(index)
        self.pool = self._new_pool()

    def _repeat(self, index: int) -> Iterator[Any]:
        """Put a unit whose worker was killed back in the queue, or give it up after `ATTEMPTS` deaths."""
        self.deaths[index] += 1
        if self.deaths[index] < ATTEMPTS:
            self.waiting.insert(0, index)
        else:
            reason = (
                f"its worker process died {ATTEMPTS} times (killed for its memory? a script that starts workers needs "
                "'if __name__ == \"__main__\":')"
            )
            yield self.result_of_lost(self.units[index][0], reason)
