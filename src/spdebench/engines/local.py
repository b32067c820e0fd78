"""Units of work in this process or in several of this machine, as many at a time as its memory and GPUs hold."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from spdebench.engines import workers as worker
from spdebench.engines.memory import free_memory
from spdebench.engines.need import Need

SHARED = 2  # deaths of a worker after which a unit that was in flight runs with no other beside it
ATTEMPTS = 4  # deaths after which it is given up


def run(
    work: Callable[[Any], Any],
    units: Sequence[tuple[Any, Need]],
    workers: int | None,
    lost: Callable[[Any, str], Any],
) -> Iterator[Any]:
    """In this process for one worker, else in a pool."""
    count = min(workers or 1, len(units))
    if count == 1:
        return (work(unit) for unit, _ in units)
    return _Campaign(work, list(units), count, lost).results()


@dataclass
class Room:
    """What units in flight have been promised, and whether another fits beside them."""

    workers: int
    memory: int | None  # bytes that were free at the start; None: the system does not tell
    taken: list[Need] = field(default_factory=list)

    def fits(self, need: Need) -> bool:
        if not self.taken:
            return True  # alone a unit may always run
        if len(self.taken) >= self.workers:
            return False
        shares = sum(other.gpus for other in self.taken if other.place == need.place)
        if need.gpus and shares + need.gpus > 1 + 1e-6:
            return False
        if self.memory is None or not need.memory:
            return True
        promised = sum(other.memory for other in self.taken)
        now = free_memory()
        return promised + need.memory <= self.memory and (now is None or need.memory <= now)


class _Campaign:
    """Units waiting, units in flight, and how many workers have died on each."""

    def __init__(
        self,
        work: Callable[[Any], Any],
        units: list[tuple[Any, Need]],
        workers: int,
        lost: Callable[[Any, str], Any],
    ) -> None:
        self.work, self.units, self.lost = work, units, lost
        self.waiting = list(range(len(units)))
        self.flying: dict[Future[Any], int] = {}
        self.deaths: Counter[int] = Counter()
        self.room = Room(workers, free_memory())
        self.pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.room.workers, mp_context=context, initializer=worker.start)

    def results(self) -> Iterator[Any]:
        try:
            while self.waiting or self.flying:
                self._start_what_fits()
                done, _ = wait(self.flying, return_when=FIRST_COMPLETED)
                yield from self._landed(done)
        except Exception:
            raise  # an error of a unit: those in flight are let end
        except BaseException:  # an interrupt, or nobody wants the rest
            self._terminate()
            raise
        finally:
            self.pool.shutdown(wait=True, cancel_futures=True)

    def _start_what_fits(self) -> None:
        for index in list(self.waiting):
            need = self.units[index][1]
            alone = self.deaths[index] >= SHARED
            if any(self.deaths[other] >= SHARED for other in self.flying.values()) or (alone and self.flying):
                continue
            if not self.room.fits(need):
                continue
            try:
                future = self.pool.submit(worker.call, self.work, self.units[index][0])
            except BrokenProcessPool:
                if not self.flying:
                    self.pool = self._new_pool()
                return  # what is in flight tells of it
            self.flying[future] = index
            self.room.taken.append(need)
            self.waiting.remove(index)

    def _landed(self, done: set[Future[Any]]) -> Iterator[Any]:
        broken = False
        for future in done:
            index = self.flying.pop(future)
            self.room.taken.remove(self.units[index][1])
            try:
                result = future.result()
            except BrokenProcessPool:
                broken = True
                yield from self._again(index)
                continue
            yield result
        if broken:
            yield from self._replace_pool()

    def _replace_pool(self) -> Iterator[Any]:
        """A worker was killed, which ends its whole pool: what was in flight is done again in another."""
        self.pool.shutdown(wait=True, cancel_futures=True)
        for future, index in list(self.flying.items()):
            del self.flying[future]
            self.room.taken.remove(self.units[index][1])
            if future.done() and not future.cancelled() and future.exception() is None:
                yield future.result()
            else:
                yield from self._again(index)
        self.pool = self._new_pool()

    def _again(self, index: int) -> Iterator[Any]:
        self.deaths[index] += 1
        if self.deaths[index] < ATTEMPTS:
            self.waiting.insert(0, index)
        else:
            reason = (
                f"its worker process died {ATTEMPTS} times (killed for its memory? a script that starts workers needs "
                "'if __name__ == \"__main__\":')"
            )
            yield self.lost(self.units[index][0], reason)

    def _terminate(self) -> None:
        with suppress(AttributeError):  # processes of a pool that was never used, or is down already
            for process in list(self.pool._processes.values()):
                process.terminate()
